// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Where a ``CachingTransport`` stores responses. Failures of a store are misses, and count in its statistics.
protocol ResponseStoring: Sendable {
    /// The size of the largest body that is stored, in bytes.
    var largestBody: Int { get }
    /// Whether no call blocks.
    var isInMemory: Bool { get }
    /// Whether the bodies of downloads and of streamed requests are stored.
    var takesLargeBodies: Bool { get }

    /// What is stored for the URL of a request in its partition.
    func find(_ request: TransferRequest, in partition: String) -> StoredResponses
    /// What is stored for other URLs that differ from the request's in nothing that distinguishes it (`No-Vary-Search`).
    func findEquivalents(_ request: TransferRequest, in partition: String) -> StoredResponses
    /// Whether the observer of a request decides what is stored of its response.
    func asks(_ observer: any TransferObserver) -> Bool
    /// Stores a response in place of those that the same requests select, then calls `completion` with whether it is stored; on any thread.
    ///
    /// - Parameters:
    ///   - lease: the one under which it was loaded.
    ///   - observer: the request's; may decide what is stored.
    func store(
        _ head: StoredResponse, _ body: Data, under lease: CacheLease?, for request: TransferRequest, observer: any TransferObserver,
        completion: @escaping @Sendable (Bool) -> Void)
    /// Begins to store a large body; `nil` if the store takes bodies whole only, or has failed.
    func makeWriter(for request: TransferRequest) -> VariantStore.Writing?
    /// Stores a response whose body is written already; `false` if the store has failed.
    func store(_ head: StoredResponse, _ body: VariantStore.Writing, under lease: CacheLease?) -> Bool
    /// Counts a failure to write.
    func countFailure()
    /// Replaces the head of a stored response.
    func update(_ old: StoredResponses.Element, with head: StoredResponse, for request: TransferRequest)
    /// Removes the responses for a URL.
    func remove(_ url: String)
    /// Removes the responses of an origin.
    func remove(origin: HTTPOrigin)
    /// Counts what was done for a request.
    func count(_ outcome: TransferMetrics.CacheOutcome, _ reason: CacheReason)
    /// The cache, if equal requests that miss at the same time become one.
    var coalescingCache: ResponseCache? { get }
}

extension ResponseStoring {
    var coalescingCache: ResponseCache? { nil }
    func makeWriter(for request: TransferRequest) -> VariantStore.Writing? { nil }
    func store(_ head: StoredResponse, _ body: VariantStore.Writing, under lease: CacheLease?) -> Bool { false }
    func findEquivalents(_ request: TransferRequest, in partition: String) -> StoredResponses { .none }
    func countFailure() {}
    func asks(_ observer: any TransferObserver) -> Bool { false }
}

/// The stored responses for a URL, and access to their bodies.
struct StoredResponses: Sendable {
    /// A stored response.
    struct Element: Sendable {
        let head: StoredResponse
        /// Reads the body; `nil` if it is gone.
        let body: @Sendable () -> Data?
        /// Opens a large body, to be read in pieces; `nil` if it is read whole, or gone.
        let open: @Sendable () -> (any CacheBodyReader)?
    }

    static let none = StoredResponses(heads: [], body: { _ in nil })
    /// The store could not be read.
    static let failed = StoredResponses(heads: [], body: { _ in nil }, hasFailed: true)

    /// The heads, for ``CacheRules``.
    let heads: [StoredResponse]
    let hasFailed: Bool
    private let body: @Sendable (Int) -> Data?
    private let open: @Sendable (Int) -> (any CacheBodyReader)?

    /// - Parameters:
    ///   - body: reads the body of the response at an index; `nil` if it is gone.
    ///   - open: opens it, to be read in pieces; `nil` if it is read whole.
    init(
        heads: [StoredResponse], body: @escaping @Sendable (Int) -> Data?,
        open: @escaping @Sendable (Int) -> (any CacheBodyReader)? = { _ in nil }, hasFailed: Bool = false
    ) {
        self.heads = heads
        self.hasFailed = hasFailed
        self.body = body
        self.open = open
    }

    subscript(index: Int) -> Element {
        Element(head: heads[index], body: { [body] in body(index) }, open: { [open] in open(index) })
    }
}

extension TransferRequest {
    /// The key of the responses for the request's URL.
    var cacheURL: String { StorageRules.identity(of: url) }
}

/// Stores responses in a ``ResponseCache``.
struct SharedResponseStore: ResponseStoring {
    let cache: ResponseCache

    var largestBody: Int { cache.largestBody }
    var isInMemory: Bool { cache.storage.isInMemory }
    var takesLargeBodies: Bool { true }

    func find(_ request: TransferRequest, in partition: String) -> StoredResponses {
        guard let result = attempt({ try cache.store.find(request.cacheURL, in: partition) }) else { return .failed }
        guard let found = result else { return .none }
        return StoredResponses(heads: found.record.variants.map(\.head)) { index in
            attempt { try cache.store.body(of: index, in: found) } ?? nil
        } open: { index in
            attempt { try cache.store.open(index, in: found) } ?? nil
        }
    }

    func findEquivalents(_ request: TransferRequest, in partition: String) -> StoredResponses {
        let others = attempt { try cache.store.findEquivalents(of: request.cacheURL, in: partition) } ?? []
        guard !others.isEmpty else { return .none }
        return StoredResponses(heads: others.map { $0.found.record.variants[$0.index].head }) { index in
            attempt { try cache.store.body(of: others[index].index, in: others[index].found) } ?? nil
        } open: { index in
            attempt { try cache.store.open(others[index].index, in: others[index].found) } ?? nil
        }
    }

    func makeWriter(for request: TransferRequest) -> VariantStore.Writing? {
        attempt { try cache.store.makeWriter(request.cacheURL) } ?? nil
    }

    func store(_ head: StoredResponse, _ body: VariantStore.Writing, under lease: CacheLease?) -> Bool {
        counted { try cache.store.store(head, body, under: lease) }
    }

    /// Counts a response that is stored; `false` if the store has failed.
    private func counted(_ store: () throws -> Void) -> Bool {
        guard attempt(store) != nil else { return false }
        cache.count { $0.stores += 1 }
        return true
    }

    func countFailure() { cache.count { $0.failures += 1 } }

    var coalescingCache: ResponseCache? { cache.coalescesMisses ? cache : nil }

    func store(
        _ head: StoredResponse, _ body: Data, under lease: CacheLease?, for request: TransferRequest, observer: any TransferObserver,
        completion: @escaping @Sendable (Bool) -> Void
    ) {
        completion(counted { try cache.store.store(head, body, under: lease) })
    }

    func update(_ old: StoredResponses.Element, with head: StoredResponse, for request: TransferRequest) {
        attempt { try cache.store.update(old.head, with: head) }
    }

    func remove(_ url: String) {
        attempt { try cache.remove(stored: url) }
    }

    func remove(origin: HTTPOrigin) {
        attempt { try cache.remove(origin: origin) }
    }

    func count(_ outcome: TransferMetrics.CacheOutcome, _ reason: CacheReason) {
        cache.count { statistics in
            switch outcome {
            case .hit:
                statistics.hits += 1
                if reason == .collapsed { statistics.collapsed += 1 }
            case .stale:
                statistics.hits += 1
                statistics.stale += 1
            case .revalidated: statistics.validations += 1
            case .miss: statistics.misses += 1
            case .bypass: statistics.bypasses += 1
            }
        }
    }

    /// Returns `nil` if the store has failed, which is counted. An entry that is too large is no failure.
    @discardableResult
    private func attempt<Value>(_ body: () throws -> Value) -> Value? {
        do {
            return try body()
        } catch is CacheStorageError {
            return nil
        } catch {
            cache.count { $0.failures += 1 }
            return nil
        }
    }
}
