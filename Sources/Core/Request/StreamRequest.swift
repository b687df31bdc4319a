// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A raw connection to a host: TCP, or TLS over it.
///
/// Either read it with ``bytes()`` and write it with ``write(_:)``, or use it as an `InputStream` and an `OutputStream`. It completes when
/// both sides have closed it, when it fails, or when it is cancelled. Retriers decide whether a connection that could not be established is
/// attempted again; adapters are not called, as there is no HTTP request.
public final class StreamRequest: Request, @unchecked Sendable {  // as its superclass
    let connection: RawConnection

    init(
        original: Result<RequestTask, any Error>, session: Session, sessionDelegate: SessionDelegate,
        connection: RawConnection = RawConnection(), settings: RequestSettings?
    ) {
        self.connection = connection
        super.init(
            original: original,
            driver: RequestDriver(session: session, sessionDelegate: sessionDelegate, body: connection, settings: settings))
        connection.connect(to: driver, of: self)
    }

    /// Returns the received bytes as a sequence, which ends when the peer closes its sending side, and throws when the connection fails.
    ///
    /// Receiving pauses when 1 MiB is buffered. All iterators read from the same stream.
    public func bytes() -> StreamBytes {
        connection.noteReader()
        return StreamBytes(buffer: connection.buffer)
    }

    /// Sends bytes, in the order of the calls; returns when they were handed to the network.
    ///
    /// Cancelling the waiting task ends the wait; the bytes are sent nevertheless.
    ///
    /// - Throws: why the connection failed; ``CurlewError/cancelled`` after ``closeWrite()``; `CancellationError` if the waiting task was
    ///   cancelled.
    public func write(_ data: Data) async throws {
        try await connection.write(data)
    }

    /// Sends bytes as ``write(_:)`` does; calls `done` once, on any thread.
    package func write(_ data: Data, done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        connection.write(data, done: done)
    }

    /// Closes the receiving side for the program: what is received from now on is dropped.
    package func closeRead() {
        connection.buffer.drop()
    }

    /// Closes the sending side after the written bytes, which the peer receives completely. The receiving side stays open.
    public func closeWrite() {
        connection.closeWrite()
    }

    /// Waits until the connection has completed, without ending it: ``closeWrite()`` closes the sending side, ``Request/cancel()`` ends both.
    ///
    /// Cancelling the waiting task cancels the connection.
    ///
    /// - Throws: why it failed, `CancellationError` if the waiting task was cancelled; nothing if both sides have closed it.
    public func waitUntilCompleted() async throws {
        await waitForEnd()
        guard let error = delegate.error else { return }
        throw wasCancelledByTask ? CancellationError() : error
    }

    /// Returns the connection as a pair of Foundation's streams. Their reads and writes block, so use them on a thread of their own.
    /// Closing the output stream closes the sending side; closing both ends the connection.
    public func captureStreams() -> (input: InputStream, output: OutputStream) { captureStreams(after: Data()) }

    /// The same, with bytes that the input stream has before all others: they were received, and not read.
    package func captureStreams(after rest: Data) -> (input: InputStream, output: OutputStream) {
        connection.noteReader()
        return (StreamRequestInput(self, rest), StreamRequestOutput(self))
    }
}

/// The received bytes of a raw connection, as a sequence of pieces: `Data`, never empty, of any size.
public struct StreamBytes: AsyncSequence, Sendable {
    let buffer: BodyBuffer

    /// Reads the bytes.
    public struct Iterator: AsyncIteratorProtocol {
        let buffer: BodyBuffer

        /// Returns the next piece; `nil` when the peer has closed its sending side.
        public mutating func next() async throws -> Data? {
            try await buffer.next()
        }
    }

    /// Returns an iterator; all of them read from the same stream.
    public func makeAsyncIterator() -> Iterator {
        Iterator(buffer: buffer)
    }
}
