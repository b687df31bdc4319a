// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// The client's handshake (RFC 6455, section 4.1), validated and serialized.
struct HandshakeRequest: Sendable {
    /// Header fields that the handshake sets itself, or that would break it.
    static let ownFields =
        UpgradeRequest.ownFields + [
            "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Extensions", "Sec-WebSocket-Accept",
        ]

    let upgrade: UpgradeRequest
    /// The random key; the server proves with its response that it has read it.
    let key: String
    let subprotocols: [String]
    /// The URL with an HTTP scheme, for which cookies are sent and stored; `nil` if the request does not handle cookies.
    let cookieURL: String?
    let compression: WebSocketCompression?

    /// Makes the handshake for a request, after the adapters have modified it.
    ///
    /// - Parameters:
    ///   - defaults: fields that are added unless the request has one of that name.
    ///   - cookies: returns the value of `Cookie` for a URL, given the user's.
    init(
        _ request: URLRequest, subprotocols: [String], defaults: HTTPHeaders, compression: WebSocketCompression?,
        cookies: @escaping (_ url: String, _ given: String?) -> String? = { $1 }, key: String = HandshakeRequest.makeKey()
    ) throws(WebSocketError) {
        guard request.httpMethod ?? "GET" == "GET", request.httpBody == nil, request.httpBodyStream == nil else {
            throw .invalidRequest(reason: .notAGet)
        }
        var headers = HTTPHeaders(request.allHTTPHeaderFields ?? [:])
        let named = headers.values(for: "Sec-WebSocket-Protocol").flatMap {
            $0.splitScalars(separator: ",").map { String($0.trimmingBlanks) }
        }
        headers.remove(name: "Sec-WebSocket-Protocol")
        self.subprotocols = subprotocols + named
        for (index, name) in self.subprotocols.enumerated() where !HTTPToken.isToken(name) || self.subprotocols[..<index].contains(name) {
            throw .invalidRequest(reason: .invalidSubprotocol(name))
        }
        var own: HTTPHeaders = ["Sec-WebSocket-Key": key, "Sec-WebSocket-Version": "13"]
        if !self.subprotocols.isEmpty { own.append(name: "Sec-WebSocket-Protocol", value: self.subprotocols.joined(separator: ", ")) }
        if let compression { own.append(name: "Sec-WebSocket-Extensions", value: DeflateAgreement.offer(compression)) }
        do throws(UpgradeRequest.Invalid) {
            upgrade = try UpgradeRequest(
                request.url, .get, headers, to: "websocket", own: own, reserved: Self.ownFields,
                schemes: ["ws": false, "http": false, "wss": true, "https": true], defaults: defaults,
                document: request.mainDocumentURL, cookies: request.httpShouldHandleCookies ? cookies : nil)
        } catch {
            switch error {
            case .url(let url): throw .invalidRequest(reason: .invalidURL(url))
            case .scheme(let scheme): throw .invalidRequest(reason: .unsupportedScheme(scheme))
            case .header(let name): throw .invalidRequest(reason: .invalidHeader(name: name))
            }
        }
        cookieURL = upgrade.handlesCookies ? upgrade.url : nil
        self.key = key
        self.compression = compression
    }

    /// The URL, without user name and password.
    var url: String { "ws" + upgrade.url.dropFirstScalars(4) }

    /// Returns 16 random bytes in Base64.
    static func makeKey() -> String {
        var random = SystemRandomNumberGenerator()
        return Data((0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }).base64EncodedString()
    }
}
