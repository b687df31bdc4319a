// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Stores responses in a `URLCache`, with the cache keys, secondary keys (`Vary`), partitions and times that Foundation's cache on Linux
/// lacks. It has room for one variant of each response, in one partition.
struct URLCacheStore: ResponseStoring {
    /// A body may take up to one of this many parts of the cache, which is Foundation's limit.
    private static let capacityDivisor = 20
    /// Makes removing and storing atomic. On Linux, storing a response twice under one key makes `URLCache` trap at a later eviction, so
    /// the old one is removed before; static, because sessions share caches.
    private static let writeLock = Lock(())

    let cache: URLCache

    /// The size of the largest body that is stored, in bytes.
    var largestBody: Int { max(cache.memoryCapacity, cache.diskCapacity) / Self.capacityDivisor }
    /// The cache may be on disk.
    var isInMemory: Bool { false }
    /// Foundation's cache takes bodies whole.
    var takesLargeBodies: Bool { false }

    // MARK: Reading

    func find(_ request: TransferRequest, in partition: String = "") -> StoredResponses {
        guard let cached = cached(request.url), let head = head(of: cached, for: request, in: partition) else { return .none }
        let data = cached.data
        return StoredResponses(heads: [head]) { _ in data }
    }

    /// The head of Foundation's stored response; `nil` if it is none for requests of the partition.
    private func head(of cached: CachedURLResponse, for request: TransferRequest, in partition: String) -> StoredResponse? {
        guard let response = cached.response as? HTTPURLResponse else { return nil }
        let headers = HTTPHeaders(response)
        let metadata = Metadata(cached.userInfo)
        // One of an earlier version does not say whose it is. One that the program has stored itself is for plain requests.
        guard !metadata.isUnreadable, metadata.partition == partition else { return nil }
        // An entry that the program has stored itself has no secondary key: it serves all plain requests, but for `Vary: *`.
        guard let any = SelectionKey(response: headers, isPublic: true, request: request.headers) else { return nil }
        let date = headers.value(for: "Date").flatMap { HTTPDate.date(from: $0) }?.timeIntervalSince1970 ?? 0
        return StoredResponse(
            url: request.cacheURL, statusCode: response.statusCode, headers: headers, requestTime: metadata.requestTime ?? date,
            responseTime: metadata.responseTime ?? date, selection: metadata.selection ?? any, part: metadata.part,
            partition: partition)
    }

    /// Foundation's stored response for a URL.
    func cached(_ url: String) -> CachedURLResponse? {
        guard let keys = CacheKeys(url) else { return nil }
        return keys.all.lazy.compactMap { cache.cachedResponse(for: $0) }.first {
            ($0.response.url?.absoluteString).map { StorageRules.identity(of: $0) } == keys.url
        }
    }

    // MARK: Writing

    func asks(_ observer: any TransferObserver) -> Bool { (observer as? any CacheDecider)?.decidesAboutCaching ?? false }

    func store(
        _ head: StoredResponse, _ body: Data, under lease: CacheLease?, for request: TransferRequest, observer: any TransferObserver,
        completion: @escaping @Sendable (Bool) -> Void
    ) {
        guard let proposed = proposal(head, body) else { return completion(false) }
        guard let decider = observer as? any CacheDecider else {
            store(proposed, proposed: proposed, for: request)
            return completion(true)
        }
        decider.decide(aboutCaching: proposed) { chosen in
            if let chosen { store(chosen, proposed: proposed, for: request) }
            completion(chosen.map { $0.storagePolicy != .notAllowed } ?? false)
        }
    }

    /// Replaces the head of a stored response, unless it was removed, or another one has taken its place. What the delegate has chosen for
    /// it stays: where it is stored, and its `userInfo`.
    func update(_ old: StoredResponses.Element, with head: StoredResponse, for request: TransferRequest) {
        Self.writeLock.withLock { _ in
            guard let current = cached(request.url), self.head(of: current, for: request, in: old.head.partition) == old.head,
                let updated = proposal(head, current.data), let keys = CacheKeys(request.url)
            else { return }
            let userInfo = (current.userInfo ?? [:]).merging(updated.userInfo ?? [:]) { $1 }
            let response = CachedURLResponse(
                response: updated.response, data: current.data, userInfo: userInfo, storagePolicy: current.storagePolicy)
            replace(keys, with: response)
        }
    }

    /// A response as Foundation's type; `nil` if it can't be stored.
    func proposal(_ head: StoredResponse, _ body: Data) -> CachedURLResponse? {
        guard let keys = CacheKeys(head.url), let url = URL(string: keys.url),
            let response = HTTPURLResponse(
                url: url, statusCode: head.statusCode, httpVersion: "HTTP/1.1", headerFields: head.headers.dictionary)
        else { return nil }
        return CachedURLResponse(response: response, data: body, userInfo: Metadata(head).userInfo, storagePolicy: .allowed)
    }

    /// Stores the response that the delegate has chosen for a proposal.
    ///
    /// The proposal's metadata is kept, as a response that the delegate makes has none.
    func store(_ chosen: CachedURLResponse, proposed: CachedURLResponse, for request: TransferRequest) {
        guard chosen.storagePolicy != .notAllowed, let keys = CacheKeys(request.url) else { return }
        let userInfo = (proposed.userInfo ?? [:]).merging(chosen.userInfo ?? [:]) { $1 }
        let response = CachedURLResponse(
            response: chosen.response, data: chosen.data, userInfo: userInfo, storagePolicy: chosen.storagePolicy)
        Self.writeLock.withLock { _ in replace(keys, with: response) }
    }

    /// Stores a response in place of another one; with the lock held.
    private func replace(_ keys: CacheKeys, with response: CachedURLResponse) {
        cache.removeCachedResponse(for: keys.primary)
        cache.storeCachedResponse(response, for: keys.primary)
    }

    /// Removes the stored responses for a URL.
    func remove(_ url: String) {
        guard let keys = CacheKeys(url) else { return }
        Self.writeLock.withLock { _ in
            for key in keys.all {
                let stored = cache.cachedResponse(for: key)?.response.url?.absoluteString
                if stored.map({ StorageRules.identity(of: $0) }) == keys.url { cache.removeCachedResponse(for: key) }
            }
        }
    }

    /// Removes all responses: Foundation's cache can't list those of an origin.
    func remove(origin: HTTPOrigin) {
        Self.writeLock.withLock { _ in cache.removeAllCachedResponses() }
    }

    func count(_ outcome: TransferMetrics.CacheOutcome, _ reason: CacheReason) {}
}

/// The requests under which the response for a URL is stored.
///
/// On Linux Foundation's cache distinguishes URLs by host, port and path only, and derives a file's name from those, which for some URLs
/// contains slashes or is too long. Such URLs are stored under a URL made of their fingerprint.
private struct CacheKeys {
    private static let longestKey = 150

    let url: String
    let primary: URLRequest
    /// The key under which the program stores responses itself.
    private let foreign: URLRequest?

    var all: [URLRequest] { [primary] + (foreign.map { [$0] } ?? []) }

    init?(_ text: String) {
        url = StorageRules.identity(of: text)
        guard let original = URL(string: url), original.host != nil else { return nil }
        guard url.utf8.count > Self.longestKey || !url.utf8.allSatisfy({ $0 < 0x7F && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "%") })
        else {
            primary = URLRequest(url: original)
            foreign = nil
            return
        }
        guard let distinct = URL(string: "http://responses.invalid/" + Fingerprint.of(url)) else { return nil }
        primary = URLRequest(url: distinct)
        foreign = URLRequest(url: original)
    }
}

/// What is stored with a response in its `userInfo`; as strings, because the cache's archive on disk takes few other types.
private struct Metadata {
    private static let key = "curlew.head"
    /// The selection, partition, times and part, in a head without fields: those are the response's.
    private var head: StoredResponse?
    /// Whether there is a head that this version does not read.
    var isUnreadable = false

    var requestTime: Double? { head?.requestTime }
    var responseTime: Double? { head?.responseTime }
    var selection: SelectionKey? { head?.selection }
    var part: StoredResponse.Part? { head?.part }
    var partition: String { head?.partition ?? "" }

    init(_ head: StoredResponse) {
        self.head = head.with(headers: HTTPHeaders())
    }

    init(_ userInfo: [AnyHashable: Any]?) {
        head = (userInfo?[Self.key] as? String).flatMap { Data(base64Encoded: $0) }.flatMap { StoredResponse(decoding: $0) }
        isUnreadable = head == nil && userInfo?[Self.key] != nil
    }

    var userInfo: [AnyHashable: Any] { head.map { [Self.key: $0.encoded.base64EncodedString()] } ?? [:] }
}

/// A hash of a text in hexadecimal digits, equal in every process. Not cryptographic.
private enum Fingerprint {
    /// 128 bits: FNV-1a from two different offset bases.
    static func of(_ text: String) -> String {
        [0xCBF2_9CE4_8422_2325, 0x84222_325C_BF29_CE4].map { (start: UInt64) in
            text.utf8.reduce(start) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }.hexDigits
        }.joined()
    }
}

extension HTTPHeaders {
    /// The fields of an `HTTPURLResponse`, sorted by name.
    init(_ response: HTTPURLResponse) {
        self.init(Dictionary(response.allHeaderFields.map { ("\($0.base)", "\($1)") }) { first, _ in first })
    }
}
