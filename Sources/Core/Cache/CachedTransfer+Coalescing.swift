// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

// MARK: - Equal requests that miss at the same time

extension CachedTransfer {
    /// Blocks while other processes load, so that it is not one of the caches' queues, which deliver.
    private static let leaseQueue = DispatchQueue(label: "curlew.cache.leases", qos: .utility, attributes: .concurrent)
    /// The longest time for which a thread waits without a look at whether the request is still wanted.
    private static let leaseInterval = Duration.seconds(1)

    /// Whether the request waits for equal ones, and they for it: not if its body is paused at will.
    private var isCoalescible: Bool {
        cacheRequest.method == .get && cacheRequest.range == nil && !cacheRequest.isConditional && !isInBackground
            && cacheRequest.mode != .revalidates && !cacheRequest.directives.has(.noStore) && !cacheRequest.directives.has(.noCache)
            && !request.expectsLargeBody && !request.mayPause
    }

    /// Sends the request, unless an equal one is in flight: then it waits for that, and looks up again.
    ///
    /// - Parameter wait: what has become of the one that it has waited for already.
    func loadOnce(_ start: Loading, conditions: HTTPHeaders = HTTPHeaders(), after wait: MissCoalescer.Outcome?) {
        let mayWait = wait.map { $0 == .abandoned } ?? true
        guard mayWait, let cache = store.coalescingCache, let coalescer = cache.coalescer, isCoalescible else {
            return load(start, conditions: conditions)
        }
        let isWaiting = Lock(true)
        let wake = { @Sendable [self] (outcome: MissCoalescer.Outcome) in
            guard
                isWaiting.withLock({ isWaiting in
                    defer { isWaiting = false }; return isWaiting
                })
            else { return }
            transport.queue.async { self.lookUp(after: outcome) }
        }
        let flight = coalescer.join(
            MissCoalescer.Key(url: request.cacheURL, headers: request.headers, partition: cacheRequest.partition), wake: wake)
        guard let flight else {
            // Not longer than it would wait for the host.
            if let limit = waitLimit { transport.queue.asyncAfter(deadline: .now() + limit) { wake(.notStored) } }
            return
        }
        // A cancellation may have completed the transfer on the queue meanwhile: nothing else would end the flight.
        let isAbandoned = state.withLock { state in
            state.flight = flight
            return state.isSuspended || state.isComplete
        }
        if isAbandoned { endFlight(.abandoned) }
        guard cache.hasLeases else { return load(start, conditions: conditions) }
        Self.leaseQueue.async { self.loadUnderLease(start, conditions, cache) }
    }

    /// The shortest of the request's timeouts that count from its start, in seconds.
    private var waitLimit: Double? {
        let options = request.options
        return [options.firstByteTimeout, options.totalTimeout].compactMap { $0?.seconds }.min()
    }

    /// Ends the flight and its lease, once: requests that wait are woken, in other processes too.
    func endFlight(_ outcome: MissCoalescer.Outcome) {
        let (flight, lease) = state.withLock { state in
            defer { (state.flight, state.lease) = (nil, nil) }
            return (state.flight, state.lease)
        }
        guard let cache = store.coalescingCache else { return }
        if let lease { Self.leaseQueue.async { Self.release(lease, cache) } }
        if let flight { cache.coalescer?.end(flight, outcome) }
    }

    private static func release(_ lease: CacheLease, _ cache: ResponseCache) {
        do { try cache.release(lease) } catch { cache.count { $0.failures += 1 } }
    }

    // MARK: Several processes

    /// Sends the request if no other process does, else waits for that one's response.
    private func loadUnderLease(_ start: Loading, _ conditions: HTTPHeaders, _ cache: ResponseCache) {
        let end = ContinuousClock.now + cache.leaseDuration
        do {
            var hasWaited = false
            while !isUnwanted {
                if let lease = try cache.acquireLease(for: request.cacheURL, in: cacheRequest.partition) {
                    return transport.queue.async { self.lead(lease, start, conditions, cache) }
                }
                // Whoever had the lease has stored nothing: waiting again would send the requests one after the other.
                if hasWaited || ContinuousClock.now >= end { break }
                let left = end - .now
                hasWaited = try cache.waitForLeaseEnd(
                    of: request.cacheURL, in: cacheRequest.partition, timeout: min(left, Self.leaseInterval))
                if hasWaited, serveStored() { return }
            }
        } catch {
            cache.count { $0.failures += 1 }
        }
        transport.queue.async { self.loadIfWanted(start, conditions) }
    }

    private var isUnwanted: Bool { state.withLock { $0.failure != nil } }

    /// Loads under a lease, unless another process has stored the response before that was granted.
    private func lead(_ lease: CacheLease, _ start: Loading, _ conditions: HTTPHeaders, _ cache: ResponseCache) {
        guard !isUnwanted, !isComplete, !serveStored() else {
            Self.leaseQueue.async { Self.release(lease, cache) }
            _ = completeIfFailed()
            return
        }
        let isAbandoned = state.withLock { state in
            state.lease = lease
            return state.isComplete
        }
        if isAbandoned { endFlight(.abandoned) }
        loadIfWanted(start, conditions)
    }

    private func loadIfWanted(_ start: Loading, _ conditions: HTTPHeaders) {
        guard !completeIfFailed(), !isComplete else { return }
        load(start, conditions: conditions)
    }

    /// Serves what is stored now, if it is fresh.
    private func serveStored() -> Bool {
        let stored = store.find(request, in: cacheRequest.partition)
        let now = transport.now()
        guard !isUnwanted,
            case .serve(let index, let delivery, _, isStale: false, validates: _) = CacheRules.decide(cacheRequest, stored.heads, now: now),
            let served = Served(stored[index], delivery, now: now)
        else { return false }
        serve(served, as: .hit, .collapsed)
        return true
    }
}
