// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// MARK: - What becomes of a response

extension CachedTransfer {
    /// A response that was kept from the observer is complete: a 304 to the cache's conditions, or an error that a stored response replaces.
    func withheldCompleted(_ received: StorageRules.Received, _ loading: Loading, _ outcome: TransferCompletion) {
        guard !completeIfFailed(), !isComplete else { return }
        guard received.statusCode == 304, let index = loading.validated else { return serveFallback(loading, outcome) }
        let stale = loading.stored[index]
        guard let head = StorageRules.updated(stale.head, by: received, request: request.headers) else {
            // The ETag of the 304 is that of another representation, or it forbids storing this one: load it without conditions.
            store.remove(request.cacheURL)
            return load(Loading(reason: loading.reason))
        }
        guard
            let served = Served(
                StoredResponses.Element(head: head, body: stale.body, open: stale.open),
                cacheRequest.range == nil ? .whole : delivery(of: head), now: nil)
        else {
            // The body was evicted meanwhile.
            return load(Loading(reason: .notStored))
        }
        if !loading.isOutdated { store.update(stale, with: head, for: request) }
        var metrics = outcome.metrics
        metrics.cacheDetail.forwardStatus = 304
        serve(served, as: .revalidated, loading.reason, metrics: metrics, received: received.headers)
    }

    /// What the request wants of a stored response that was validated.
    private func delivery(of head: StoredResponse) -> CacheDelivery {
        guard case .serve(_, let delivery, _, _, _) = CacheRules.decide(cacheRequest.anyAge, [head], now: transport.now()) else {
            return .whole
        }
        return delivery
    }

    /// Serves a stale response in place of an error (RFC 5861, section 4).
    func serveFallback(_ loading: Loading, _ outcome: TransferCompletion) {
        guard !completeIfFailed(), !isComplete else { return }
        guard let index = loading.fallback, let served = Served(loading.stored[index], .whole, now: transport.now()) else {
            // The body was evicted meanwhile. A response that was kept back is lost, so that it is loaded again.
            return loading.isWithheld ? load(Loading(reason: .notStored)) : finish(outcome)
        }
        var metrics = outcome.metrics
        metrics.cacheDetail.forwardStatus = loading.received.flatMap { Int16(exactly: $0.statusCode) }
        // Those of an error count as well (RFC 6265, section 3; RFC 6797, section 8.1).
        serve(served, as: .stale, .staleIfError, metrics: metrics, received: loading.received?.headers ?? HTTPHeaders())
    }

    /// Stores a response before its completion is delivered, so that a request made because of that finds it.
    func storeResponse(_ head: StoredResponse, _ body: Data, _ loading: Loading, _ outcome: TransferCompletion) {
        var (head, body) = (head, body)
        if let part = head.part {
            // A part whose length is not the announced one would be combined wrongly.
            guard part.length == Int64(body.count) else { return finish(outcome) }
            for index in loading.stored.heads.indices {
                let old = loading.stored[index]
                guard old.head.selection == head.selection else { continue }
                // A whole response is not replaced by a part of it.
                if old.head.part == nil, old.head.strongValidator == head.strongValidator { return finish(outcome) }
                if let both = StorageRules.combined(old.head, head), let beginning = old.body(),
                    beginning.count + body.count <= store.largestBody
                {
                    (head, body) = (both, beginning + body)
                    break
                }
            }
        }
        let lease = state.withLock { $0.lease }
        store.store(head, body, under: lease, for: request, observer: observer) { isStored in
            self.endFlight(.stored)
            self.finish(outcome, isStored: isStored)
        }
    }

    /// Stores a response whose body was written while it was received.
    func storeWritten(_ head: StoredResponse, _ body: VariantStore.Writing, _ outcome: TransferCompletion) {
        let isStored = store.store(head, body, under: state.withLock { $0.lease })
        endFlight(.stored)
        finish(outcome, isStored: isStored)
    }

    /// Updates what is stored by a response without a body: a 304 to the request's own conditions, or one to HEAD (RFC 9111, section 4.3.5).
    func updateStored(_ received: StorageRules.Received, _ loading: Loading, _ outcome: TransferCompletion) {
        for index in CacheRules.allSelected(cacheRequest, loading.stored.heads) {
            let old = loading.stored[index]
            if received.statusCode == 304 {
                // Without the tag of the stored response it may confirm only what the request's sender has.
                guard let tag = received.headers.values(for: "ETag").first.flatMap({ EntityTag($0) }), let own = old.head.entityTag,
                    own.matchesStrongly(tag), let head = StorageRules.updated(old.head, by: received, request: request.headers)
                else { continue }
                store.update(old, with: head, for: request)
            } else if let head = StorageRules.headUpdate(old.head, by: received, request: request.headers) {
                store.update(old, with: head, for: request)
            } else if received.statusCode == 200, old.head.statusCode == 200 {
                store.remove(request.cacheURL)
            }
        }
        finish(outcome)
    }
}

extension CacheRequest {
    /// The same request, satisfied with a response of any age.
    fileprivate var anyAge: CacheRequest { CacheRequest(method: method, headers: headers, mode: .storedOrHost, partition: partition) }
}
