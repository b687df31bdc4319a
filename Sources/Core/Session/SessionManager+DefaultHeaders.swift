// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

extension SessionManager {
    /// The header fields of ``default``: `Accept-Encoding`, `Accept-Language` and `User-Agent`.
    ///
    /// `Accept-Encoding` lists the codings that Curlew decodes, `Accept-Language` the user's first six languages, with decreasing weights.
    /// `User-Agent` is `Name/version (identifier; build:number; system version) Curlew/version`, with `Unknown` for unknown parts.
    public static let defaultHTTPHeaders = makeDefaultHeaders()

    package static func makeDefaultHeaders() -> HTTPHeaders {
        [
            HTTPHeader(name: "Accept-Encoding", value: acceptEncoding(ContentDecoder.known)),
            HTTPHeader(name: "Accept-Language", value: acceptLanguage(Locale.preferredLanguages)),
            HTTPHeader(name: "User-Agent", value: userAgent()),
        ]
    }

    /// The codings with decreasing weights; `deflate` has 0.5, because servers implement it in two incompatible ways.
    ///
    /// For sessions that have ``defaultHTTPHeaders``. Where neither session nor request has the field, and for requests with `Range`, which
    /// get none of the session's, `EasyHandle.acceptedCodings(withRange:)` in the transport has the value.
    static func acceptEncoding(_ codings: [String]) -> String {
        codings.enumerated().map { index, coding in
            let weight = index == 0 ? "1.0" : coding == "deflate" ? "0.5" : "0.\(10 - index)"
            return "\(coding);q=\(weight)"
        }.joined(separator: ", ")
    }

    static func acceptLanguage(_ languages: [String]) -> String {
        languages.prefix(6).enumerated().map { index, language in
            "\(language);q=1.0".replacingScalars("1.0", with: index == 0 ? "1.0" : "0.\(10 - index)")
        }.joined(separator: ", ")
    }

    private static func userAgent() -> String {
        let info = Bundle.main.infoDictionary ?? [:]
        func value(_ key: String) -> String { printable(info[key] as? String) ?? "Unknown" }
        let name = printable(info["CFBundleExecutable"] as? String) ?? printable(ProcessInfo.processInfo.processName) ?? "Unknown"
        let version = ProcessInfo.processInfo.operatingSystemVersion
        let system = "\(systemName) \(version.majorVersion).\(version.minorVersion).\(version.patchVersion)"
        return "\(name)/\(value("CFBundleShortVersionString")) "
            + "(\(value("CFBundleIdentifier")); build:\(value("CFBundleVersion")); \(system)) Curlew/\(CurlewInfo.version)"
    }

    /// The visible ASCII characters of a name; `nil` if it has none.
    private static func printable(_ string: String?) -> String? {
        let ascii = (string ?? "").unicodeScalars.filter { $0.isASCII && $0.value > 0x20 && $0.value < 0x7F }
        return ascii.isEmpty ? nil : String(String.UnicodeScalarView(ascii))
    }
}

/// Information about the library.
public enum CurlewInfo {
    /// The library's version (Semantic Versioning 2.0.0).
    public static let version = "0.9.0"
}
