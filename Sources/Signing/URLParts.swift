// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The parts of an absolute URL that signatures cover: without user name, password and fragment.
struct URLParts {
    /// In lower case.
    let scheme: String
    /// The host as it is written, with the port unless it is the scheme's default.
    let host: String
    /// As it is written; `/` if it is empty.
    let path: String
    /// As it is written, without the question mark; `nil` if the URL has none.
    let query: String?

    /// `nil` for a URL that is not absolute, or has no host or an invalid port.
    init?(_ url: String) {
        var text = url
        let origin = text.withUTF8 { bytes in
            HTTPOrigin.parts(of: UnsafeRawBufferPointer(bytes)[...]).map { scheme, host, port in
                let name = String(decoding: host, as: UTF8.self).bracketed
                return (scheme: scheme, host: port == HTTPOrigin.defaultPort(of: scheme) ? name : "\(name):\(port)")
            }
        }
        guard let origin, let authority = url.authority else { return nil }
        (scheme, host) = origin
        let rest = url.utf8[authority.endIndex...].prefix { $0 != UInt8(ascii: "#") }
        let path = rest.prefix { $0 != UInt8(ascii: "?") }
        self.path = path.isEmpty ? "/" : String(Substring(path))
        query = path.endIndex == rest.endIndex ? nil : String(Substring(rest[path.endIndex...].dropFirst()))
    }
}

extension String {
    /// Whether it is an absolute URL with `https`, or one that leads to this computer.
    package var isProtectedURL: Bool {
        guard let origin = HTTPOrigin(url: self) else { return false }
        if origin.scheme.hasSameBytes(as: "https") { return true }
        let isLoopback = origin.host.hasBytePrefix("127.") && origin.host.utf8.allSatisfy { $0.isASCIIDigit || $0 == UInt8(ascii: ".") }
        return origin.scheme.hasSameBytes(as: "http") && (isLoopback || ["localhost", "::1"].contains(origin.host))
    }
}
