// SPDX-License-Identifier: Apache-2.0

/// A TCP server on 127.0.0.1 that echoes all bytes.
///
/// When the client shuts down its sending side, it receives all bytes before the server ends its stream.
public final class TCPEchoServer: Sendable {
    private let listener: SocketListener

    /// Starts a server on a port chosen by the system. Throws a ``SocketError`` if the system refuses.
    public init() throws {
        listener = try SocketListener { socket, _ in Self.echo(socket) }
    }

    deinit {
        stop()
    }

    /// The port on 127.0.0.1.
    public var port: Int { listener.port }

    /// The number of connections accepted so far.
    public var connectionCount: Int { listener.connectionCount }

    /// The number of connections open on this side.
    public var openConnections: Int { listener.openConnections }

    /// The name of the server's threads.
    package var threadName: String { listener.threadName }

    /// Waits until no connection is open. Returns false on timeout.
    @discardableResult
    public func waitForConnectionsToClose(timeout: Duration = .seconds(10)) -> Bool {
        listener.waitForConnectionsToClose(timeout: timeout)
    }

    /// Waits until no connection is open. Returns false on timeout.
    @discardableResult
    public func waitForConnectionsToClose(timeout: Duration = .seconds(10)) async -> Bool {
        await offThePool { [listener] in listener.waitForConnectionsToClose(timeout: timeout) }
    }

    /// Closes the port and all connections and joins all threads, within `timeout`. Further calls do nothing.
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
