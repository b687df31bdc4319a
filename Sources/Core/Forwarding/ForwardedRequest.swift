// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// A request that a gateway has received and forwards to another server.
public struct ForwardedRequest: Sendable {
    /// In which fields the server learns who the client is.
    public enum ClientFields: Sendable, Hashable, CaseIterable {
        /// `X-Forwarded-For`, `X-Forwarded-Host` and `X-Forwarded-Proto`.
        case xForwarded
        /// `Forwarded` (RFC 7239).
        case forwarded
        /// In none.
        case none
    }

    /// The names of all fields that say who the client is.
    private static let clientFieldNames = [
        "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Real-IP",
    ]

    /// The method, as it was received.
    public var method: HTTPMethod
    /// The URL to which the request is forwarded.
    public var url: String
    /// The header fields, as they were received.
    public var headers: HTTPHeaders
    /// The address of the client, such as `192.0.2.1` or `2001:db8::1`; `nil`, the default, if it is unknown.
    public var client: String?
    /// The scheme by which the request was received; `http` by default.
    public var scheme = "http"
    /// In which fields the server learns ``client``, ``scheme`` and the host of the request that was received; `.xForwarded` by default.
    public var clientFields = ClientFields.xForwarded
    /// Whether the fields of that kind which were received are kept, and the client is added to them; `false` by default, which removes them,
    /// as any client can send them. For gateways behind another one.
    public var trustsClientFields = false
    /// Whether the server gets the `Host` that was received; `false` by default, for that of ``url``.
    public var keepsHost = false
    /// The name of the gateway in `Via` (RFC 9110, section 7.6.3), a token; `curlew` by default.
    public var gatewayName = "curlew"
    /// The version of the protocol by which the request was received, for `Via`; `1.1` by default.
    public var receivedVersion = "1.1"

    /// Creates the request.
    ///
    /// - Parameters:
    ///   - method: the method, as it was received.
    ///   - url: the URL to which the request is forwarded.
    ///   - headers: the header fields, as they were received.
    ///   - client: the address of the client; `nil`, the default, if it is unknown.
    public init(_ method: HTTPMethod, to url: String, headers: HTTPHeaders, client: String? = nil) {
        (self.method, self.url, self.headers, self.client) = (method, url, headers, client)
    }

    /// The header fields that are forwarded: without those of the connection, and with those that name the client.
    ///
    /// `Content-Length` and `Expect` are not among them, as they belong to the exchange that is made for it.
    public var forwardedHeaders: HTTPHeaders {
        var fields = headers.removingConnectionFields()
        for name in ["Host", "Content-Length", "Expect"] { fields.remove(name: name) }
        if !trustsClientFields { for name in Self.clientFieldNames { fields.remove(name: name) } }
        // HTTP/2 sends pairs by themselves (RFC 9113, section 8.2.3).
        let cookies = fields.values(for: "Cookie")
        if cookies.count > 1 { fields.update(name: "Cookie", value: cookies.joined(separator: "; ")) }
        let host = headers["Host"]
        switch clientFields {
        case .none: break
        case .xForwarded:
            if let client { fields.appendMember(client, to: "X-Forwarded-For") }
            if let host, fields["X-Forwarded-Host"] == nil { fields.append(name: "X-Forwarded-Host", value: host) }
            if fields["X-Forwarded-Proto"] == nil { fields.append(name: "X-Forwarded-Proto", value: scheme) }
        case .forwarded:
            let node = client.map { $0.utf8.contains(UInt8(ascii: ":")) ? $0.bracketed : $0 } ?? "unknown"
            let pairs = [("for", node), ("host", host), ("proto", scheme)]
            let element = pairs.compactMap { name, value in value.map { "\(name)=\(HTTPToken.isToken($0) ? $0 : $0.quotedString)" } }
            fields.appendMember(element.joined(separator: ";"), to: "Forwarded")
        }
        fields.appendMember("\(receivedVersion) \(gatewayName)", to: "Via")
        if keepsHost, let host { fields.append(name: "Host", value: host) }
        return fields
    }
}

extension HTTPHeaders {
    /// The fields that concern one connection only (RFC 9110, sections 7.6.1 and 11.7, and RFC 9113, section 3.1).
    private static let connectionFieldNames = [
        "Connection", "Proxy-Connection", "Keep-Alive", "TE", "Transfer-Encoding", "Upgrade", "HTTP2-Settings", "Proxy-Authenticate",
        "Proxy-Authorization", "Proxy-Authentication-Info",
    ]

    /// Returns the fields that an intermediary forwards: without those that concern one connection only, and those that `Connection` names
    /// (RFC 9110, section 7.6.1).
    public func removingConnectionFields() -> HTTPHeaders {
        var fields = self
        for name in members(of: "Connection").map(String.init) + Self.connectionFieldNames { fields.remove(name: name) }
        return fields
    }

    /// Adds a member at the end of a field that is a list.
    fileprivate mutating func appendMember(_ member: String, to name: String) {
        update(name: name, value: (values(for: name) + [member]).joined(separator: ", "))
    }
}
