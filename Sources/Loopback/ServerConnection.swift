// SPDX-License-Identifier: Apache-2.0

/// The connection of a request, for routes that misbehave or wait.
///
/// Must be used on the route's thread, except for `close()`, `cut()` and `reset()`, which are thread-safe.
public final class ServerConnection: Sendable {
    /// The connection's number: 1 for the first one accepted by the server.
    public let number: Int
    /// What TLS has negotiated; `nil` without TLS.
    public let tls: ServerTLSInfo?

    private let socket: ConnectedSocket
    private let standsOn = Monitor(true)

    init(number: Int, socket: ConnectedSocket, tls: ServerTLSInfo? = nil) {
        self.number = number
        self.tls = tls
        self.socket = socket
    }

    /// Whether the connection is kept open for another request when the route returns.
    ///
    /// Initially as the request asks; permanently false after `close()` and `reset()`.
    public var keepAlive: Bool {
        get { standsOn.read { $0 } }
        set { standsOn.update { $0 = $0 && newValue } }
    }

    /// Sends bytes verbatim. A route that has responded this way returns nil.
    public func send(raw bytes: Data) throws {
        try socket.send(bytes)
    }

    /// Sends text verbatim. A route that has responded this way returns nil.
    public func send(raw text: String) throws {
        try socket.send(Data(text.utf8))
    }

    /// Sends an interim response (1xx; RFC 9110, section 15.2) before the route's response: during the request's body, if that is not read
    /// (``LoopbackServer/BodyHandling/unread``).
    public func sendInterim(_ status: Int, headers: [ServerField] = []) throws {
        try send(raw: ServerResponse(status: status, headers: headers).head(closes: false))
    }

    /// Closes the connection: the client receives all bytes sent, then the end of the stream.
    public func close() {
        keepAlive = false
        socket.shutDown()
    }

    /// Closes the connection as ``close()``, but without TLS's close_notify, as if it were truncated. Thread-safe.
    public func cut() {
        keepAlive = false
        socket.cut()
    }

    /// Resets the connection (RST) when the route returns; bytes that the client has not read by then may be lost.
    public func reset() {
        keepAlive = false
        socket.prepareReset()
    }

    /// Waits for a test to open `gate`. Returns whether it was opened.
    ///
    /// Returns false on timeout, and if the client disconnects or shuts down its sending side, or the server stops.
    @discardableResult
    public func wait(until gate: Gate, timeout: Duration = .seconds(30)) -> Bool {
        gate.wait(on: socket, timeout: timeout)
    }

    /// Waits for a time. Returns whether it elapsed completely.
    ///
    /// Returns false immediately if the client disconnects or shuts down its sending side, or the server stops.
    @discardableResult
    public func pause(for time: Duration) -> Bool {
        socket.staysOpen(for: time)
    }

    /// Sends nothing until the client disconnects or the server stops. Discards received bytes.
    public func waitUntilClosed() {
        keepAlive = false
        socket.drain()
    }

    /// Sends a response, without a body in response to HEAD.
    func send(_ response: ServerResponse, to method: String) throws {
        if response.delay > .zero, !pause(for: response.delay) { return close() }
        if let misbehaviour = response.misbehaviour { return try send(response, misbehaviour, to: method) }
        let head = response.head(closes: !keepAlive)
        guard method != "HEAD", response.mayHaveBody else { return try socket.send(head) }
        switch response.body {
        case .none:
            try socket.send(head)
        case .data(let data) where data.count <= 64 << 10:
            try socket.send(head + data)  // one packet instead of two
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

    /// Ends the stream and lets the client read all of it, although it may still be sending.
    ///
    /// Closing with unread bytes would send an RST, which may cost the client the response.
    func finishUnread() {
        socket.shutDownWriting()
        socket.drain(timeout: .seconds(2))
    }
}
