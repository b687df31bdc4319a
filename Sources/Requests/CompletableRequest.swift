// SPDX-License-Identifier: Apache-2.0

/// A request, batch or chain with completion blocks, and the ways to start it: ``BaseRequest``, ``BatchRequest``, ``ChainRequest``.
///
/// Conformances of other types are not supported.
public protocol CompletableRequest: RunnableRequest {
    /// What the completion blocks are called with.
    associatedtype Subject
    /// Runs on success, after the delegate; released afterwards.
    var successCompletionBlock: (@Sendable (Subject) -> Void)? { get set }
    /// Runs on failure, after the delegate; released afterwards.
    var failureCompletionBlock: (@Sendable (Subject) -> Void)? { get set }
    /// Releases the blocks. Called automatically at the end.
    func clearCompletionBlock()
}

extension CompletableRequest {
    /// Sets both completion blocks.
    public func setCompletionBlock(success: (@Sendable (Subject) -> Void)?, failure: (@Sendable (Subject) -> Void)?) {
        successCompletionBlock = success
        failureCompletionBlock = failure
    }

    /// Sets both completion blocks, and starts.
    public func startWithCompletionBlock(
        success: (@Sendable (Subject) -> Void)? = nil, failure: (@Sendable (Subject) -> Void)? = nil
    ) {
        setCompletionBlock(success: success, failure: failure)
        start()
    }

    /// Sets one completion block for success and failure, and starts.
    public func startWithCompletion(_ completion: (@Sendable (Subject) -> Void)?) {
        startWithCompletionBlock(success: completion, failure: completion)
    }

    /// Sets both completion blocks, adds an accessory that calls the other blocks once each, and starts.
    public func start(
        willStart: RequestEventAccessory.Block? = nil, willStop: RequestEventAccessory.Block? = nil,
        success: (@Sendable (Subject) -> Void)? = nil, failure: (@Sendable (Subject) -> Void)? = nil,
        didStop: RequestEventAccessory.Block? = nil
    ) {
        addAccessory(RequestEventAccessory(willStart: willStart, willStop: willStop, didStop: didStop))
        startWithCompletionBlock(success: success, failure: failure)
    }

    /// Starts once everything started this way before has finished: one request, batch or chain runs at a time, across the whole process.
    /// Does not block.
    ///
    /// - Parameters:
    ///   - filter: called when the turn comes; returning `false` skips the start without any callback.
    ///   - completion: runs on success and on failure.
    public func startSynchronously(filter: (@Sendable () -> Bool)? = nil, completion: (@Sendable (Subject) -> Void)? = nil) {
        startSynchronously(filter: filter, success: completion, failure: completion)
    }

    /// Starts in turn, as ``startSynchronously(filter:completion:)`` does, with separate blocks for success and failure.
    public func startSynchronously(
        filter: (@Sendable () -> Bool)? = nil, success: (@Sendable (Subject) -> Void)?, failure: (@Sendable (Subject) -> Void)?
    ) {
        StartQueue.shared.add { [self] done in
            guard filter?() ?? true, let request = self as? any WaitableRequest else { return done() }
            setCompletionBlock(success: success, failure: failure)
            request.start { _ in done() }
        }
    }
}
