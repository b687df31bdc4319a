// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// MARK: - The base transport's events

extension CachedTransfer: TransferObserver {
    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        let now = transport.now()
        let (isWithheld, isStored) = loading.withLock { loading in
            let received = StorageRules.Received(
                statusCode: head.statusCode, headers: head.headers, requestTime: loading.requestTime, responseTime: now)
            loading.received = received
            let isValidation = head.statusCode == 304 && loading.validated != nil
            loading.isWithheld = isValidation || loading.fallback != nil && CacheRules.isServerError(head.statusCode)
            loading.head = loading.isWithheld ? nil : storable(received, head)
            loading.body = loading.head == nil ? nil : Data()
            loading.delivered = head
            return (loading.isWithheld, loading.head != nil)
        }
        if !isWithheld, !isStored { endFlight(.notStored) }
        transport.invalidate(by: head, to: request)
        return isWithheld ? .proceed : observer.transfer(id, didReceive: head)
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        let (isWithheld, isTooLarge) = loading.withLock { loading in
            var isTooLarge = false
            if let count = loading.body?.count {
                isTooLarge = count + bytes.count > store.largestBody
                if isTooLarge { loading.body = nil } else { loading.body?.append(contentsOf: bytes) }
            }
            return (loading.isWithheld, isTooLarge)
        }
        if isTooLarge { endFlight(.notStored) }
        return isWithheld ? .proceed : observer.transfer(id, didReceive: bytes)
    }

    func transfer(_ id: Int, didSend count: Int64) {
        observer.transfer(id, didSend: count)
    }

    func transfer(_ id: Int, didComplete outcome: TransferCompletion) {
        let loading = loading.withLock { $0 }
        var metrics = outcome.metrics
        metrics.cacheOutcome = loading.outcome
        metrics.cacheReason = loading.reason
        let outcome = TransferCompletion(error: outcome.error, metrics: metrics, trailers: outcome.trailers)
        if let error = outcome.error {
            if case CurlewError.cancelled = error {} else { endFlight(.notStored) }
            guard loading.fallback != nil, loading.delivered == nil || loading.isWithheld, Self.isFailureOfHost(error) else {
                return finish(outcome)
            }
            return later { self.serveFallback(loading, outcome) }
        }
        guard let received = loading.received else { return finish(outcome) }
        if loading.isWithheld {
            later { self.withheldCompleted(received, loading, outcome) }
        } else if let head = loading.head, let body = loading.body {
            later { self.storeResponse(head, body, loading, outcome) }
        } else if received.statusCode == 304 || cacheRequest.method == .head {
            later { self.updateStored(received, loading, outcome) }
        } else {
            finish(outcome)
        }
    }

    /// Counts and completes a transfer whose response the observer has received.
    func finish(_ outcome: TransferCompletion) {
        if outcome.error == nil { endFlight(.notStored) }
        if let kind = outcome.metrics.cacheOutcome { store.count(kind, outcome.metrics.cacheReason ?? .notStored) }
        complete(outcome)
    }

    /// The head under which the response is stored, `nil` if it is not.
    private func storable(_ received: StorageRules.Received, _ head: ResponseHead) -> StoredResponse? {
        guard !request.expectsLargeBody, (head.expectedBodyLength ?? 0) <= store.largestBody else { return nil }
        return StorageRules.head(of: received, url: request.cacheURL, request: cacheRequest)
    }

    /// Runs what may block, or run users' code, on the queue; with a store in memory, in place.
    private func later(_ body: @escaping @Sendable () -> Void) {
        state.withLock { $0.stage = .storing }
        if store.isInMemory { body() } else { transport.queue.async(execute: body) }
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
