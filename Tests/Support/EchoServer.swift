// SPDX-License-Identifier: Apache-2.0

/// A TCP server on 127.0.0.1 that sends every byte back.
///
/// When the client shuts its sending side it has all bytes back before this side ends too.
public final class TCPEchoServer: Sendable {
    private let listener: SocketListener

    /// Starts a server on a port that the system chooses; throws a ``SocketError`` if the system refuses.
    public init() throws {
        listener = try SocketListener { socket, _ in Self.echo(socket) }
    }

    deinit {
        stop()
    }

    /// The port on 127.0.0.1.
    public var port: Int { listener.port }

    /// How many connections have been accepted so far.
    public var connectionCount: Int { listener.connectionCount }

    /// How many connections are open on this side.
    public var openConnections: Int { listener.openConnections }

    /// What the server's threads are called, for ``ProcessProbe/threadCount(named:)``.
    public var threadName: String { listener.threadName }

    /// Waits until no connection is open; false if the time ran out first.
    @discardableResult
    public func waitForConnectionsToClose(timeout: Duration = .seconds(10)) -> Bool {
        listener.waitForConnectionsToClose(timeout: timeout)
    }

    /// Waits until no connection is open; false if the time ran out first.
    @discardableResult
    public func waitForConnectionsToClose(timeout: Duration = .seconds(10)) async -> Bool {
        await offThePool { [listener] in listener.waitForConnectionsToClose(timeout: timeout) }
    }

    /// Closes the port and all connections and joins every thread, in at most `timeout`. Again does nothing.
    public func stop(timeout: Duration = .seconds(10)) {
        listener.stop(timeout: timeout)
    }

    private static func echo(_ socket: ConnectedSocket) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
        defer { buffer.deallocate() }
        while let count = try? socket.receive(into: buffer), count > 0 {
            guard (try? socket.send(UnsafeRawBufferPointer(rebasing: buffer[..<count]))) != nil else { return }
        }
        socket.shutDownWriting()
    }
}
