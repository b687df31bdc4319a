// SPDX-License-Identifier: Apache-2.0

/// The connection that a request came on, for routes that misbehave or wait.
///
/// Use it on the thread of the route; `close()` and `reset()` may be called from anywhere.
public final class ServerConnection: Sendable {
    /// The connection's number: 1 for the first that the server accepted.
    public let number: Int

    private let socket: ConnectedSocket
    private let standsOn = Monitor(true)

    init(number: Int, socket: ConnectedSocket) {
        self.number = number
        self.socket = socket
    }

    /// Whether the connection stands for another request when the route returns.
    ///
    /// As the request has it at first; false for good after `close()` and `reset()`.
    public var keepAlive: Bool {
        get { standsOn.read { $0 } }
        set { standsOn.update { $0 = $0 && newValue } }
    }

    /// Sends bytes as they are. A route that has answered this way returns nil.
    public func send(raw bytes: Data) throws {
        try socket.send(bytes)
    }

    /// Sends text as it is. A route that has answered this way returns nil.
    public func send(raw text: String) throws {
        try socket.send(Data(text.utf8))
    }

    /// Closes the connection: the client gets all that was sent, then the end of the stream.
    public func close() {
        keepAlive = false
        socket.shutDown()
    }

    /// Resets the connection (RST) when the route returns; what the client has not read by then may be lost to it.
    public func reset() {
        keepAlive = false
        socket.prepareReset()
    }

    /// Waits for a test to open `gate`: whether it did.
    ///
    /// False also when the client has gone or shut its sending side, or the server stops.
    @discardableResult
    public func wait(until gate: Gate, timeout: Duration = .seconds(30)) -> Bool {
        gate.wait(on: socket, timeout: timeout)
    }

    /// Lets time pass: whether it all did.
    ///
    /// False, at once, when the client has gone or shut its sending side, or the server stops.
    @discardableResult
    public func pause(for time: Duration) -> Bool {
        socket.stands(for: time)
    }

    /// Says nothing until the client has gone or the server stops. Drops what still comes.
    public func waitUntilClosed() {
        keepAlive = false
        socket.drain()
    }

    /// Sends a response, without a body if it answers HEAD.
    func send(_ response: ServerResponse, to method: String) throws {
        let head = response.head(closes: !keepAlive)
        guard method != "HEAD", response.mayHaveBody else { return try socket.send(head) }
        switch response.body {
        case .none:
            try socket.send(head)
        case .data(let data) where data.count <= 64 << 10:
            try socket.send(head + data)  // one packet rather than two
        case .data(let data):
            try socket.send(head)
            try socket.send(data)
        case .chunked(let pieces):
            try socket.send(head)
            for piece in pieces where !piece.isEmpty {
                try socket.send(Data("\(String(piece.count, radix: 16))\r\n".utf8) + piece + Data("\r\n".utf8))
            }
            try socket.send(Data("0\r\n\r\n".utf8))
        case .generated(let length, let seed, let offset):
            try socket.send(head)
            try GeneratedBody(seed: seed).forEachPiece(offset: offset, count: length) { piece in
                try socket.send(piece)
                return true
            }
        }
    }

    /// Ends the stream and lets the client read it to that end, though it may still be sending.
    ///
    /// Closing with bytes unread would send a RST, which may take the response from the client.
    func finishUnread() {
        socket.shutDownWriting()
        socket.drain(timeout: .seconds(2))
    }
}
