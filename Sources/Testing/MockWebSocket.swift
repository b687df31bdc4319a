// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewLoopback
import CurlewTransport

extension MockConnection {
    /// Accepts the handshake of a WebSocket (RFC 6455, section 4.2), without extensions.
    ///
    /// ```swift
    /// mock.onStream("example.org:443") { connection in
    ///     let socket = try await connection.acceptWebSocket()
    ///     while let message = try await socket.receive() { await socket.send(message) }
    /// }
    /// ```
    ///
    /// - Parameter subprotocol: the subprotocol to agree on; `nil`, the default, for none.
    /// - Throws: ``MockWebSocketError`` for what is no handshake of a WebSocket, or if the client has closed the stream.
    public func acceptWebSocket(subprotocol: String? = nil) async throws -> MockWebSocket {
        let reader = MockStreamReader(self)
        let head = try await reader.readHead()
        guard head.request.hasBytePrefix("GET "), let key = head.headers["Sec-WebSocket-Key"] else {
            throw MockWebSocketError("is no handshake: \(head.request)")
        }
        let accept = Data(SHA1.digest(of: "\(key)258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8)).base64EncodedString()
        var response =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: \(accept)\r\n"
        if let subprotocol { response += "Sec-WebSocket-Protocol: \(subprotocol)\r\n" }
        await send(Data("\(response)\r\n".utf8))
        let target = head.request.splitScalars(separator: " ").dropFirst().first.map(String.init) ?? ""
        return MockWebSocket(self, reader, target: target, headers: head.headers)
    }
}

/// The server's side of a WebSocket at a ``MockTransport``. For one task.
public final class MockWebSocket: Sendable {
    /// A message.
    public enum Message: Sendable, Hashable {
        /// Text in UTF-8.
        case text(String)
        /// Bytes.
        case binary(Data)
    }

    private enum Opcode: UInt8 {
        case continuation = 0
        case text = 1
        case binary = 2
        case close = 8
        case ping = 9
        case pong = 10
    }

    /// The path and the query of the handshake.
    public let target: String
    /// The header fields of the handshake.
    public let headers: HTTPHeaders
    private let connection: MockConnection
    private let reader: MockStreamReader
    private let isClosed = Lock(false)

    fileprivate init(_ connection: MockConnection, _ reader: MockStreamReader, target: String, headers: HTTPHeaders) {
        self.connection = connection
        self.reader = reader
        self.target = target
        self.headers = headers
    }

    /// Returns the next message; `nil` when the client closes the WebSocket, which is acknowledged. Pings are answered.
    ///
    /// - Throws: ``MockWebSocketError`` for a frame that violates the protocol, or if the stream ends without a close frame.
    public func receive() async throws -> Message? {
        var message = Data()
        var kind: Opcode?
        while true {
            let (isLast, opcode, payload) = try await readFrame()
            switch opcode {
            case .ping: await send(.pong, payload)
            case .pong: break
            case .close:
                if !isClosed.withLock({ $0 }) { await send(.close, payload.prefix(2)) }
                return nil
            case .text, .binary, .continuation:
                guard (opcode == .continuation) == (kind != nil) else { throw MockWebSocketError("has fragments out of order") }
                kind = kind ?? opcode
                message += payload
                guard isLast else { continue }
                guard kind == .text else { return .binary(message) }
                guard let text = String(data: message, encoding: .utf8) else { throw MockWebSocketError("has text that is not UTF-8") }
                return .text(text)
            }
        }
    }

    /// Sends a message.
    public func send(_ message: Message) async {
        switch message {
        case .text(let text): await send(.text, Data(text.utf8))
        case .binary(let data): await send(.binary, data)
        }
    }

    /// Sends text.
    public func send(_ text: String) async { await send(.text(text)) }

    /// Sends a ping.
    public func ping(_ payload: Data = Data()) async { await send(.ping, payload) }

    /// Closes the WebSocket with a status code (RFC 6455, section 7.4), and waits for the client's close frame.
    public func close(code: UInt16 = 1000, reason: String = "") async {
        isClosed.withLock { $0 = true }
        await send(.close, Data([UInt8(code >> 8), UInt8(code & 0xFF)]) + Data(reason.utf8))
        while (try? await receive()) != nil {}
    }

    // MARK: Frames

    private func send(_ opcode: Opcode, _ payload: Data) async {
        var frame = Data([0x80 | opcode.rawValue])
        switch payload.count {
        case ..<126: frame.append(UInt8(payload.count))
        case ..<65_536: frame += [126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        default: frame += [127] + (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
        }
        await connection.send(frame + payload)
    }

    private func readFrame() async throws -> (isLast: Bool, Opcode, Data) {
        let head = [UInt8](try await reader.read(2))
        guard head[0] & 0x70 == 0, let opcode = Opcode(rawValue: head[0] & 0x0F), head[1] & 0x80 != 0 else {
            throw MockWebSocketError("has an invalid frame: \(head)")
        }
        var length = Int(head[1] & 0x7F)
        if length >= 126 {
            length = try await reader.read(length == 126 ? 2 : 8).reduce(0) { $0 << 8 | Int($1) }
        }
        guard (0...(64 << 20)).contains(length) else { throw MockWebSocketError("has a frame of \(length) bytes") }
        let mask = [UInt8](try await reader.read(4))
        var payload = try await reader.read(length)
        for (position, index) in payload.indices.enumerated() { payload[index] ^= mask[position % 4] }
        return (head[0] & 0x80 != 0, opcode, payload)
    }
}

/// What a client has sent to a ``MockWebSocket`` violates the protocol, or ends too early.
public struct MockWebSocketError: LocalizedError, Sendable, Hashable, CustomStringConvertible {
    /// What is wrong.
    public let description: String

    /// The same text.
    public var errorDescription: String? { description }

    init(_ reason: String) {
        description = "What the client has sent \(Redaction.escaped(reason))"
    }
}

/// Reads the bytes of a stream in the amounts that are needed. For one task.
private final class MockStreamReader: Sendable {
    private let connection: MockConnection
    private let buffer = Lock(Data())

    init(_ connection: MockConnection) {
        self.connection = connection
    }

    func read(_ count: Int) async throws -> Data {
        while buffer.withLock({ $0.count < count }) { try await fill() }
        return buffer.withLock { buffer in
            let bytes = Data(buffer.prefix(count))
            buffer = Data(buffer.dropFirst(count))
            return bytes
        }
    }

    func readHead() async throws -> (request: String, headers: HTTPHeaders) {
        let separator = Data("\r\n\r\n".utf8)
        while true {
            if let end = buffer.withLock({ $0.range(of: separator) }) {
                let lines = String(decoding: try await read(end.upperBound), as: UTF8.self).components(separatedBy: "\r\n")
                let fields = lines.dropFirst().compactMap { line -> HTTPHeader? in
                    let parts = line.splitScalars(separator: ":", maxSplits: 1)
                    guard parts.count == 2 else { return nil }
                    return HTTPHeader(name: String(parts[0]), value: parts[1].trimmingCharacters(in: .whitespaces))
                }
                return (lines.first ?? "", HTTPHeaders(fields))
            }
            guard buffer.withLock({ $0.count < 65_536 }) else { throw MockWebSocketError("has a head over 64 KiB") }
            try await fill()
        }
    }

    private func fill() async throws {
        guard let bytes = await connection.receive() else { throw MockWebSocketError("has ended") }
        buffer.withLock { $0 += bytes }
    }
}
