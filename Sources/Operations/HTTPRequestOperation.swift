// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// An operation for HTTP: validates the response, serializes it, and resumes after a pause where it stopped.
///
/// After a pause it requests the rest of the body (`Range`, with `If-Range` if there is a strong `ETag`, or a `Last-Modified` that
/// qualifies as a strong validator, even alongside a weak `ETag`; RFC 9110, sections 13.1.5 and 14). Only a matching 206 is appended; a 200
/// starts over, and a 416 at the full length completes the body.
open class HTTPRequestOperation: URLConnectionOperation, @unchecked Sendable {  // the state is behind a lock
    private struct Outcome: @unchecked Sendable {  // objects come from the serializer and are not changed here
        var serializer: any ResponseSerialization = HTTPResponseSerializer()
        var object: Any?
        var error: (any Error)?
    }

    private let outcome = Lock(Outcome())

    /// Validates the response and makes ``responseObject``; an ``HTTPResponseSerializer`` by default, which accepts statuses from 200 to
    /// 299.
    ///
    /// Setting it after the operation has finished serializes the response again, on the calling thread.
    public var responseSerializer: any ResponseSerialization {
        get { outcome.withLock { $0.serializer } }
        set {
            outcome.withLock { $0.serializer = newValue }
            if isFinished { processResponse() }
        }
    }

    /// The object that the serializer made; `nil` until the operation has finished, and if the serializer made none. Also set alongside an
    /// error if a rejected response had a body that could be read.
    public var responseObject: Any? { outcome.withLock { $0.object } }

    /// Why the serializer rejected the response, otherwise why the connection failed; `nil` for neither.
    open override var error: (any Error)? { outcome.withLock { $0.error } ?? super.error }

    /// Sets the ``URLConnectionOperation/completionBlock`` to call one of two closures when the operation has finished: `success` with the
    /// serializer's object, or `failure` with the error. A cancelled operation has failed.
    public func setCompletionBlock(
        success: (@Sendable (HTTPRequestOperation, Any?) -> Void)?, failure: (@Sendable (HTTPRequestOperation, any Error) -> Void)?
    ) {
        // Weak, since an operation that never runs must not retain itself; a running one is retained until its completion block has run.
        completionBlock = { [weak self] in
            guard let self else { return }
            if let error { failure?(self, error) } else { success?(self, responseObject) }
        }
    }

    override var resumesWithRange: Bool { true }

    override func processResponse() {
        guard super.error == nil else { return }
        let result = responseSerializer.serialize(response, responseData)
        outcome.withLock { outcome in
            outcome.object = result.object
            outcome.error = (result.error as? URLError)?.adding(request) ?? result.error
        }
    }

    override func configure(copy: URLConnectionOperation) {
        (copy as? HTTPRequestOperation)?.responseSerializer = responseSerializer
    }

    override var archivedKind: OperationArchive.Kind { .http }

    override var archivedSerializer: (any ResponseSerialization)? { responseSerializer }

    override var archivedRejection: (any Error)? { outcome.withLock { $0.error } }

    override func restoreOutcome(from archive: OperationArchive) {
        guard let serializer = archive.serializer?.serializer else {
            // Only the serializer could validate the response again, and it is not in the archive, so the archived error is restored.
            return outcome.withLock { $0.error = archive.refusal?.error }
        }
        responseSerializer = serializer
    }
}
