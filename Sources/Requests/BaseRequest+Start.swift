// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

// MARK: - Blocks

extension BaseRequest {
    /// Releases the completion blocks and the upload progress block. Called automatically when the request finishes.
    ///
    /// Blocks that describe the request are kept for its next start: ``constructingBodyBlock``, ``resumableDownloadProgressBlock``.
    public func clearCompletionBlock() {
        // Released outside the lock, because releasing the captures may run arbitrary `deinit` code.
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
    /// Claims the next start, until the agent runs it or a stop ends it; returns `nil` while another start is in flight.
    func claimStart() -> RequestStart? {
        let options = StartOptions(requestOptions)
        return state.withLock { state in
            guard !state.isInFlight else { return nil }
            state.stage = .starting
            state.isStopped = false
            state.starts += 1
            state.options = options
            return RequestStart(number: state.starts, options: options)
        }
    }

    /// Notifies the accessories of a start, unless it has been stopped.
    func notify(of start: RequestStart) {
        let events = RunEvents(accessories)
        let isPending = state.withLock { state in
            guard state.isPending(start) else { return false }
            state.events = events
            return true
        }
        if isPending { events.begin(self) }
    }

    /// Notifies the accessories of a start and has the agent send the request, unless it has been stopped.
    func send(_ start: RequestStart) {
        notify(of: start)
        agent.addRequest(self, start: start)
    }
}

// MARK: - async/await

extension BaseRequest {
    /// Starts the request and awaits its end; if it is already running, awaits the end of that run. Returns after the callbacks have run.
    ///
    /// Cancelling the awaiting task stops the request.
    ///
    /// - Returns: the request.
    /// - Throws: the error the request failed with; `CancellationError` if it was stopped.
    @discardableResult
    public func response() async throws -> Self {
        try await successfulEnding()
        return self
    }

    /// Starts the request, awaits its end, and decodes its response: the body, or the JSON object that was set in its place.
    ///
    /// - Throws: as ``response()``; ``CurlewError/responseSerializationFailed(reason:in:)`` if decoding fails.
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

    /// The bytes to decode: the text of a JSON object that was set or is the only content, otherwise the body.
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
}

// MARK: - WaitableRequest

extension BaseRequest {
    var endingError: (any Error)? { error }
    var addedAccessories: [any RequestAccessory] { state.withLock { $0.accessories } ?? [] }

    func start(_ waiter: @escaping @Sendable (RequestEnding) -> Void, other: @escaping @Sendable (RequestEnding) -> Void) {
        let isInFlight = state.withLock { state in
            let isShared = !state.isInFlight || state.options?.isShared ?? true
            state.waiters.append(isShared ? waiter : other)
            return state.isInFlight
        }
        // Decided under the lock: a request that ends in the meantime must not be sent again.
        if !isInFlight { start() }
    }
}
