// SPDX-License-Identifier: Apache-2.0

/// Accepts connections on 127.0.0.1, or on a Unix domain socket, and serves each on its own thread, until stopped.
package final class SocketListener: Sendable {
    private struct State {
        enum Phase { case running, stopping, stopped }

        var phase = Phase.running
        var accepted = 0
        var open: [Int: ConnectedSocket] = [:]
        var threads: [Int: WorkerThread] = [:]
        // Those of `threads` that have finished and still have to be joined.
        var ended: [Int] = []
        var acceptThread: WorkerThread?
    }

    package let port: Int
    /// The name of the threads.
    package let threadName: String

    // Immutable. The accept thread closes the listening socket and the read end of the pipe.
    private let listening: Int32
    private let wakeReading: Int32
    private let wakeWriting: Int32
    private let serve: @Sendable (ConnectedSocket, _ number: Int) -> Void
    // Any thread.
    private let state = Monitor(State())

    /// Binds and starts accepting; `serve` runs on the connection's thread, and the connection is closed when it returns.
    ///
    /// - Parameters:
    ///   - path: the path of a Unix domain socket, which must not be there yet; `nil` for a port of 127.0.0.1.
    ///   - port: that port; 0 for one that the system chooses.
    package init(
        path: String? = nil, port: UInt16 = 0, serve: @escaping @Sendable (ConnectedSocket, _ number: Int) -> Void
    ) throws(SocketError) {
        let (listening, port) = try Self.listen(path, port)
        guard let wake = Platform.makePipe() else {
            let error = SocketError("pipe")
            closeDescriptor(listening)
            throw error
        }
        self.listening = listening
        self.port = port
        self.serve = serve
        threadName = "loopback-\(port)"
        (wakeReading, wakeWriting) = wake
        let thread = WorkerThread(name: threadName) { self.acceptConnections() }
        guard let thread else {
            [listening, wakeReading, wakeWriting].forEach(closeDescriptor)
            throw SocketError("pthread_create", code: EAGAIN)
        }
        state.update { $0.acceptThread = thread }
    }

    /// The number of connections accepted so far.
    package var connectionCount: Int { state.read { $0.accepted } }

    /// The number of open connections.
    package var openConnections: Int { state.read { $0.open.count } }

    /// Waits until no connection is open. Returns false on timeout.
    package func waitForConnectionsToClose(timeout: Duration) -> Bool {
        state.wait(timeout: timeout) { $0.open.isEmpty }
    }

    /// Closes the listening socket and all connections and joins all threads.
    ///
    /// A thread that is still busy after `timeout` is detached. A concurrent caller waits for the first.
    package func stop(timeout: Duration) {
        guard beginStopping() else {
            _ = state.wait(timeout: timeout) { $0.phase == .stopped }
            return
        }
        var byte: UInt8 = 1
        _ = write(wakeWriting, &byte, 1)
        state.update { $0.acceptThread.take() }?.join()
        state.read { $0.open.values.forEach { $0.shutDown() } }
        let isOwnThread = state.read { $0.threads.values.contains { $0.isCurrent } }
        _ = state.wait(timeout: timeout) { $0.open.count <= (isOwnThread ? 1 : 0) }
        joinFinished()
        state.update { state in
            state.threads.values.forEach { $0.detach() }
            state.threads = [:]
            state.phase = .stopped
        }
        closeDescriptor(wakeWriting)
    }

    private func beginStopping() -> Bool {
        state.update { state in
            guard state.phase == .running else { return false }
            state.phase = .stopping
            return true
        }
    }

    private func acceptConnections() {
        defer { [listening, wakeReading].forEach(closeDescriptor) }
        var entries = [
            pollfd(fd: listening, events: Int16(POLLIN), revents: 0), pollfd(fd: wakeReading, events: Int16(POLLIN), revents: 0),
        ]
        while true {
            guard poll(&entries, nfds_t(entries.count), -1) >= 0 || errno == EINTR else { return }
            guard entries[1].revents == 0 else { return }
            let descriptor = Platform.acceptConnection(listening)
            if descriptor >= 0 {
                start(ConnectedSocket(descriptor))
            } else if errno == EMFILE || errno == ENFILE {
                // The listening socket stays readable: wait for open connections to close, or for `stop`.
                _ = poll(&entries[1], 1, 10)
            }
            joinFinished()
        }
    }

    private func start(_ socket: ConnectedSocket) {
        let number = state.update { state in
            state.accepted += 1
            state.open[state.accepted] = socket
            return state.accepted
        }
        let thread = WorkerThread(name: threadName) { [self] in
            serve(socket, number)
            socket.close()
            state.update { state in
                state.open[number] = nil
                state.ended.append(number)
            }
        }
        state.update { state in
            state.threads[number] = thread
            guard thread == nil else { return }
            socket.close()
            state.open[number] = nil
        }
    }

    private func joinFinished() {
        let threads = state.update { state in
            // A thread may finish before the accept thread has registered it, but only the accept thread calls this, or `stop` after its
            // end.
            defer { state.ended = [] }
            return state.ended.compactMap { state.threads.removeValue(forKey: $0) }
        }
        threads.forEach { $0.join() }
    }

    private static func listen(_ path: String?, _ port: UInt16) throws(SocketError) -> (listening: Int32, port: Int) {
        let descriptor = path == nil ? Platform.makeStreamSocket() : Platform.makeUnixSocket()
        guard descriptor >= 0 else { throw SocketError("socket") }
        do throws(SocketError) {
            if let path { return (descriptor, try listen(descriptor, at: path)) }
            return (descriptor, try bindAndListen(descriptor, port))
        } catch {
            closeDescriptor(descriptor)
            throw error
        }
    }

    /// Listens on a Unix domain socket. A path that begins with a NUL is a name in Linux's abstract namespace.
    private static func listen(_ descriptor: Int32, at path: String) throws(SocketError) -> Int {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let capacity = MemoryLayout.size(ofValue: address.sun_path)
        guard path.utf8.count < capacity else { throw SocketError("bind", code: ENAMETOOLONG) }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let size = MemoryLayout<sockaddr_un>.size - capacity + path.utf8.count + (path.hasPrefix("\0") ? 0 : 1)
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(size)) }
        }
        guard bound == 0 else { throw SocketError("bind") }
        guard Platform.listen(descriptor, backlog: 4096) == 0 else { throw SocketError("listen") }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        return 0
    }

    private static func bindAndListen(_ descriptor: Int32, _ port: UInt16) throws(SocketError) -> Int {
        // Else the connections of an earlier server would keep its port for a minute.
        var on: Int32 = 1
        if port != 0 { setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size)) }
        var address = Platform.loopbackAddress(port: port)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withGenericAddress(&address) { bind(descriptor, $0, size) }
        guard bound == 0 else { throw SocketError("bind") }
        guard Platform.listen(descriptor, backlog: 4096) == 0 else { throw SocketError("listen") }
        let named = withGenericAddress(&address) { getsockname(descriptor, $0, &size) }
        guard named == 0 else { throw SocketError("getsockname") }
        // A connection may disappear between `poll` and `accept`; the accept thread must not block for the next one.
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        return Int(UInt16(bigEndian: address.sin_port))
    }
}

/// Calls `body` with a pointer to an IPv4 address, rebound to the generic type of the sockets API.
package func withGenericAddress<Result>(_ address: inout sockaddr_in, _ body: (UnsafeMutablePointer<sockaddr>) -> Result) -> Result {
    withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1, body)
    }
}
