// SPDX-License-Identifier: Apache-2.0

/// A WebSocket server on 127.0.0.1 for tests: one thread a connection, and any misbehaviour one asks for.
///
/// ```swift
/// let server = try WebSocketServer(accept: WebSocketHandshake.accept(for:)) { peer in
///     while let frame = try peer.receive(), frame.opcode != .close { try peer.send(frame.opcode, frame.payload) }
///     try peer.send(.close)
/// }
/// ```
public final class WebSocketServer: Sendable {
    /// Serves a connection behind its handshake, on the connection's own thread; when it returns, or throws, the connection closes.
    public typealias Script = @Sendable (WebSocketPeer) throws -> Void

    private let listener: SocketListener
    private let journal: Monitor<[ServerRequest]>

    /// Starts a server on a port that the system chooses.
    ///
    /// - Parameters:
    ///   - accept: what `Sec-WebSocket-Accept` has to be for a key.
    ///   - answer: the whole head that answers a handshake, in place of a proper one; `nil` for that.
    ///   - fields: further fields of the proper one.
    ///   - script: what becomes of each connection.
    public init(
        accept: @escaping @Sendable (String) -> String, answer: @escaping @Sendable (ServerRequest) -> String? = { _ in nil },
        fields: @escaping @Sendable (ServerRequest) -> [String] = { _ in [] }, script: @escaping Script
    ) throws {
        let journal = Monitor<[ServerRequest]>([])
        self.journal = journal
        listener = try SocketListener { socket, number in
            let peer = WebSocketPeer(socket: socket, number: number)
            guard let head = try? peer.readHead() else { return }
            journal.update { $0.append(head) }
            let key = accept(head.header("Sec-WebSocket-Key") ?? "")
            let lines =
                ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Accept: \(key)"]
                + fields(head)
            let text = answer(head) ?? lines.map { $0 + "\r\n" }.joined() + "\r\n"
            try? peer.send(raw: Data(text.utf8))
            try? script(peer)
            // A client that still sends must not get a reset for it, which could take from it what was sent before.
            socket.shutDownWriting()
            socket.drain(timeout: .seconds(2))
        }
    }

    deinit {
        stop()
    }

    /// The port on 127.0.0.1.
    public var port: Int { listener.port }

    /// `ws://127.0.0.1:port` and the path.
    public func url(_ path: String = "/") -> String { "ws://127.0.0.1:\(port)\(path)" }

    /// The handshakes so far.
    public var requests: [ServerRequest] { journal.read { $0 } }

    /// Waits until no connection is open; false if the time ran out first.
    @discardableResult
    public func waitForConnectionsToClose(timeout: Duration = .seconds(10)) async -> Bool {
        await offThePool { [listener] in listener.waitForConnectionsToClose(timeout: timeout) }
    }

    /// Closes the port and all connections and joins every thread, in at most `timeout`. Again does nothing.
    public func stop(timeout: Duration = .seconds(10)) {
        listener.stop(timeout: timeout)
    }
}

/// A frame from a client, unmasked.
public struct ClientFrame: Sendable, Hashable {
    /// Whether it is a message's last.
    public let isFinal: Bool
    /// Whether the first reserved bit is set.
    public let isCompressed: Bool
    /// What it is.
    public let opcode: WebSocketPeer.Opcode
    /// What was masked.
    public let payload: Data
}

/// A client's connection; on its thread, but for `gone`.
public final class WebSocketPeer {
    /// What a frame is (RFC 6455, section 5.2).
    public enum Opcode: UInt8, Sendable {
        case continuation = 0x0
        case text = 0x1
        case binary = 0x2
        case close = 0x8
        case ping = 0x9
        case pong = 0xA
    }

    /// A client that breaks the rules.
    public struct Violation: Error {
        let reason: String
    }

    /// The connection's number: 1 for the first that the server accepted.
    public let number: Int
    private let socket: ConnectedSocket
    private let reader: RequestReader

    init(socket: ConnectedSocket, number: Int) {
        self.socket = socket
        self.number = number
        reader = RequestReader(socket: socket)
    }

    // MARK: Sending

    /// Sends a frame.
    public func send(_ opcode: Opcode, _ payload: Data = Data(), isFinal: Bool = true, isCompressed: Bool = false) throws {
        try send(raw: Self.frame(opcode, payload, isFinal: isFinal, isCompressed: isCompressed))
    }

    /// Sends a close frame.
    public func sendClose(_ code: UInt16, _ reason: String = "") throws {
        try send(.close, Data([UInt8(code >> 8), UInt8(code & 0xFF)]) + Data(reason.utf8))
    }

    /// Sends bytes as they are.
    public func send(raw bytes: Data) throws {
        try socket.send(bytes)
    }

    /// The bytes of a frame.
    public static func frame(_ opcode: Opcode, _ payload: Data = Data(), isFinal: Bool = true, isCompressed: Bool = false) -> Data {
        var frame = Data([(isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0) | opcode.rawValue])
        switch payload.count {
        case ...125: frame.append(UInt8(payload.count))
        case ...0xFFFF:
            frame.append(126)
            withUnsafeBytes(of: UInt16(payload.count).bigEndian) { frame.append(contentsOf: $0) }
        default:
            frame.append(127)
            withUnsafeBytes(of: UInt64(payload.count).bigEndian) { frame.append(contentsOf: $0) }
        }
        return frame + payload
    }

    // MARK: Receiving

    /// The next frame; `nil` when the client has ended the connection.
    public func receive() throws -> ClientFrame? {
        guard let start = try? read(2) else { return nil }
        guard start[1] & 0x80 != 0, let opcode = Opcode(rawValue: start[0] & 0x0F) else { throw Violation(reason: "no client's frame") }
        let sizeOfLength = start[1] & 0x7F == 127 ? 8 : start[1] & 0x7F == 126 ? 2 : 0
        let lengthBytes = sizeOfLength == 0 ? Data([start[1] & 0x7F]) : try read(sizeOfLength)
        let length = lengthBytes.reduce(0) { $0 << 8 | Int($1) }
        let mask = try read(4)
        var payload = try read(length)
        payload.withUnsafeMutableBytes { bytes in
            for index in bytes.indices { bytes[index] ^= mask[index & 3] }
        }
        return ClientFrame(isFinal: start[0] & 0x80 != 0, isCompressed: start[0] & 0x40 != 0, opcode: opcode, payload: payload)
    }

    /// Sends every message back, frame by frame, and answers pings, until the client closes.
    public func echo() throws {
        while let frame = try receive() {
            switch frame.opcode {
            case .close: return try send(.close, frame.payload)
            case .ping: try send(.pong, frame.payload)
            case .pong: break
            default: try send(frame.opcode, frame.payload, isFinal: frame.isFinal, isCompressed: frame.isCompressed)
            }
        }
    }

    /// Answers the client's close frame, passing over what comes before.
    public func answerClose() throws {
        while let frame = try receive() {
            if frame.opcode == .close { return try send(.close, frame.payload) }
        }
    }

    /// Waits for a test to open `gate`: whether it did. False also when the client has gone or the server stops.
    @discardableResult
    public func wait(until gate: Gate, timeout: Duration = .seconds(30)) -> Bool {
        gate.wait(on: socket, timeout: timeout)
    }

    /// Says nothing until the client has gone or the server stops.
    public func waitUntilClosed() {
        socket.drain()
    }

    /// Has the connection end with a reset.
    public func reset() {
        socket.prepareReset()
        socket.close()
    }

    fileprivate func readHead() throws -> ServerRequest? {
        try reader.readHead().map { ServerRequest(head: $0, connection: number, sequence: 1) }
    }

    private func read(_ count: Int) throws -> Data {
        var sink = BodySink(keeps: true)
        try reader.readBody(length: Int64(count), into: &sink)
        return sink.data
    }
}
