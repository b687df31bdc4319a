// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// An operation for HTTP: judges the response, makes a value of it, and goes on after a pause where it was.
///
/// After a pause it asks for the rest of the body (`Range`, with `If-Range` if there is a strong `ETag` or a `Last-Modified` that counts
/// for one, also beside a weak `ETag`; RFC 9110, sections 13.1.5 and 14). Only a 206 that fits is appended; a 200 begins anew, a 416 at the
/// full length is the end.
open class HTTPRequestOperation: URLConnectionOperation, @unchecked Sendable {  // the state is behind a lock
    private struct Outcome: @unchecked Sendable {  // objects are made by the serializer, and not changed here
        var serializer: any ResponseSerialization = HTTPResponseSerializer()
        var object: Any?
        var error: (any Error)?
    }

    private let outcome = Lock(Outcome())

    /// Judges the response and makes ``responseObject``; an ``HTTPResponseSerializer`` by default, which wants a status from 200 to 299.
    ///
    /// Set when the operation is over, it judges the response anew, on the calling thread.
    public var responseSerializer: any ResponseSerialization {
        get { outcome.withLock { $0.serializer } }
        set {
            outcome.withLock { $0.serializer = newValue }
            if isFinished { processResponse() }
        }
    }

    /// What the serializer made of the response; `nil` until the operation is over, and when it made nothing. Also there beside an error
    /// where a response that was refused had a body to read.
    public var responseObject: Any? { outcome.withLock { $0.object } }

    /// Why the serializer refused the response, else why the connection failed; `nil` when neither did.
    open override var error: (any Error)? { outcome.withLock { $0.error } ?? super.error }

    /// Has one of two closures called when the operation is over, as its ``URLConnectionOperation/completionBlock``: with the object that
    /// the serializer made, or with the error. A cancelled operation has failed.
    public func setCompletionBlock(
        success: (@Sendable (HTTPRequestOperation, Any?) -> Void)?, failure: (@Sendable (HTTPRequestOperation, any Error) -> Void)?
    ) {
        // The operation lives until it has run; one that never does must not keep itself.
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

    override var archivedRefusal: (any Error)? { outcome.withLock { $0.error } }

    override func restoreJudgement(from archive: OperationArchive) {
        guard let serializer = archive.serializer?.serializer else {
            // Whether such a response is acceptable only a serializer says that is not here.
            return outcome.withLock { $0.error = archive.refusal?.error }
        }
        responseSerializer = serializer
    }
}
