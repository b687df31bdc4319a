// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport

typealias HandshakeViolation = WebSocketError.HandshakeFailureReason

extension WebSocketError.HandshakeFailureReason: Error {}

/// Parses the server's response to a handshake from the received bytes.
///
/// A value type without a connection, so that it can be fuzzed (`Tests/FuzzTests`).
struct HandshakeReader {
    /// The maximum size of the head, and of a rejection's body, in bytes.
    static let limit = 64 << 10

    enum Result {
        /// Status 101; `rest` starts with the first frame.
        case switched(ResponseHead, rest: Data)
        case rejected(WebSocketRejection)

        var response: ResponseHead {
            switch self {
            case .switched(let response, _): response
            case .rejected(let rejection): rejection.response
            }
        }
    }

    /// The most interim responses before the final one.
    private static let mostInterimResponses = 32

    private var bytes = Data()
    private var rejection: ResponseHead?
    private var interimCount = 0
    /// The bytes of the heads so far, interim ones included.
    private(set) var headBytes = 0
    /// The bytes of a rejection's body so far.
    var bodyBytes: Int { rejection == nil ? 0 : bytes.count }

    /// Appends received bytes and returns the result; `nil` if more bytes are needed.
    mutating func feed(_ piece: Data) throws(HandshakeViolation) -> Result? {
        bytes.append(piece)
        while rejection == nil {
            guard let head = try takeHead() else { return nil }
            if head.statusCode == 101 { return .switched(head, rest: bytes) }
            guard head.statusCode < 200 else {
                rejection = head
                break
            }
            // Other interim responses are skipped (RFC 9110, section 15.2).
            interimCount += 1
            guard interimCount <= Self.mostInterimResponses else { throw .invalidResponse }
        }
        guard let rejection else { return nil }
        let length = rejection.value(for: "Transfer-Encoding") == nil ? rejection.value(for: "Content-Length").flatMap { Int($0) } ?? 0 : 0
        let wanted = min(max(length, 0), Self.limit)
        return bytes.count < wanted ? nil : .rejected(WebSocketRejection(response: rejection, body: bytes.prefix(wanted)))
    }

    /// Returns the result when the connection has ended: a rejection whose body is incomplete, without that body.
    func end() -> Result? {
        rejection.map { .rejected(WebSocketRejection(response: $0, body: Data())) }
    }

    /// Removes the next head from the bytes and returns it; `nil` if more bytes are needed.
    private mutating func takeHead() throws(HandshakeViolation) -> ResponseHead? {
        guard looksLikeHTTP else { throw .invalidResponse }
        let blankLine = bytes.firstRange(of: Data("\r\n\r\n".utf8))
        guard let blankLine, blankLine.upperBound - bytes.startIndex <= Self.limit else {
            guard bytes.count <= Self.limit else { throw .invalidResponse }
            return nil
        }
        guard let head = ResponseHead(bytes: Array(bytes[..<(blankLine.lowerBound + 2)])) else { throw .invalidResponse }
        headBytes += blankLine.upperBound - bytes.startIndex
        bytes = Data(bytes[blankLine.upperBound...])
        return head
    }

    /// Whether the first bytes start an HTTP response; checked early so that a peer with another protocol fails at once, not on the
    /// timeout.
    private var looksLikeHTTP: Bool { zip(bytes, "HTTP/1.".utf8).allSatisfy { $0 == $1 } }
}

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
