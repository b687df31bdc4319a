// SPDX-License-Identifier: Apache-2.0

/// A WebSocket server on 127.0.0.1 for tests: one thread per connection, and any kind of misbehaviour.
///
/// ```swift
/// let server = try WebSocketServer(accept: WebSocketHandshake.accept(for:)) { peer in
///     while let frame = try peer.receive(), frame.opcode != .close { try peer.send(frame.opcode, frame.payload) }
///     try peer.send(.close)
/// }
/// ```
public final class WebSocketServer: Sendable {
    /// Serves a connection after its handshake, on the connection's thread; the connection is closed when it returns or throws.
    public typealias Script = @Sendable (WebSocketPeer) throws -> Void

    private let listener: SocketListener
    private let journal: Monitor<[ServerRequest]>

    /// Starts a server on a port chosen by the system.
    ///
    /// - Parameters:
    ///   - accept: returns the `Sec-WebSocket-Accept` for a key.
    ///   - answer: returns the entire head of the handshake's response; `nil` for a valid one.
    ///   - fields: additional fields of a valid response.
    ///   - script: serves each connection.
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
            // Closing while the client is sending would reset the connection, which could cost it bytes sent before.
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

    /// Waits until no connection is open. Returns false on timeout.
    @discardableResult
    public func waitForConnectionsToClose(timeout: Duration = .seconds(10)) async -> Bool {
        await offThePool { [listener] in listener.waitForConnectionsToClose(timeout: timeout) }
    }

    /// Closes the port and all connections and joins all threads, within `timeout`. Further calls do nothing.
    public func stop(timeout: Duration = .seconds(10)) {
        listener.stop(timeout: timeout)
    }
}

/// An unmasked frame from a client.
public struct ClientFrame: Sendable, Hashable {
    /// Whether it is the last frame of its message.
    public let isFinal: Bool
    /// Whether the first reserved bit is set.
    public let isCompressed: Bool
    /// The frame's opcode.
    public let opcode: WebSocketPeer.Opcode
    /// The unmasked payload.
    public let payload: Data
}

/// A client's connection. Must be used on its thread, except for `gone`.
public final class WebSocketPeer {
    /// The opcode of a frame (RFC 6455, section 5.2).
    public enum Opcode: UInt8, Sendable {
        case continuation = 0x0
        case text = 0x1
        case binary = 0x2
        case close = 0x8
        case ping = 0x9
        case pong = 0xA
    }

    /// A violation of the protocol by the client.
    public struct Violation: Error {
        let reason: String
    }

    /// The connection's number: 1 for the first one accepted by the server.
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

    /// Sends bytes verbatim.
    public func send(raw bytes: Data) throws {
        try socket.send(bytes)
    }

    /// Returns the bytes of a frame.
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

    /// Returns the next frame; `nil` if the client has closed the connection.
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

    /// Echoes every message, frame by frame, and responds to pings, until the client closes.
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

    /// Responds to the client's close frame, ignoring frames before it.
    public func answerClose() throws {
        while let frame = try receive() {
            if frame.opcode == .close { return try send(.close, frame.payload) }
        }
    }

    /// Waits for a test to open `gate`. Returns whether it was opened; false on timeout, and if the client disconnects or the server
    /// stops.
    @discardableResult
    public func wait(until gate: Gate, timeout: Duration = .seconds(30)) -> Bool {
        gate.wait(on: socket, timeout: timeout)
    }

    /// Sends nothing until the client disconnects or the server stops.
    public func waitUntilClosed() {
        socket.drain()
    }

    /// Ends the connection with a reset.
    public func reset() {
        socket.prepareReset()
        socket.close()
    }

    fileprivate func readHead() throws -> ServerRequest? {
        try reader.readHead().map { ServerRequest(head: $0, connection: number, sequence: 1) }
    }

    private func read(_ count: Int) throws -> Data {
        var body = ReceivedBody(keeps: true)
        try reader.readBody(length: Int64(count), into: &body)
        return body.data
    }
}
