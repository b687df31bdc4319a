// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import CurlewTransport

/// An exchange of the conformance suite, by the behaviour of its host. Bodies are those of `GeneratedBody` with a seed, by which a byte of
/// another transfer, or of another place, is recognized.
package enum ExchangeKind: String, Sendable, CaseIterable {
    case empty
    case small
    /// In many pieces.
    case large
    case chunked
    /// With a pause before each piece.
    case slow
    /// Without a body, as it responds to `HEAD`.
    case head
    /// The response may be served from a cache.
    case fresh
    /// The response may be served from a cache once it was validated.
    case validated
    /// With an interim response before it.
    case hinted
    /// A request with a body.
    case upload
    /// The port is closed.
    case refused
    /// The connection ends within the head.
    case cutHead
    /// The connection ends within the body.
    case cutBody
    /// No response.
    case silent
    /// The head of a response, and no byte of its body.
    case headOnly

    /// What becomes of the exchange if it is left alone.
    package enum Outcome: Sendable {
        case response
        case failure
        case none
    }

    package var outcome: Outcome {
        switch self {
        case .refused, .cutHead, .cutBody: .failure
        case .silent, .headOnly: .none
        default: .response
        }
    }

    /// The length of the response's body, as it is announced.
    package var length: Int {
        switch self {
        case .empty, .refused, .cutHead, .silent: 0
        case .small, .head: 300
        case .large: 100_000
        default: 20_000
        }
    }

    /// How much of the body is received if the exchange is left alone.
    package var receivedLength: Int { self == .head || self == .headOnly ? 0 : self == .cutBody ? length / 2 : length }

    /// The length of the request's body.
    package var sentLength: Int { self == .upload ? 100_000 : 0 }

    /// Those that end by themselves.
    package static let ending = allCases.filter { $0.outcome != .none }

    package func path(seed: UInt64) -> String { "/\(rawValue)/\(seed)" }

    /// The kind and the seed of a path; `nil` for one of none.
    package static func parse(_ path: String) -> (kind: ExchangeKind, seed: UInt64)? {
        let parts = path.split(separator: "/")
        guard parts.count == 2, let kind = ExchangeKind(rawValue: String(parts[0])), let seed = UInt64(parts[1]) else { return nil }
        return (kind, seed)
    }

    package func request(url: String, seed: UInt64) -> TransferRequest {
        let data = GeneratedBody(seed: seed).data(count: sentLength)
        var request = TransferRequest(url: url, method: self == .upload ? .put : self == .head ? .head : .get)
        if self == .upload { request.body = DataBody(data) }
        request.options.proxy = .none
        return request
    }

    fileprivate var cacheFields: [(String, String)] {
        switch self {
        case .fresh: [("Cache-Control", "max-age=600")]
        case .validated: [("Cache-Control", "no-cache"), ("ETag", "\"1\"")]
        default: []
        }
    }
}

// MARK: - Hosts

extension ExchangeKind {
    /// Starts a server on the loopback for all kinds but ``refused``.
    package static func makeServer() throws -> LoopbackServer {
        try LoopbackServer(bodies: { _ in .counted }, recording: false) { request, connection in
            guard let (kind, seed) = parse(request.path) else { return .status(404) }
            return try kind.respond(seed, to: request, on: connection)
        }
    }

    private func respond(_ seed: UInt64, to request: ServerRequest, on connection: ServerConnection) throws -> ServerResponse? {
        let body = GeneratedBody(seed: seed)
        switch self {
        case .upload:
            let isWhole = request.bodyLength == Int64(sentLength) && request.bodyChecksum == body.checksum(count: Int64(sentLength))
            return isWhole ? .ok(body.data(count: length)) : .status(400)
        case .validated where request.header("If-None-Match") == "\"1\"":
            return .status(304, headers: [ServerField("ETag", "\"1\"")])
        case .hinted:
            try connection.sendInterim(103)
            return .ok(body.data(count: length))
        case .chunked:
            let pieces = stride(from: 0, to: length, by: 1_000).map { body.data(offset: Int64($0), count: min(1_000, length - $0)) }
            return ServerResponse(status: 200, body: .chunked(pieces))
        case .slow:
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n")
            for part in 0..<4 {
                guard connection.pause(for: .milliseconds(1)) else {
                    connection.close()
                    break
                }
                try connection.send(raw: body.data(offset: Int64(part * length / 4), count: length / 4))
            }
        case .cutHead:
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Le")
            connection.close()
        case .cutBody:
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n")
            try connection.send(raw: body.data(count: length / 2))
            connection.close()
        case .silent: connection.waitUntilClosed()
        case .headOnly:
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n")
            connection.waitUntilClosed()
        default:
            let fields = cacheFields.map { ServerField($0.0, $0.1) }
            return ServerResponse(status: 200, headers: fields, body: .data(body.data(count: length)))
        }
        return nil
    }

    /// Makes a transport that responds from memory.
    package static func makeMock() -> MockTransport {
        let mock = MockTransport()
        mock.stub { request in
            guard let (kind, seed) = parse(request.path) else { return .status(404) }
            return kind.response(seed, to: request)
        }
        return mock
    }

    private func response(_ seed: UInt64, to request: MockRequest) -> MockResponse {
        let body = GeneratedBody(seed: seed).data(count: length)
        let response = MockResponse.data(body, headers: HTTPHeaders(cacheFields.map { HTTPHeader(name: $0.0, value: $0.1) }))
        switch self {
        case .upload:
            let isWhole = request.body.count == sentLength && GeneratedBody(seed: seed).matches(request.body)
            return isWhole ? response : .status(400)
        case .validated where request.headers["If-None-Match"] == "\"1\"": return .status(304).header("ETag", "\"1\"")
        case .hinted: return response.interim(103)
        case .large, .chunked: return response.inPieces(of: length / 20)
        case .slow: return response.inPieces(of: length / 4, every: .milliseconds(1))
        case .refused: return .failure(.connect)
        case .cutHead: return .failure(.connectionLost)
        case .cutBody: return response.failing(after: length / 2)
        case .silent: return .stalled
        case .headOnly: return response.stalling(after: 0)
        default: return response
        }
    }

    /// The steps of the exchange for a scripted transport.
    package func steps(seed: UInt64) -> [ScriptedTransport.Step] {
        let body = GeneratedBody(seed: seed)
        let pieces = stride(from: 0, to: receivedLength, by: 4_000).flatMap { offset -> [ScriptedTransport.Step] in
            let data = body.data(offset: Int64(offset), count: min(4_000, receivedLength - offset))
            return self == .slow ? [.wait(.milliseconds(1)), .bytes(data)] : [.bytes(data)]
        }
        let error = CurlewError.transferFailed(TransferFailure(kind: .connectionLost, url: "", phase: .waiting, message: "A script"))
        switch self {
        case .refused, .cutHead: return [.complete(error)]
        case .silent: return [.stall]
        case .headOnly: return [.head(200), .stall]
        case .cutBody: return [.head(200)] + pieces + [.complete(error)]
        case .hinted: return [.interim(ResponseHead(statusCode: 103)), .head(200)] + pieces + [.complete()]
        default: return [.sendBody, .head(200)] + pieces + [.complete()]
        }
    }
}
