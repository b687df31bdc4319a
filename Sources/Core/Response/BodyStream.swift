// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// A response's body, piece by piece while it comes.
///
/// Only as much is received as is read, but for 1 MiB ahead. The sequence throws what the request fails with, at the latest at its end, so
/// that a body cut short is never taken for a whole one. It can be read once. Letting go of it, or cancelling the task that reads it, cancels
/// the request.
public struct BodyStream: AsyncSequence, Sendable {
    /// A piece of the body; never empty, of any size.
    public typealias Element = Data

    /// Cancels the request when nobody reads any more.
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

    init(request: DataRequest, buffer: BodyBuffer) {
        reading = Reading(request: request, buffer: buffer)
    }

    /// Reads the body.
    public struct Iterator: AsyncIteratorProtocol {
        let reading: Reading

        /// The next piece; `nil` at the end of a complete and acceptable response.
        public mutating func next() async throws -> Data? {
            let reading = reading
            return try await withTaskCancellationHandler {
                try await reading.buffer.next()
            } onCancel: {
                reading.request.cancel()
            }
        }
    }

    /// An iterator; all of them read from the same stream.
    public func makeAsyncIterator() -> Iterator {
        Iterator(reading: reading)
    }
}

extension DataRequest {
    /// The body, piece by piece while it comes, instead of in memory; best of a
    /// ``SessionManager/streamRequest(_:method:parameters:encoding:headers:interceptor:)``, which waits for it.
    ///
    /// Statuses and content types are validated before the first piece; validations of one's own, at the end. A request of which pieces
    /// were read is not tried again.
    public func bodyStream() -> BodyStream {
        let buffer = receiver.makeBuffer(resume: driver.resumeTransfer)
        driver.attached(.reader)
        let stream = BodyStream(request: self, buffer: buffer)
        driver.addWaiter(.closure { [delegate] in buffer.finish(delegate.error.map { .failure($0) } ?? .success(())) }, to: self)
        return stream
    }
}
