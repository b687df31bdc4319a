// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

// MARK: - With blocks

extension BaseRequest {
    /// Sets both blocks, and starts the request.
    public func startWithCompletionBlock(success: CompletionBlock? = nil, failure: CompletionBlock? = nil) {
        setCompletionBlock(success: success, failure: failure)
        start()
    }

    /// Sets one block for both ends, and starts the request.
    public func startWithCompletion(_ completion: CompletionBlock?) {
        startWithCompletionBlock(success: completion, failure: completion)
    }

    /// Sets both blocks, has the others called as by an accessory, each once, and starts the request.
    public func start(
        willStart: RequestEventAccessory.Block? = nil, willStop: RequestEventAccessory.Block? = nil, success: CompletionBlock? = nil,
        failure: CompletionBlock? = nil, didStop: RequestEventAccessory.Block? = nil
    ) {
        addAccessory(RequestEventAccessory(willStart: willStart, willStop: willStop, didStop: didStop))
        startWithCompletionBlock(success: success, failure: failure)
    }

    /// Sets both blocks.
    public func setCompletionBlock(success: CompletionBlock?, failure: CompletionBlock?) {
        successCompletionBlock = success
        failureCompletionBlock = failure
    }

    /// Releases the blocks that tell of the end, and of the progress of an upload. Done by itself when the request is over.
    ///
    /// What describes the request is kept for its next start: ``constructingBodyBlock``, ``resumableDownloadProgressBlock``.
    public func clearCompletionBlock() {
        // What they hold is released outside of the lock.
        _ = state.withLock { $0.takeBlocks() }
    }
}

extension RequestState {
    mutating func takeBlocks() -> [Any?] {
        defer {
            successCompletionBlock = nil
            failureCompletionBlock = nil
            uploadProgressBlock = nil
        }
        return [successCompletionBlock, failureCompletionBlock, uploadProgressBlock]
    }
}

// MARK: - One start at a time

extension BaseRequest {
    /// Claims the next start, until the agent runs it or a stop ends it; `nil` while another one is under way.
    func claimStart() -> Int? {
        state.withLock { state in
            guard !state.isUnderWay else { return nil }
            state.stage = .starting
            state.isStopped = false
            state.starts += 1
            return state.starts
        }
    }

    /// Tells the accessories of a start, and has the agent send the request, unless an accessory has stopped it.
    func send(_ start: Int) {
        toggleAccessoriesWillStart()
        agent.addRequest(self, start: start)
    }
}

// MARK: - One after another

extension BaseRequest {
    /// Starts the request when all that were started like this before are over: one runs at a time, in the whole process. Does not block.
    ///
    /// - Parameters:
    ///   - filter: asked when its turn has come; `false` leaves the request out, with no callback.
    ///   - completion: runs at either end.
    public func startSynchronously(filter: (@Sendable () -> Bool)? = nil, completion: CompletionBlock? = nil) {
        startSynchronously(filter: filter, success: completion, failure: completion)
    }

    /// The same with a block for each end.
    public func startSynchronously(filter: (@Sendable () -> Bool)? = nil, success: CompletionBlock?, failure: CompletionBlock?) {
        StartQueue.shared.add { [self] done in
            guard filter?() ?? true else { return done() }
            setCompletionBlock(success: success, failure: failure)
            start { _ in done() }
        }
    }
}

// MARK: - Awaited

extension BaseRequest {
    /// Starts the request, and waits for its end. Callbacks run before. Of one that runs already, its end is waited for.
    ///
    /// Cancelling the waiting task stops the request.
    ///
    /// - Returns: the request.
    /// - Throws: why it failed; `CancellationError` when it was stopped.
    @discardableResult
    public func response() async throws -> Self {
        try Task.checkCancellation()
        let ending = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<RequestEnding, Never>) in
                start { continuation.resume(returning: $0) }
                // The handler may have run before there was anything to be stopped.
                if Task.isCancelled { stop() }
            }
        } onCancel: {
            stop()
        }
        switch ending {
        case .succeeded: return self
        case .stopped: throw CancellationError()
        case .failed: throw error ?? CurlewError.cancelled
        }
    }

    /// Starts the request, waits for its end, and decodes what it brought: the body, or the JSON object that was set in its place.
    ///
    /// - Throws: as ``response()``; ``CurlewError/responseSerializationFailed(reason:)`` for what can't be decoded.
    public func responseModel<Model: Decodable>(of type: Model.Type = Model.self, decoder: JSONDecoder = JSONDecoder()) async throws
        -> Model
    {
        try await response()
        let data = try encodedResponse()
        do {
            return try decoder.decode(type, from: data)
        } catch {
            throw CurlewError.responseSerializationFailed(reason: .decodingFailed(error: error))
        }
    }

    /// The body as bytes, of a JSON object that was set, or is all there is, its text.
    private func encodedResponse() throws(CurlewError) -> Data {
        let data = responseData
        guard let json = givenJSON ?? (data == nil ? responseJSONObject : nil) else {
            guard let data else { throw .responseSerializationFailed(reason: .inputDataNil) }
            return data
        }
        do {
            return try ResponseSerialization.data(of: json)
        } catch {
            throw .responseSerializationFailed(reason: .jsonSerializationFailed(error: error))
        }
    }

    /// Starts the request; `waiter` is told of the end, after all callbacks. Of a request that runs, of that end.
    func start(_ waiter: @escaping @Sendable (RequestEnding) -> Void) {
        let isUnderWay = state.withLock { state in
            state.waiters.append(waiter)
            return state.isUnderWay
        }
        // One that ends in the meantime is not to be sent again.
        if !isUnderWay { start() }
    }
}
