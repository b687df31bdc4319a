// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A response's body as a sequence of pieces, while it is received: `Data`, never empty, of any size.
///
/// Backpressure: the transfer pauses when 1 MiB is buffered. The sequence throws the request's error, at the latest at its end, so that a
/// truncated body is never mistaken for a complete one. It can be read once. Releasing it, or cancelling the task that reads it, cancels
/// the request.
public struct BodyStream: AsyncSequence, Sendable {
    /// Cancels the request when the sequence and its iterators are released.
    final class Reading: Sendable {
        let request: DataRequest
        let buffer: BodyBuffer

        init(request: DataRequest, buffer: BodyBuffer) {
            self.request = request
            self.buffer = buffer
        }

        deinit {
            request.cancel()
        }
    }

    private let reading: Reading

    var request: DataRequest { reading.request }

    init(request: DataRequest, buffer: BodyBuffer) {
        reading = Reading(request: request, buffer: buffer)
    }

    /// Reads the body.
    public struct Iterator: AsyncIteratorProtocol {
        let reading: Reading

        /// Returns the next piece; `nil` at the end of a complete and acceptable response.
        ///
        /// - Throws: the request's error; `CancellationError` if the task was cancelled.
        public mutating func next() async throws -> Data? {
            let reading = reading
            return try await withTaskCancellationHandler {
                do {
                    return try await reading.buffer.next()
                } catch CurlewError.cancelled where Task.isCancelled {
                    throw CancellationError()
                }
            } onCancel: {
                reading.request.cancel()
            }
        }
    }

    /// Returns an iterator; all of them read from the same stream.
    public func makeAsyncIterator() -> Iterator {
        Iterator(reading: reading)
    }

    /// Waits for the rest of the body, and returns it.
    ///
    /// - Parameter limit: the largest number of bytes. A longer body cancels the request; one that announces its length, before it is received.
    /// - Throws: the request's error; ``TransferFailure/Kind/tooLarge`` for a longer body; `CancellationError` if the task was cancelled.
    public func collect(upTo limit: Int) async throws -> Data {
        let task = request.task
        var body = Data()
        if request.responseHead?.bodyLength(toHead: task?.isHead ?? false) ?? 0 <= limit {
            var pieces = makeAsyncIterator()
            while true {
                guard let piece = try await pieces.next() else { return body }
                guard piece.count <= limit - body.count else { break }
                body.append(piece)
            }
        }
        request.cancel()
        let failure = BodyFailure(kind: .tooLarge, message: "The body exceeds \(limit) bytes", bytesReceived: Int64(body.count))
        throw request.driver.describing(failure.transferFailure(url: task?.currentTransfer?.url ?? ""), of: request)
    }

    /// Waits for the head of the final response, which may be long before the first piece. For a streamed request, once.
    ///
    /// Also that of a response that was refused: reading the body throws why. From then on the request is not retried. Cancelling the
    /// waiting task cancels the request.
    ///
    /// - Throws: the error with which the request failed before a head; ``CurlewError/cancelled`` if the task was cancelled.
    package func head() async throws -> ResponseHead {
        do {
            return try await acceptedHead()
        } catch let error as CurlewError where error.isResponseValidationError {
            guard let head = request.responseHead else { throw error }
            return head
        }
    }

    /// Waits for the head of the final response, whose status has been validated. As ``head()``, but throws why a response is refused.
    func acceptedHead() async throws -> ResponseHead {
        let reading = reading
        let head = try await withTaskCancellationHandler {
            try await reading.buffer.head()
        } onCancel: {
            reading.request.cancel()
        }
        // The session's delegate has taken the body, and with it the head.
        guard let head = head ?? reading.request.responseHead else { throw CurlewError.cancelled }
        return head
    }
}

extension DataRequest {
    /// Returns the body as a sequence of pieces, instead of storing it in memory.
    ///
    /// Best with ``SessionManager/streamRequest(_:method:parameters:encoding:headers:interceptor:options:)``, which receives the body only
    /// once it has a reader. Statuses and content types are validated before the first piece, custom validators run at the end. Of a body
    /// that is refused before its first piece, up to 64 KiB are received in at most two seconds, for the error's `FailedRequest`. A request
    /// is not retried after a piece was read.
    public func bodyStream() -> BodyStream {
        let buffer = receiver.makeBuffer(resume: driver.resumeTransfer)
        driver.attached(.reader)
        let stream = BodyStream(request: self, buffer: buffer)
        driver.addWaiter(.closure { [delegate] in buffer.finish(delegate.error.map { .failure($0) } ?? .success(())) }, to: self)
        return stream
    }
}
