// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading

/// A task that is a raw connection: TCP, or TLS over it.
///
/// The connection is made by the first call that reads or writes, or captures the streams, once the task was resumed, so that
/// ``startSecureConnection()`` may come before it. Reads are served in their order, and so are writes. The task completes when both sides
/// have closed the connection, and with an error when that fails; bytes that were received before can be read even then. Nothing is
/// received while nothing is read, beyond 1 MiB. A connection that is made has no timeout.
open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {  // as its superclass
    let host: String
    let port: Int
    let pipe = Lock(StreamPipe())

    init(_ session: URLSession, _ identifier: Int, host: String, port: Int) {
        self.host = host
        self.port = port
        super.init(session, identifier, .connection(nil), .delegate)
    }

    // MARK: Reading

    /// Reads bytes after the reads before. Returns at least `minBytes`, at most `maxBytes` bytes, or what is left when the peer has closed
    /// its side; `nil` if nothing is. The second value is whether there is nothing more to read.
    ///
    /// Cancelling the task that waits ends the wait with `URLError.cancelled`. The bytes that have come by then are for the next read, as
    /// they are after a timeout.
    ///
    /// - Parameters:
    ///   - minBytes: 0 counts as 1.
    ///   - maxBytes: not less than `minBytes`, and at least 1: with other numbers the read fails with `URLError.unknown`.
    ///   - timeout: in seconds, from the call on; 0 for none. Then the read fails with `URLError.timedOut`.
    /// - Throws: `URLError`.
    open func readData(ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval) async throws -> (Data?, Bool) {
        let place = ReadPlace(self)
        return try await CallWait<(Data?, Bool)>.value { wait in
            place.enter(minBytes, maxBytes, timeout) { wait.end($0) }
        } cancel: {
            place.leave()
        }
    }

    /// Reads bytes as ``readData(ofMinLength:maxLength:timeout:)`` does; calls `completionHandler` on the delegate queue.
    @preconcurrency open func readData(
        ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval,
        completionHandler: @escaping @Sendable (Data?, Bool, (any Error)?) -> Void
    ) {
        read(minBytes, maxBytes, timeout) { [queue = session.queue] result in
            queue.schedule {
                switch result {
                case .success((let data, let isAtEnd)): completionHandler(data, isAtEnd, nil)
                case .failure(let error): completionHandler(nil, false, error)
                }
            }
        }
    }

    // MARK: Writing

    /// Writes bytes after the writes before. Returns when they were handed to the network.
    ///
    /// Cancelling the task that waits ends the wait with `URLError.cancelled`; the bytes are sent nevertheless.
    ///
    /// - Parameters:
    ///   - data: the bytes.
    ///   - timeout: in seconds, from the call on; 0 for none. Then the write fails with `URLError.timedOut`, and its bytes are not sent
    ///     unless their turn had come: then they may be.
    /// - Throws: `URLError`.
    open func write(_ data: Data, timeout: TimeInterval) async throws {
        try await CallWait<Void>.value { [self] wait in write(data, timeout) { wait.end($0) } }
    }

    /// Writes bytes as `write(_:timeout:)` does; calls `completionHandler` on the delegate queue.
    @preconcurrency open func write(_ data: Data, timeout: TimeInterval, completionHandler: @escaping @Sendable ((any Error)?) -> Void) {
        write(data, timeout) { [queue = session.queue] result in
            queue.schedule {
                if case .failure(let error) = result { completionHandler(error) } else { completionHandler(nil) }
            }
        }
    }

    // MARK: Closing

    /// Hands the connection to the delegate as streams, after the reads and writes before:
    /// ``URLSessionStreamDelegate/urlSession(_:streamTask:didBecome:outputStream:)``. That ends the task, without another call about it.
    ///
    /// Reading and writing the streams blocks, so they need a thread of their own. They need no run loop, and do not call a delegate of
    /// their own. They end when the session is invalidated.
    open func captureStreams() { add(.capture) }

    /// Closes the writing side after the writes before; the peer receives all of them.
    open func closeWrite() { add(.closeWrite) }

    /// Closes the reading side after the reads before: what is received from then on is dropped. Closing both sides ends the task.
    open func closeRead() { add(.closeRead) }

    // MARK: TLS

    /// Has the connection made with TLS, whose trust is evaluated as for other tasks.
    ///
    /// Only before the first call that reads or writes, or captures the streams. After it the task fails with `URLError.unsupportedURL`:
    /// TLS can't begin on a connection on which bytes were exchanged (STARTTLS).
    open func startSecureConnection() {
        let isTooLate = pipe.withLock { pipe in
            if !pipe.hasBegun { pipe.isSecure = true }
            return pipe.hasBegun
        }
        guard isTooLate else { return }
        fail(
            URLError.of(
                .unsupportedURL, self,
                describedBy: "startSecureConnection() has to come before the first read or write: a connection in use can't change to TLS"))
    }

    /// Does nothing: TLS stays until the connection ends, as in Apple's deprecated method.
    @available(*, deprecated, message: "A secure connection stays one until it ends")
    open func stopSecureConnection() {}

    // MARK: For the superclass

    /// Starts the task, or resumes it after `suspend()`. Does nothing for one that runs, or was cancelled.
    open override func resume() {
        super.resume()
        serve()
    }

    /// With the scheme by which its proxy is chosen.
    override var destination: URL? {
        URL(string: "\(pipe.withLock { $0.isSecure } ? "https" : "http")://\(host.bracketed):\(port)")
    }

    override func connect(_ request: URLRequest?) {
        pipe.withLock { $0.mayConnect = true }
        serve()
    }

    override func endUnstarted(with error: any Error) {
        finish(.failure(error))
    }
}
