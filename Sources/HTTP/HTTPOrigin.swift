// SPDX-License-Identifier: Apache-2.0

/// The origin of a URL: scheme, host and port (RFC 6454, section 4).
public struct HTTPOrigin: Sendable, Hashable {
    /// The scheme, in lower case.
    public let scheme: String
    /// The host's name or address in normal form, so that spellings of one host make equal origins: in ASCII by IDNA, in lower case, without
    /// the dot of the root. `127.1` and other forms of an IPv4 address are four decimal numbers; an IPv6 address is compressed, without
    /// brackets.
    public let host: String
    /// The port; the scheme's default if the URL has none.
    public let port: Int

    /// Creates an origin from its parts: the scheme in any case, the host in any spelling, an IPv6 address with or without brackets.
    public init(scheme: String, host: String, port: Int) {
        self.scheme = scheme.lowercased()
        self.host = host.comparableHost
        self.port = port
    }

    /// Creates the origin of an absolute URL; user name and password are ignored.
    ///
    /// `nil` without a scheme, a host or a valid port, and for a URL without a port whose scheme is not `http`, `https`, `ws` or `wss`.
    public init?(url: String) {
        var url = url
        guard let origin = url.withUTF8({ Self(bytes: UnsafeRawBufferPointer($0)[...]) }) else { return nil }
        self = origin
    }

    /// The origin of a URL, as that of its text.
    package init?(_ url: URL) {
        self.init(url: url.absoluteString)
    }

    private init?(bytes: Slice<UnsafeRawBufferPointer>) {
        guard let (scheme, host, port) = Self.parts(of: bytes) else { return nil }
        self.scheme = scheme
        self.host = URLHost.comparable(host)
        self.port = port
    }

    /// The scheme in lower case, the host as it is written, without brackets, and the port.
    ///
    /// Not by Foundation's parser, which costs more than the rest of observing an exchange.
    package static func parts(
        of bytes: Slice<UnsafeRawBufferPointer>
    ) -> (scheme: String, host: Slice<UnsafeRawBufferPointer>, port: Int)? {
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), colon > bytes.startIndex, bytes[(colon + 1)...].starts(with: "//".utf8)
        else { return nil }
        let target = bytes[(colon + 3)...]
        let end = target.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? bytes.endIndex
        var authority = target[..<end]
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) { authority = authority[(at + 1)...] }
        var host = authority
        var port: Slice<UnsafeRawBufferPointer>?
        if authority.first == UInt8(ascii: "[") {
            guard let bracket = authority.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            host = authority[(authority.startIndex + 1)..<bracket]
            let rest = authority[(bracket + 1)...]
            guard rest.isEmpty || rest.first == UInt8(ascii: ":") else { return nil }
            port = rest.isEmpty ? nil : rest.dropFirst()
        } else if let colon = authority.lastIndex(of: UInt8(ascii: ":")) {
            host = authority[..<colon]
            port = authority[(colon + 1)...]
        }
        guard !host.isEmpty else { return nil }
        let scheme = bytes[..<colon].lowercasedText
        // A sign would be read too.
        guard port?.allSatisfy(\.isASCIIDigit) != false else { return nil }
        let number = if let port, !port.isEmpty { Int(String(decoding: port, as: UTF8.self)) } else { defaultPort(of: scheme) }
        guard let number, (0...65_535).contains(number) else { return nil }
        return (scheme, host, number)
    }

    /// The port of a scheme in lower case; `nil` for one other than those of HTTP and WebSockets.
    package static func defaultPort(of scheme: String) -> Int? {
        switch scheme {
        case "http", "ws": 80
        case "https", "wss": 443
        default: nil
        }
    }
}

extension HTTPOrigin: LineConvertible {
    /// The origin as RFC 6454, section 6.2, writes it, such as `https://example.org:8443`: without the default port of its scheme.
    package var line: String {
        "\(scheme)://\(host.bracketed)" + (port == Self.defaultPort(of: scheme) ? "" : ":\(port)")
    }
}
