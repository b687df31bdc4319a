// SPDX-License-Identifier: Apache-2.0

/// A failed call of the sockets API.
public struct SocketError: LocalizedError, Sendable, CustomStringConvertible {
    /// The function that failed, such as `bind`.
    public let function: String
    /// The value of `errno`.
    public let code: Int32

    package init(_ function: String, code: Int32 = errno) {
        self.function = function
        self.code = code
    }

    /// The function and the system's description of the code.
    public var description: String {
        "\(function): \(String(cString: strerror(code)))"
    }

    /// The same text.
    public var errorDescription: String? { description }
}

/// A connected TCP socket.
///
/// Owned by one thread, which receives, sends and closes. Any thread may shut it down, which wakes the owner.
package final class ConnectedSocket: Sendable {
    // The descriptor; nil once closed, so that a late `shutDown` cannot affect another file with the same number.
    private let descriptor: Monitor<Int32?>
    // Set by the owner, before it sends or receives; its session is only used on the owner's thread.
    private let channel = Monitor<TLSChannel?>(nil)

    package init(_ descriptor: Int32) {
        self.descriptor = Monitor(descriptor)
        Platform.setNoDelay(descriptor)
        Platform.makeSocketQuiet(descriptor)
        // Darwin's accepted sockets inherit the listener's O_NONBLOCK.
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
    }

    deinit {
        close()
    }

    // MARK: Owner's thread

    /// Performs the handshake of TLS, through which bytes are received and sent from then on.
    func secure(_ context: TLSContext) throws -> ServerTLSInfo {
        let channel = try TLSChannel(context, descriptor: try openDescriptor("SSL_accept"))
        self.channel.update { $0 = channel }
        return channel.info
    }

    /// Receives the available bytes after waiting for the first one; returns 0 at the peer's end of stream.
    package func receive(into buffer: UnsafeMutableRawBufferPointer) throws(SocketError) -> Int {
        if let channel = channel.read({ $0 }) { return try channel.receive(into: buffer) }
        let descriptor = try openDescriptor("recv")
        while true {
            let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
            if count >= 0 { return count }
            guard errno == EINTR else { throw SocketError("recv") }
        }
    }

    /// Sends all of `bytes`; blocks while the peer does not read.
    package func send(_ bytes: UnsafeRawBufferPointer) throws(SocketError) {
        if let channel = channel.read({ $0 }) { return try channel.send(bytes) }
        let descriptor = try openDescriptor("send")
        guard var position = bytes.baseAddress else { return }
        var left = bytes.count
        while left > 0 {
            let count = Platform.send(descriptor, position, left)
            guard count >= 0 else {
                if errno == EINTR { continue }
                throw SocketError("send")
            }
            position += count
            left -= count
        }
    }

    package func send(_ data: Data) throws {
        try data.withUnsafeBytes { try send($0) }
    }

    /// Waits until the peer closes or shuts down its sending side, this socket is shut down, `other` is readable, or the timeout expires.
    ///
    /// Returns whether the connection is still open.
    package func staysOpen(for timeout: Duration, orUntilReadable other: Int32? = nil) -> Bool {
        guard let descriptor = try? openDescriptor("poll") else { return false }
        let start = ContinuousClock.now
        // `poll` ignores negative descriptors.
        var entries = [
            pollfd(fd: descriptor, events: Platform.hangUpEvents, revents: 0),
            pollfd(fd: other ?? -1, events: Int16(POLLIN), revents: 0),
        ]
        while true {
            let count = poll(&entries, nfds_t(entries.count), timeout.millisecondsLeft(since: start))
            if count < 0, errno == EINTR { continue }
            return entries[0].revents & Platform.anyHangUp == 0
        }
    }

    /// Reads and discards bytes until the peer's end of stream, for at most `timeout`, if given.
    package func drain(timeout: Duration? = nil) {
        if let timeout { setReceiveTimeout(timeout) }
        let start = ContinuousClock.now
        withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: 16) { buffer in
            while let count = try? receive(into: buffer), count > 0 {
                if let timeout, start.duration(to: .now) > timeout { return }
            }
        }
    }

    /// Ends the stream to the peer; receiving is still possible.
    package func shutDownWriting() {
        endTLS()
        descriptor.read { if let descriptor = $0 { shutdown(descriptor, Int32(SHUT_WR)) } }
    }

    /// Closes the descriptor. Further calls do nothing.
    package func close() {
        // Before the descriptor's number can be another file's.
        channel.update { $0 = nil }
        descriptor.update { descriptor in
            if let open = descriptor { closeDescriptor(open) }
            descriptor = nil
        }
    }

    // MARK: Any thread

    /// Shuts down both directions, with a FIN to the peer; any blocking call of the owner returns. TLS ends with close_notify if the owner
    /// calls, and else is truncated.
    package func shutDown() {
        endTLS()
        cut()
    }

    /// Shuts down both directions as ``shutDown()``, always without close_notify.
    func cut() {
        descriptor.read { if let descriptor = $0 { shutdown(descriptor, Int32(SHUT_RDWR)) } }
    }

    /// Makes `close` send an RST instead of a FIN, and wakes the owner if it is receiving.
    package func prepareReset() {
        descriptor.read { descriptor in
            guard let descriptor else { return }
            var now = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, Platform.lingerOption, &now, socklen_t(MemoryLayout<linger>.size))
            shutdown(descriptor, Int32(SHUT_RD))
        }
    }

    private func endTLS() {
        if let channel = channel.read({ $0 }), channel.isOwner { channel.close() }
    }

    private func openDescriptor(_ function: String) throws(SocketError) -> Int32 {
        guard let descriptor = descriptor.read({ $0 }) else { throw SocketError(function, code: EBADF) }
        return descriptor
    }

    private func setReceiveTimeout(_ timeout: Duration) {
        let parts = timeout.components
        var time = timeval()
        time.tv_sec = numericCast(parts.seconds)
        time.tv_usec = numericCast(parts.attoseconds / 1_000_000_000_000)
        descriptor.read { descriptor in
            guard let descriptor else { return }
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        }
    }
}

/// Calls `close(2)`, under a name that is usable in a type with a method `close`.
package func closeDescriptor(_ descriptor: Int32) {
    _ = close(descriptor)
}
