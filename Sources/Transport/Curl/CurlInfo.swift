// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// The version and features of the libcurl in use, queried at run time, since a version other than the one compiled against may be loaded.
///
/// Version 7.88.0 or later is required: with an older one every transfer fails with ``TransferFailure/Kind/configuration``.
public struct CurlInfo: Sendable, Hashable {
    /// The version, such as `7.88.1`.
    public let version: String
    /// The version as a number: `0x075801` is 7.88.1.
    package let versionNumber: Int
    /// The TLS library and its version, such as `OpenSSL/3.0.15`; `nil` without TLS.
    public let tlsLibrary: String?
    /// Whether libcurl supports HTTP/2.
    public let supportsHTTP2: Bool
    /// Whether libcurl supports HTTP/3 (RFC 9114), as few builds do.
    public let supportsHTTP3: Bool
    /// Whether libcurl supports NTLM authentication of connections.
    public let supportsNTLM: Bool
    /// Whether libcurl supports Negotiate authentication of connections (RFC 4559).
    public let supportsNegotiate: Bool

    /// The libcurl loaded into this process.
    public static let current = CurlInfo()

    private init() {
        let info = ccurlew_version_info()?.pointee
        version = info.flatMap { String(validatingCString: $0.version) } ?? "unknown"
        versionNumber = Int(info?.version_num ?? 0)
        tlsLibrary = info?.ssl_version.flatMap { String(validatingCString: $0) }
        let features = info?.features ?? 0
        supportsHTTP2 = features & CURL_VERSION_HTTP2 != 0
        supportsHTTP3 = features & CURL_VERSION_HTTP3 != 0
        supportsNTLM = features & CURL_VERSION_NTLM != 0
        supportsNegotiate = features & CURL_VERSION_SPNEGO != 0
    }

    /// Why a version of libcurl can't be used; `nil` if it can. Older ones lack options that transfers need, or have faults that are not
    /// worked around.
    package static func rejection(ofVersion number: Int, named name: String) -> String? {
        number >= 0x075800 ? nil : "libcurl \(name) is too old: Curlew needs version 7.88.0 or later"
    }

    /// Whether HTTP/2 is reliable, as it is since 8.3: earlier versions may spin or hang on large uploads, and hang streams whose shared
    /// connection ends.
    package var hasReliableHTTP2: Bool { versionNumber >= 0x080300 }

    /// Whether a prior-knowledge connection can be reused: before 8.0 the second transfer on an HTTP/2 connection without TLS fails.
    package var canReusePriorKnowledge: Bool { versionNumber >= 0x080000 }

    /// Whether a transfer that is bound to an interface may be given an idle connection over another one, unless the interface is set
    /// without the prefix `if!`: with 8.14.1 so; 7.88.1 and 8.23.0 compare both forms. The prefix has been parsed since 8.9.
    package var reusesConnectionsOfAnyInterface: Bool { (0x080900..<0x081700).contains(versionNumber) }

    /// Whether an idle connection for HTTP/1.1 counts as dead as soon as there is anything to read from it, as TLS 1.3 session tickets are:
    /// with 8.14.1 so; 7.88.1 and 8.23.0 keep it.
    package var dropsConnectionsWithInput: Bool { (0x080000..<0x081700).contains(versionNumber) }

    /// Whether a transfer whose receiving is paused keeps receiving as long as it sends, all of it into memory: 8.14.1 does (a gigabyte in
    /// four seconds); 7.88.1 and 8.23.0 stop.
    package var receivesWhilePaused: Bool { (0x080000..<0x081700).contains(versionNumber) }
}
