// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading

extension URLSession {
    /// The body of a response, byte by byte, while it is received; content codings are undone.
    ///
    /// Backpressure: the transfer pauses while 1 MiB waits to be read. An error in the middle of the body is thrown after the bytes before it,
    /// so that a truncated body is not mistaken for a complete one. Releasing the sequence and its iterators, or cancelling the task that
    /// reads, cancels the transfer. It can be read once, by one task at a time.
    public struct AsyncBytes: AsyncSequence, Sendable {
        /// A byte of the body.
        public typealias Element = UInt8
        /// `URLError`.
        public typealias Failure = any Error
        /// Reads the body.
        public typealias AsyncIterator = Iterator

        /// The task that receives the body: for its counts, its priority, or to cancel it.
        public var task: URLSessionDataTask { reading.task }

        @usableFromInline let reading: BytesReading

        init(_ reading: BytesReading) {
            self.reading = reading
        }

        /// Returns an iterator; all of them read from the same body.
        @inlinable public func makeAsyncIterator() -> Iterator { Iterator(reading) }

        /// Reads a body. It suspends where no byte has been received yet, and now and then for other tasks, but not for each byte.
        public struct Iterator: AsyncIteratorProtocol {
            @usableFromInline let reading: BytesReading
            @usableFromInline var bytes: [UInt8] = []
            @usableFromInline var position = 0

            @inlinable init(_ reading: BytesReading) {
                self.reading = reading
            }

            /// Returns the next byte; `nil` at the end of a complete body, when the task has completed.
            ///
            /// - Throws: the error of the task, `URLError`; with `URLError.cancelled` if the task that reads was cancelled.
            @inlinable @inline(__always) public mutating func next() async throws -> UInt8? {
                guard position < bytes.count else { return try await refill(isolation: nil) }
                defer { position += 1 }
                return bytes[position]
            }

            /// Returns the next byte, as ``next()`` does, on the actor of the caller.
            @available(macOS 15, iOS 18, tvOS 18, watchOS 11, *)
            @inlinable @inline(__always) public mutating func next(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
                guard position < bytes.count else { return try await refill(isolation: actor) }
                defer { position += 1 }
                return bytes[position]
            }

            /// Waits for the next piece, and returns its first byte.
            @usableFromInline mutating func refill(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
                (bytes, position) = ([], 0)
                // A piece is never empty.
                guard let piece = try await reading.next(), let first = piece.first else { return nil }
                (bytes, position) = (piece, 1)
                return first
            }
        }
    }

    /// Receives the head of the response to a request, and returns with it when it has come; the body is read as it is received.
    ///
    /// A delegate is called as by ``data(for:delegate:)``. Cancelling the task that awaits this, or that reads the body, cancels the
    /// transfer.
    ///
    /// - Parameters:
    ///   - request: what is sent.
    ///   - delegate: for this task; `nil`, the default, for the session's only.
    /// - Throws: `URLError`.
    public func bytes(for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (AsyncBytes, URLResponse) {
        let task = enter(delegate) { URLSessionDataTask(self, $0, .streamed(request), .awaited) }
        let (body, response) = try await task.openBody()
        return (AsyncBytes(BytesReading(task, body)), response)
    }

    /// Receives the head of the response to a GET of a URL, as `bytes(for:delegate:)` does.
    public func bytes(from url: URL, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (AsyncBytes, URLResponse) {
        try await bytes(for: URLRequest(url: url), delegate: delegate)
    }
}

@available(*, unavailable)
extension URLSession.AsyncBytes.Iterator: Sendable {}
