// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport

typealias HandshakeViolation = WebSocketError.HandshakeFailureReason

extension WebSocketError.HandshakeFailureReason: Error {}

extension WebSocketHandshake {
    private static let guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

    /// Returns the value of `Sec-WebSocket-Accept` for a key (RFC 6455, section 4.2.2).
    package static func accept(for key: String) -> String {
        Data(SHA1.digest(of: (key + guid).utf8)).base64EncodedString()
    }

    /// Validates a response with status 101, and returns the handshake with the negotiated compression.
    static func validate(
        _ response: ResponseHead, for request: HandshakeRequest
    ) throws(HandshakeViolation) -> (WebSocketHandshake, DeflateAgreement?) {
        let headers = response.headers
        guard response.httpVersion == "HTTP/1.1", headers.tokens("Upgrade").contains("websocket"),
            headers.tokens("Connection").contains("upgrade")
        else { throw .notUpgraded }
        guard headers.values(for: "Sec-WebSocket-Accept") == [accept(for: request.key)] else { throw .wrongAccept }
        let subprotocol = headers.value(for: "Sec-WebSocket-Protocol")
        if let subprotocol, !request.subprotocols.contains(subprotocol) { throw .unexpectedSubprotocol(subprotocol) }
        let agreement = try agreement(headers.values(for: "Sec-WebSocket-Extensions"), request.compression)
        return (WebSocketHandshake(response: response, subprotocol: subprotocol, isCompressed: agreement != nil), agreement)
    }

    private static func agreement(
        _ values: [String], _ offer: WebSocketCompression?
    ) throws(HandshakeViolation) -> DeflateAgreement? {
        var agreement: DeflateAgreement?
        for value in values {
            guard let extensions = WebSocketExtension.parse(value) else { throw .invalidExtension(value) }
            for accepted in extensions {
                guard let offer, accepted.name == DeflateAgreement.name, agreement == nil else { throw .invalidExtension(accepted.name) }
                agreement = try DeflateAgreement(accepted.parameters, offer: offer)
            }
        }
        return agreement
    }
}

/// A parameter of an extension.
struct ExtensionParameter: Sendable, Hashable {
    let name: String
    let value: String?
}

/// An extension accepted by the server (RFC 6455, section 9.1).
struct WebSocketExtension: Sendable, Hashable {
    let name: String
    let parameters: [ExtensionParameter]

    /// Parses the extensions of a field's value; `nil` if it is malformed. Values may be quoted, but must be tokens nevertheless.
    static func parse(_ value: String) -> [WebSocketExtension]? {
        var result: [WebSocketExtension] = []
        var parser = FieldParser(value)
        repeat {
            parser.skipBlanks()
            // Empty list elements are ignored (RFC 9110, section 5.6.1).
            if parser.isAtEnd || parser.next == UInt8(ascii: ",") { continue }
            guard let name = parser.takeToken() else { return nil }
            parser.skipBlanks()
            var parameters: [ExtensionParameter] = []
            while parser.skip(";") {
                parser.skipBlanks()
                guard let (name, value) = parser.takeParameter(), value.map(HTTPToken.isToken) ?? true else { return nil }
                parameters.append(ExtensionParameter(name: String(name), value: value))
            }
            result.append(WebSocketExtension(name: String(name), parameters: parameters))
        } while parser.skip(",")
        return parser.isAtEnd ? result : nil
    }
}

extension HTTPHeaders {
    /// Returns the members of a token list, in lowercase.
    fileprivate func tokens(_ name: String) -> [String] { members(of: name).map { $0.lowercased() } }
}
