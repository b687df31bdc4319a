// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading

/// What the iterators of one body read from. Cancels its task when they and the sequence are released.
@usableFromInline
final class BytesReading: Sendable {
    let task: URLSessionDataTask
    /// `nil` for a body that was loaded without a network.
    private let stream: BodyStream?
    /// The body that was loaded without a network, until it is read.
    private let loaded: Lock<Data?>

    init(_ task: URLSessionDataTask, _ stream: BodyStream?) {
        self.task = task
        self.stream = stream
        loaded = Lock(stream == nil ? task.values.withLock { $0.data.take() } : nil)
    }

    deinit {
        task.cancel()
    }

    /// Waits for the next piece, which is not empty; `nil` when the body is complete and the task has completed.
    func next() async throws -> [UInt8]? {
        guard let stream else {
            let data = loaded.withLock { $0.take() } ?? Data()
            return data.isEmpty ? nil : [UInt8](data)
        }
        do {
            let piece = try await withTaskCancellationHandler {
                var iterator = stream.makeAsyncIterator()
                return try await iterator.next()
            } onCancel: {
                task.cancel()
            }
            if let piece { return [UInt8](piece) }
        } catch CurlewError.cancelled where task.isWanted {
            // Another task reads.
            throw URLError.of(CurlewError.cancelled, task)
        } catch {
            await task.waitForEnd()
            throw task.error ?? URLError.of(CurlewError.cancelled, task)
        }
        await task.waitForEnd()
        if let error = task.error { throw error }
        return nil
    }
}

extension URLSessionDataTask {
    /// Starts the task and waits for the head of its response; cancelling the waiting task cancels it.
    ///
    /// - Returns: the body, `nil` if it was loaded without a network, and the response.
    func openBody() async throws -> (BodyStream?, URLResponse) {
        resume()
        return try await withTaskCancellationHandler {
            guard let stream = await madeStream() else { return (nil, try finalResponse()) }
            do {
                _ = try await stream.head()
            } catch {
                await waitForEnd()
                throw self.error ?? URLError.of(error, self)
            }
            guard let response else { throw URLError.of(.badServerResponse, self) }
            return (stream, response)
        } onCancel: {
            cancel()
        }
    }
}
