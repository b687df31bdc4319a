// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The responses in a `URLCache`, with the cache keys, secondary keys (`Vary`) and times that Foundation's cache on Linux lacks.
///
/// Blocks, as the cache may be on disk.
struct ResponseStore: Sendable {
    /// A stored response with its body.
    struct Entry: Sendable {
        var response: StoredResponse
        let data: Data
    }

    /// A body may take up to one of this many parts of the cache, which is Foundation's limit.
    private static let capacityDivisor = 20
    /// Makes removing and storing atomic. On Linux, storing a response twice under one key makes `URLCache` trap at a later eviction, so
    /// the old one is removed before; static, because sessions share caches.
    private static let writeLock = Lock(())

    let cache: URLCache

    /// The size of the largest body that is stored, in bytes.
    var largestBody: Int { max(cache.memoryCapacity, cache.diskCapacity) / Self.capacityDivisor }

    // MARK: Reading

    /// The stored response for a request's URL, provided that the fields in its `Vary` match (RFC 9111, section 4.1).
    func entry(for request: TransferRequest) -> Entry? {
        guard let cached = cached(request.url), let response = cached.response as? HTTPURLResponse else { return nil }
        let headers = HTTPHeaders(response)
        guard let varying = VaryKey(headers, request: request.headers) else { return nil }
        let metadata = Metadata(cached.userInfo)
        // An entry that the program has stored itself has no secondary key.
        if let stored = metadata.varying, stored != varying.description { return nil }
        let date = headers.value(for: "Date").flatMap { HTTPDate.date(from: $0) } ?? .distantPast
        let stored = StoredResponse(
            statusCode: response.statusCode, headers: headers, requestTime: metadata.requestTime ?? date,
            responseTime: metadata.responseTime ?? date)
        return Entry(response: stored, data: cached.data)
    }

    /// Foundation's stored response for a URL.
    func cached(_ url: String) -> CachedURLResponse? {
        guard let keys = CacheKeys(url) else { return nil }
        return keys.all.lazy.compactMap { cache.cachedResponse(for: $0) }.first {
            $0.response.url?.absoluteString.withoutFragment == keys.url
        }
    }

    // MARK: Writing

    /// The entry as Foundation's type; `nil` if it can't be stored.
    func proposal(_ entry: Entry, for request: TransferRequest) -> CachedURLResponse? {
        guard let keys = CacheKeys(request.url), let url = URL(string: keys.url),
            let varying = VaryKey(entry.response.headers, request: request.headers),
            let response = HTTPURLResponse(
                url: url, statusCode: entry.response.statusCode, httpVersion: "HTTP/1.1", headerFields: entry.response.headers.dictionary)
        else { return nil }
        let metadata = Metadata(
            requestTime: entry.response.requestTime, responseTime: entry.response.responseTime, varying: varying.description)
        return CachedURLResponse(response: response, data: entry.data, userInfo: metadata.userInfo, storagePolicy: .allowed)
    }

    /// Stores the response that the delegate has chosen for a proposal.
    ///
    /// The proposal's metadata is kept, as a response that the delegate makes has none.
    func store(_ chosen: CachedURLResponse, proposed: CachedURLResponse, for request: TransferRequest) {
        guard chosen.storagePolicy != .notAllowed, let keys = CacheKeys(request.url) else { return }
        let userInfo = (proposed.userInfo ?? [:]).merging(chosen.userInfo ?? [:]) { $1 }
        let response = CachedURLResponse(
            response: chosen.response, data: chosen.data, userInfo: userInfo, storagePolicy: chosen.storagePolicy)
        Self.writeLock.withLock { _ in
            cache.removeCachedResponse(for: keys.primary)
            cache.storeCachedResponse(response, for: keys.primary)
        }
    }

    /// Removes the stored responses for a URL.
    func remove(_ url: String) {
        guard let keys = CacheKeys(url) else { return }
        Self.writeLock.withLock { _ in
            for key in keys.all where cache.cachedResponse(for: key)?.response.url?.absoluteString.withoutFragment == keys.url {
                cache.removeCachedResponse(for: key)
            }
        }
    }
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
        url = text.withoutFragment
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

/// The secondary key: the request fields in a response's `Vary`, with their values. A fingerprint, as the values may be secrets.
private struct VaryKey: CustomStringConvertible {
    let description: String

    /// `nil` for `Vary: *`.
    init?(_ headers: HTTPHeaders, request: HTTPHeaders) {
        let names = StoredResponse.varyNames(headers)
        guard !names.contains("*") else { return nil }
        let fields = names.map { "\($0)=\(request.values(for: $0).joined(separator: ","))" }
        description = names.isEmpty ? "" : Fingerprint.of(fields.joined(separator: "\n"))
    }
}

/// What is stored with a response in its `userInfo`; as strings, because the cache's archive on disk takes few other types.
private struct Metadata {
    var requestTime: Date?
    var responseTime: Date?
    var varying: String?

    init(requestTime: Date, responseTime: Date, varying: String) {
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.varying = varying
    }

    init(_ userInfo: [AnyHashable: Any]?) {
        func date(_ key: String) -> Date? {
            (userInfo?[key] as? String).flatMap { Double($0) }.flatMap { $0.isFinite ? Date(timeIntervalSince1970: $0) : nil }
        }
        requestTime = date("curlew.requested")
        responseTime = date("curlew.received")
        varying = userInfo?["curlew.varying"] as? String
    }

    var userInfo: [AnyHashable: Any] {
        var result: [AnyHashable: Any] = [:]
        result["curlew.requested"] = requestTime.map { "\($0.timeIntervalSince1970)" }
        result["curlew.received"] = responseTime.map { "\($0.timeIntervalSince1970)" }
        result["curlew.varying"] = varying
        return result
    }
}

/// A hash of a text in hexadecimal digits, equal in every process. Not cryptographic.
private enum Fingerprint {
    /// 128 bits: FNV-1a from two different offset bases.
    static func of(_ text: String) -> String {
        [0xCBF2_9CE4_8422_2325, 0x84222_325C_BF29_CE4].map { (start: UInt64) in
            let hash = text.utf8.reduce(start) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
            let digits = String(hash, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }
}

extension String {
    fileprivate var withoutFragment: String { String(prefix { $0 != "#" }) }
}

extension HTTPHeaders {
    /// The fields of an `HTTPURLResponse`, sorted by name.
    init(_ response: HTTPURLResponse) {
        self.init(Dictionary(response.allHeaderFields.map { ("\($0.base)", "\($1)") }) { first, _ in first })
    }
}
