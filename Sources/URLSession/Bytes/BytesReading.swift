// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading

/// A body that is read as it is received.
enum ReadBody {
    case stream(BodyStream)
    /// One that is loaded without a network.
    case local(LocalLoad)
}

/// What the iterators of one body read from. Cancels its task when they and the sequence are released.
@usableFromInline
final class BytesReading: Sendable {
    let task: URLSessionDataTask
    private let body: ReadBody

    init(_ task: URLSessionDataTask, _ body: ReadBody) {
        self.task = task
        self.body = body
    }

    deinit {
        task.cancel()
    }

    /// Waits for the next piece, which is not empty; `nil` when the body is complete and the task has completed.
    func next() async throws -> [UInt8]? {
        do {
            let piece = try await withTaskCancellationHandler {
                switch body {
                case .local(let load): return await task.nextPiece(load)
                case .stream(let stream):
                    var iterator = stream.makeAsyncIterator()
                    return try await iterator.next()
                }
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
    func openBody() async throws -> (ReadBody, URLResponse) {
        resume()
        return try await withTaskCancellationHandler {
            let body = await madeBody()
            if case .stream(let stream)? = body {
                do {
                    _ = try await stream.head()
                } catch {
                    await waitForEnd()
                    throw self.error ?? URLError.of(error, self)
                }
            }
            guard let body, let response else { throw self.error ?? URLError.of(.badServerResponse, self) }
            return (body, response)
        } onCancel: {
            cancel()
        }
    }
}
