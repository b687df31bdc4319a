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

    /// What is stored for the URL of a request.
    func find(_ request: TransferRequest) -> StoredResponses
    /// Stores a response in place of those that the same requests select, then calls `completion`; on any thread.
    ///
    /// - Parameters:
    ///   - lease: the one under which it was loaded.
    ///   - observer: the request's; may decide what is stored.
    func store(
        _ head: StoredResponse, _ body: Data, under lease: CacheLease?, for request: TransferRequest, observer: any TransferObserver,
        completion: @escaping @Sendable () -> Void)
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
}

/// The stored responses for a URL, and access to their bodies.
struct StoredResponses: Sendable {
    /// A stored response.
    struct Element: Sendable {
        let head: StoredResponse
        /// Reads the body; `nil` if it is gone.
        let body: @Sendable () -> Data?
    }

    static let none = StoredResponses(heads: [], body: { _ in nil })

    /// The heads, for ``CacheRules``.
    let heads: [StoredResponse]
    private let body: @Sendable (Int) -> Data?

    /// - Parameter body: reads the body of the response at an index; `nil` if it is gone.
    init(heads: [StoredResponse], body: @escaping @Sendable (Int) -> Data?) {
        self.heads = heads
        self.body = body
    }

    subscript(index: Int) -> Element {
        Element(head: heads[index]) { [body] in body(index) }
    }
}

extension TransferRequest {
    /// The key of the responses for the request's URL.
    var cacheURL: String { StorageRules.withoutFragment(url) }
}

/// Stores responses in a ``ResponseCache``.
struct SharedResponseStore: ResponseStoring {
    let cache: ResponseCache

    var largestBody: Int { cache.largestBody }
    var isInMemory: Bool { cache.storage.isInMemory }

    func find(_ request: TransferRequest) -> StoredResponses {
        guard let found = attempt({ try cache.store.find(request.cacheURL) }) ?? nil else { return .none }
        return StoredResponses(heads: found.record.variants.map(\.head)) { index in
            attempt { try cache.store.body(of: index, in: found) } ?? nil
        }
    }

    var coalescingCache: ResponseCache? { cache.coalescesMisses ? cache : nil }

    func store(
        _ head: StoredResponse, _ body: Data, under lease: CacheLease?, for request: TransferRequest, observer: any TransferObserver,
        completion: @escaping @Sendable () -> Void
    ) {
        if attempt({ try cache.store.store(head, body, under: lease) }) != nil { cache.count { $0.stores += 1 } }
        completion()
    }

    func update(_ old: StoredResponses.Element, with head: StoredResponse, for request: TransferRequest) {
        attempt { try cache.store.update(old.head, with: head) }
    }

    func remove(_ url: String) {
        attempt { try cache.remove(url) }
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
