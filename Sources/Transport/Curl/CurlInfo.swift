// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// Which libcurl runs, and what it can do: asked at run time, since another one than at build time may be loaded.
public struct CurlInfo: Sendable, Hashable {
    /// The version, as `7.88.1`.
    public let version: String
    /// The version as a number: `0x075801` is 7.88.1.
    public let versionNumber: Int
    /// The TLS library and its version, as `OpenSSL/3.0.15`; `nil` without TLS.
    public let tlsLibrary: String?
    /// Whether it speaks HTTP/2.
    public let supportsHTTP2: Bool
    /// Whether it authenticates connections by NTLM.
    public let supportsNTLM: Bool
    /// Whether it authenticates connections by Negotiate (RFC 4559).
    public let supportsNegotiate: Bool

    /// The libcurl of this process.
    public static let current = CurlInfo()

    private init() {
        let info = ccurlew_version_info()?.pointee
        version = info.flatMap { String(validatingCString: $0.version) } ?? "unknown"
        versionNumber = Int(info?.version_num ?? 0)
        tlsLibrary = info?.ssl_version.flatMap { String(validatingCString: $0) }
        let features = info?.features ?? 0
        supportsHTTP2 = features & CURL_VERSION_HTTP2 != 0
        supportsNTLM = features & CURL_VERSION_NTLM != 0
        supportsNegotiate = features & CURL_VERSION_SPNEGO != 0
    }

    /// From 8.3 on HTTP/2 is sound: before, large uploads may spin or hang, and streams hang whose shared connection ends.
    package var hasReliableHTTP2: Bool { versionNumber >= 0x080300 }

    /// Before 8.0 a second transfer on an HTTP/2 connection without TLS fails.
    package var canReusePriorKnowledge: Bool { versionNumber >= 0x080000 }
}
