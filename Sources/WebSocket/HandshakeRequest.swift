// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// The client's handshake (RFC 6455, section 4.1), validated and serialized.
struct HandshakeRequest: Sendable {
    /// Header fields that the handshake sets itself, or that would break it.
    static let ownFields = [
        "Connection", "Upgrade", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Extensions", "Sec-WebSocket-Accept",
        "Content-Length", "Transfer-Encoding",
    ]

    let host: String
    let port: Int
    let isSecure: Bool
    /// The random key; the server proves with its response that it has read it.
    let key: String
    let subprotocols: [String]
    /// The URL with an HTTP scheme, for which cookies are sent and stored; `nil` if the request does not handle cookies.
    let cookieURL: String?
    let compression: WebSocketCompression?
    /// The fields of the request, without those that the handshake sets itself.
    let headers: HTTPHeaders
    private let target: Target

    /// Makes the handshake for a request, after the adapters have modified it.
    ///
    /// - Parameters:
    ///   - defaults: fields that are added unless the request has one of that name.
    ///   - cookies: returns the value of `Cookie` for a URL, given the user's.
    init(
        _ request: URLRequest, subprotocols: [String], defaults: HTTPHeaders, compression: WebSocketCompression?,
        cookies: (_ url: String, _ given: String?) -> String? = { $1 }, key: String = HandshakeRequest.makeKey()
    ) throws(WebSocketError) {
        guard request.httpMethod ?? "GET" == "GET", request.httpBody == nil, request.httpBodyStream == nil else {
            throw .invalidRequest(reason: .notAGet)
        }
        target = try Target(request.url)
        var headers = HTTPHeaders(request.allHTTPHeaderFields ?? [:])
        let named = headers.values(for: "Sec-WebSocket-Protocol").flatMap {
            $0.splitScalars(separator: ",").map { String($0.trimmingBlanks) }
        }
        headers.remove(name: "Sec-WebSocket-Protocol")
        self.subprotocols = subprotocols + named
        try Self.check(headers, self.subprotocols)
        for header in defaults where headers[header.name] == nil && !header.isOneOf(Self.ownFields + ["Accept-Encoding"]) {
            headers.append(header)
        }
        if headers["Authorization"] == nil, let authorization = target.authorization { headers.append(authorization) }
        cookieURL = request.httpShouldHandleCookies ? target.httpURL : nil
        if let cookieURL { headers["Cookie"] = cookies(cookieURL, headers["Cookie"]) }
        host = target.host
        port = target.port
        isSecure = target.isSecure
        self.key = key
        self.compression = compression
        self.headers = headers
    }

    /// The URL, without user name and password.
    var url: String { target.url }

    /// Returns the request's fields: those that the handshake sets itself, and the others of these, which are ``headers``, or what the
    /// session's instruments have made of them.
    func fields(with given: HTTPHeaders) -> HTTPHeaders {
        var fields: HTTPHeaders = [
            "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": key, "Sec-WebSocket-Version": "13",
        ]
        if !subprotocols.isEmpty { fields.append(name: "Sec-WebSocket-Protocol", value: subprotocols.joined(separator: ", ")) }
        if let compression { fields.append(name: "Sec-WebSocket-Extensions", value: DeflateAgreement.offer(compression)) }
        for field in given where !field.isOneOf(Self.ownFields) { fields.append(field) }
        return fields
    }

    /// Returns the request's head with ``fields(with:)``.
    func bytes(with given: HTTPHeaders) -> Data {
        var lines = ["GET \(target.pathAndQuery) HTTP/1.1", "Host: \(given["Host"] ?? target.hostField)"]
        lines += fields(with: given).filter { !$0.isNamed("Host") }.map { "\($0.name): \($0.value)" }
        return Data((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    /// Returns 16 random bytes in Base64.
    static func makeKey() -> String {
        var random = SystemRandomNumberGenerator()
        return Data((0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }).base64EncodedString()
    }

    private static func check(_ headers: HTTPHeaders, _ subprotocols: [String]) throws(WebSocketError) {
        if let header = headers.first(where: { !$0.isValid || $0.isOneOf(ownFields) }) {
            throw .invalidRequest(reason: .invalidHeader(name: header.name))
        }
        for (index, name) in subprotocols.enumerated() where !HTTPToken.isToken(name) || subprotocols[..<index].contains(name) {
            throw .invalidRequest(reason: .invalidSubprotocol(name))
        }
    }

    /// The parts of a WebSocket URL (RFC 6455, section 3).
    private struct Target {
        let host: String
        let port: Int
        let isSecure: Bool
        let pathAndQuery: String
        let authorization: HTTPHeader?

        init(_ url: URL?) throws(WebSocketError) {
            guard let url else { throw .invalidRequest(reason: .invalidURL("")) }
            let text = url.absoluteString.withoutUserInfo
            switch url.scheme?.lowercased() {
            case "ws", "http": isSecure = false
            case "wss", "https": isSecure = true
            case let scheme: throw .invalidRequest(reason: .unsupportedScheme(scheme ?? ""))
            }
            guard let parts = URLComponents(url: url, resolvingAgainstBaseURL: true), let host = parts.percentEncodedHost, !host.isEmpty,
                parts.percentEncodedFragment == nil, let host = try? URLHost.normalized(host[...])
            else { throw .invalidRequest(reason: .invalidURL(text)) }
            self.host = host.hasBytePrefix("[") ? String(host.dropFirstScalars().dropLastScalars()) : host
            port = parts.port ?? (isSecure ? 443 : 80)
            guard (1...65_535).contains(port) else { throw .invalidRequest(reason: .invalidURL(text)) }
            let path = parts.percentEncodedPath
            pathAndQuery = (path.isEmpty ? "/" : path) + (parts.percentEncodedQuery.map { "?" + $0 } ?? "")
            let field = parts.user.flatMap { Request.authorizationHeader(user: $0, password: parts.password ?? "") }
            // Basic can't send a name with a colon.
            if parts.user != nil, field == nil { throw .invalidRequest(reason: .invalidURL(text)) }
            authorization = field.map { HTTPHeader(name: $0.key, value: $0.value) }
        }

        /// The URL, without user name and password.
        var url: String { "\(isSecure ? "wss" : "ws")://\(authority)\(pathAndQuery)" }

        /// The same URL with an HTTP scheme.
        var httpURL: String { "\(isSecure ? "https" : "http")://\(authority)\(pathAndQuery)" }

        /// Host and port as in a URL, without the scheme's default port.
        private var authority: String { Self.authority(host, isDefault ? nil : port) }

        /// The same without a zone, as libcurl sends it.
        var hostField: String { Self.authority(host.withoutZone, isDefault ? nil : port) }

        private var isDefault: Bool { port == (isSecure ? 443 : 80) }

        private static func authority(_ host: String, _ port: Int?) -> String {
            let name = host.bracketed
            return port.map { "\(name):\($0)" } ?? name
        }
    }
}

extension HTTPHeader {
    fileprivate func isOneOf(_ names: [String]) -> Bool { names.contains { isNamed($0) } }
}
