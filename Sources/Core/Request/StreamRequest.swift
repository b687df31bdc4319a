// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A raw connection to a host: TCP, or TLS over it.
///
/// Read and write it as an async sequence and with ``write(_:)``, or as an `InputStream` and an `OutputStream`, one or the other. It is
/// over when both directions have ended, it fails, or it is cancelled.
open class StreamRequest: Request, @unchecked Sendable {  // as its superclass
    let connection: RawConnection

    init(original: Result<RequestTask, any Error>, session: Session, sessionDelegate: SessionDelegate) {
        connection = RawConnection()
        super.init(original: original, driver: RequestDriver(session: session, sessionDelegate: sessionDelegate, body: connection))
        connection.connect(to: driver)
    }

    /// The bytes that come in, piece by piece; ends when the peer closes its sending side, and throws when the connection breaks.
    ///
    /// Only as much is received as is read, but for 1 MiB ahead. All iterators read from the same stream.
    public func bytes() -> StreamBytes {
        StreamBytes(buffer: connection.buffer)
    }

    /// Sends bytes, behind those sent before; returns when they were handed to the network.
    ///
    /// Cancelling the task that waits ends the wait; the bytes go out all the same.
    ///
    /// - Throws: why the connection is over; ``CurlewError/cancelled`` behind ``closeWrite()``, or when the wait was cancelled.
    public func write(_ data: Data) async throws {
        try await connection.write(data)
    }

    /// Ends the sending side, behind what was written; the peer reads to the end. The receiving side stays open.
    public func closeWrite() {
        connection.closeWrite()
    }

    /// Waits until the connection is over.
    ///
    /// - Throws: why it broke; nothing when both sides have ended it.
    public func end() async throws {
        await waitForEnd()
        if let error = delegate.error { throw error }
    }

    /// The connection as a pair of Foundation's streams, for code that wants those. Their reads and writes block, so use them on a thread
    /// of their own. Closing the output stream ends the sending side; closing both ends the connection.
    public func captureStreams() -> (input: InputStream, output: OutputStream) {
        (StreamRequestInput(self), StreamRequestOutput(self))
    }
}

/// The bytes of a raw connection, piece by piece.
public struct StreamBytes: AsyncSequence, Sendable {
    /// A piece; never empty, of any size.
    public typealias Element = Data

    let buffer: BodyBuffer

    /// Reads the bytes.
    public struct Iterator: AsyncIteratorProtocol {
        let buffer: BodyBuffer

        /// The next piece; `nil` when the peer has closed its sending side.
        public mutating func next() async throws -> Data? {
            try await buffer.next()
        }
    }

    /// An iterator; all of them read from the same stream.
    public func makeAsyncIterator() -> Iterator {
        Iterator(buffer: buffer)
    }
}
