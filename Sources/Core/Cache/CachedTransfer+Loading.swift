// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// MARK: - The base transport's events

extension CachedTransfer: TransferObserver {
    func transfer(_ id: Int, didReceiveInterim head: ResponseHead) {
        observer.transfer(id, didReceiveInterim: head)
    }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        let now = transport.now()
        let (isWithheld, isStored) = loading.withLock { loading in
            let received = StorageRules.Received(
                statusCode: head.statusCode, headers: head.headers, requestTime: loading.requestTime, responseTime: now)
            loading.received = received
            let isValidation = head.statusCode == 304 && loading.validated != nil
            loading.isWithheld = isValidation || loading.fallback != nil && CacheRules.isServerError(head.statusCode)
            loading.head = loading.isWithheld ? nil : storable(received, head)
            loading.sink = loading.head == nil ? .none : .memory(Data(capacity: initialCapacity(head)))
            loading.delivered = head
            return (loading.isWithheld, loading.head != nil)
        }
        if !isWithheld, !isStored { endFlight(.notStored) }
        transport.invalidate(by: head, to: request)
        return isWithheld ? .proceed : observer.transfer(id, didReceive: head)
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        let (isWithheld, isTooLarge) = loading.withLock { loading in
            guard !loading.sink.isNone else { return (loading.isWithheld, false) }
            // A part is combined in memory with what is stored.
            let isPart = loading.head?.part != nil
            loading.sink.append(bytes, limit: isPart ? min(store.largestBody, Self.largestPart) : store.largestBody) {
                isPart ? nil : store.makeWriter(for: request)
            } countFailure: {
                store.countFailure()
            }
            return (loading.isWithheld, loading.sink.isNone)
        }
        if isTooLarge { endFlight(.notStored) }
        return isWithheld ? .proceed : observer.transfer(id, didReceive: bytes)
    }

    func transfer(_ id: Int, didSend count: Int64) {
        observer.transfer(id, didSend: count)
    }

    func transfer(_ id: Int, didComplete outcome: TransferCompletion) {
        var loading = loading.withLock { loading in
            defer { loading.sink = .none }
            return loading
        }
        // A body that is written leaves nothing unless it is committed below; that of a failed transfer is removed before its end is
        // reported.
        if outcome.error != nil || loading.isOutdated { loading.sink = .none }
        var metrics = outcome.metrics
        metrics.cacheOutcome = loading.outcome
        metrics.cacheReason = loading.reason
        let outcome = TransferCompletion(error: outcome.error, metrics: metrics, trailers: outcome.trailers)
        if let error = outcome.error {
            if case CurlewError.cancelled = error {} else { endFlight(.notStored) }
            guard loading.fallback != nil, loading.delivered == nil || loading.isWithheld, Self.isFailureOfHost(error) else {
                return finish(outcome)
            }
            return later { [loading] in self.serveFallback(loading, outcome) }
        }
        guard let received = loading.received else { return finish(outcome) }
        if loading.isWithheld {
            later { [loading] in self.withheldCompleted(received, loading, outcome) }
        } else if let head = loading.head, case .memory(let body) = loading.sink {
            later { [loading] in self.storeResponse(head, body, loading, outcome) }
        } else if let head = loading.head, case .writing(let body, _) = loading.sink {
            later { self.storeWritten(head, body, outcome) }
        } else if received.statusCode == 304 || cacheRequest.method == .head {
            later { [loading] in self.updateStored(received, loading, outcome) }
        } else {
            finish(outcome)
        }
    }

    /// Does not store the response that is being loaded: its URL was invalidated.
    func dropResponse() { loading.withLock { $0.isOutdated = true } }

    /// Counts and completes a transfer whose response the observer has received.
    func finish(_ outcome: TransferCompletion, isStored: Bool = false) {
        if outcome.error == nil { endFlight(.notStored) }
        guard !isStored else {
            var metrics = outcome.metrics
            metrics.cacheDetail.isStored = true
            return finish(TransferCompletion(error: outcome.error, metrics: metrics, trailers: outcome.trailers))
        }
        if let kind = outcome.metrics.cacheOutcome { store.count(kind, outcome.metrics.cacheReason ?? .notStored) }
        complete(outcome)
    }

    /// The head under which the response is stored, `nil` if it is not.
    private func storable(_ received: StorageRules.Received, _ head: ResponseHead) -> StoredResponse? {
        guard store.takesLargeBodies || !request.expectsLargeBody, (head.expectedBodyLength ?? 0) <= store.largestBody else { return nil }
        let stored = StorageRules.head(of: received, url: request.cacheURL, request: cacheRequest)
        // Parts are combined in memory, where a large body is not to be.
        return request.expectsLargeBody && stored?.part != nil ? nil : stored
    }

    /// Room for a body of an announced length, as far as it stays in memory.
    private func initialCapacity(_ head: ResponseHead) -> Int {
        min(Int(clamping: head.expectedBodyLength ?? 0), VariantStore.largestInline, store.largestBody)
    }

    /// The most bytes of a part that is stored, which are collected in memory: 32 MiB.
    private static let largestPart = 32 << 20

    /// Runs what may block, or run users' code, on the queue; with a store in memory, in place.
    private func later(_ body: @escaping @Sendable () -> Void) {
        enter(.storing)
        // One that was ended when the base transport had completed it already: nothing else does what its end asks for.
        let run: @Sendable () -> Void = { if !self.completeIfFailed() { body() } }
        if store.isInMemory { run() } else { transport.queue.async(execute: run) }
    }

    /// Whether a transfer has failed for reasons of the host or the way to it, so that a stale response may be served.
    private static func isFailureOfHost(_ error: any Error) -> Bool {
        guard case CurlewError.transferFailed(let failure) = error else { return false }
        let kinds: [TransferFailure.Kind] = [
            .circuitOpen, .connect, .connectTimeout, .connectionLost, .firstByteTimeout, .idleTimeout, .nameResolution, .overloaded, .proxy,
            .queueTimeout, .rateLimited, .totalTimeout,
        ]
        return kinds.contains(failure.kind)
    }
}
