// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// What an error says about its request: added when the error is delivered, so that a success costs nothing.

extension RequestDriver {
    private static let lastID = Lock<UInt64>(0)

    /// The request's number in the process, assigned when it is first read, as most requests have no use for one.
    var requestID: UInt64 {
        state.withLock { state in
            if state.requestID == 0 {
                state.requestID = Self.lastID.withLock { last in
                    last += 1
                    return last
                }
            }
            return state.requestID
        }
    }

    /// Why the request has failed, with what is known about it; `nil` if it has not.
    ///
    /// Called before the error is delivered: to monitors, retriers and handlers.
    func failure(of request: Request) -> (any Error)? {
        guard let error = state.withLock({ $0.attempt.error }) else { return nil }
        let described = describing(error, of: request)
        state.withLock { $0.attempt.error = described }
        return described
    }

    /// Returns a ``CurlewError`` with what is known about its request, unless it has that already; other errors, which are of users' code or
    /// of files, unchanged.
    func describing(_ error: any Error, of request: Request) -> any Error {
        guard let error = error as? CurlewError else { return error }
        if let known = error.request { return known.id == 0 ? error.describing(known.identified(by: requestID)) : error }
        let (task, head, retries, decoders) = state.withLock { ($0.task, $0.attempt.head, $0.retryCount, $0.refusalDecoders) }
        guard let target = task?.target ?? (try? request.original.get())?.original.target else {
            return error.describing(FailedRequest(id: requestID, url: ""))
        }
        let isRefused = error.isResponseValidationError
        // One byte more shows whether the body is longer. Reads the file of a download, on the session's queue.
        let limit = decoders.reduce(FailedRequest.bodyLimit) { max($0, $1.limit) }
        let received = isRefused ? body.beginning(limit + 1) : nil
        let contentType = head?.value(for: "Content-Type")
        let isPartial = isRefused && (body as? DataReceiver)?.refusedBody?.isCut ?? false
        let isCut = isPartial || (received?.count ?? 0) > FailedRequest.bodyLimit
        let decoded = isPartial ? nil : received.flatMap { body in inContext { decoders.decode(body) } }
        return error.describing(
            FailedRequest(
                id: requestID, method: target.method, url: target.url, attempt: Int(retries) + 1, statusCode: head?.statusCode,
                headers: head?.headers ?? [:], contentType: contentType,
                body: received.flatMap {
                    BodyExcerpt.text(of: $0, limit: FailedRequest.bodyLimit, isCut: isCut, contentType: contentType)
                },
                // Not a slice, which would retain the whole body.
                bodyData: received.map { $0.count > FailedRequest.bodyLimit ? Data($0.prefix(FailedRequest.bodyLimit)) : $0 },
                isBodyTruncated: isCut, decodedBody: decoded))
    }
}

extension Request {
    /// A number that identifies the request in errors (``/CurlewHTTP/FailedRequest/id``), logs and monitors.
    ///
    /// Unique in the process, and the same for all attempts. Assigned when it is first read, so that numbers do not follow the order in
    /// which requests were created. Thread-safe.
    public var id: UInt64 { driver.requestID }

    /// Returns the error as users see it: with what is known about the request, and translated (``Session/deliverErrors(as:)``).
    func delivered(_ error: any Error) -> any Error {
        session.delivered(driver.describing(error, of: self))
    }

    /// Returns the result with its error as users see it.
    func delivered<Value>(_ result: Result<Value, any Error>) -> Result<Value, any Error> {
        guard case .failure(let error) = result else { return result }
        return .failure(delivered(error))
    }
}
