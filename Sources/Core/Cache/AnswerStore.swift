// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Answers in a cache of Foundation's. Blocks, as the cache may be on disk.
struct AnswerStore: Sendable {
    /// An answer with its body.
    struct Entry: Sendable {
        var answer: StoredAnswer
        let data: Data
    }

    /// A body may have this part of the cache, the rule by which Foundation stores.
    private static let largestPart = 20
    /// On Linux storing an answer twice leaves a trace that makes the cache trap when it makes room later. So an old answer is removed
    /// before, and nobody gets between: caches are shared among sessions.
    private static let writing = Lock(())

    let cache: URLCache

    /// The largest body that is stored, in bytes.
    var largestBody: Int { max(cache.memoryCapacity, cache.diskCapacity) / Self.largestPart }

    // MARK: Reading

    /// What is stored for a request's URL, if that was for a request like this one (RFC 9111, section 4.1).
    func entry(for request: TransferRequest) -> Entry? {
        guard let cached = cached(request.url), let response = cached.response as? HTTPURLResponse else { return nil }
        let headers = HTTPHeaders(response)
        guard let varying = Varying(headers, request: request.headers) else { return nil }
        let notes = Notes(cached.userInfo)
        // An entry that a program made itself says nothing of what it depends on.
        if let stored = notes.varying, stored != varying.description { return nil }
        let date = headers.value(for: "Date").flatMap { HTTPDate.date(from: $0) } ?? .distantPast
        let answer = StoredAnswer(
            statusCode: response.statusCode, headers: headers, requestTime: notes.requestTime ?? date,
            responseTime: notes.responseTime ?? date)
        return Entry(answer: answer, data: cached.data)
    }

    /// What is stored for a URL.
    func cached(_ url: String) -> CachedURLResponse? {
        guard let keys = Keys(url) else { return nil }
        return keys.all.lazy.compactMap { cache.cachedResponse(for: $0) }.first {
            $0.response.url?.absoluteString.withoutFragment == keys.url
        }
    }

    // MARK: Writing

    /// The entry as Foundation has it; `nil` where it can't be stored.
    func proposal(_ entry: Entry, for request: TransferRequest) -> CachedURLResponse? {
        guard let keys = Keys(request.url), let url = URL(string: keys.url),
            let varying = Varying(entry.answer.headers, request: request.headers),
            let response = HTTPURLResponse(
                url: url, statusCode: entry.answer.statusCode, httpVersion: "HTTP/1.1", headerFields: entry.answer.headers.dictionary)
        else { return nil }
        let notes = Notes(
            requestTime: entry.answer.requestTime, responseTime: entry.answer.responseTime, varying: varying.description)
        return CachedURLResponse(response: response, data: entry.data, userInfo: notes.userInfo, storagePolicy: .allowed)
    }

    /// Stores what became of a proposal.
    func store(_ chosen: CachedURLResponse, proposed: CachedURLResponse, for request: TransferRequest) {
        guard chosen.storagePolicy != .notAllowed, let keys = Keys(request.url) else { return }
        let userInfo = (proposed.userInfo ?? [:]).merging(chosen.userInfo ?? [:]) { $1 }
        let response = CachedURLResponse(
            response: chosen.response, data: chosen.data, userInfo: userInfo, storagePolicy: chosen.storagePolicy)
        Self.writing.withLock { _ in
            cache.removeCachedResponse(for: keys.main)
            cache.storeCachedResponse(response, for: keys.main)
        }
    }

    /// Removes what is stored for a URL.
    func remove(_ url: String) {
        guard let keys = Keys(url) else { return }
        Self.writing.withLock { _ in
            for key in keys.all where cache.cachedResponse(for: key)?.response.url?.absoluteString.withoutFragment == keys.url {
                cache.removeCachedResponse(for: key)
            }
        }
    }
}

/// The requests under which the answer to a URL is stored.
///
/// On Linux Foundation's cache tells URLs apart by host, port and path alone, and makes a file's name of those, with slashes in it or too
/// long for the system for some. Where that goes wrong we use a URL that stands for the true one.
private struct Keys {
    private static let longestPath = 150

    let url: String
    let main: URLRequest
    /// Where a program that stores answers itself has put its own.
    private let foreign: URLRequest?

    var all: [URLRequest] { [main] + (foreign.map { [$0] } ?? []) }

    init?(_ text: String) {
        url = text.withoutFragment
        guard let plain = URL(string: url), plain.host != nil else { return nil }
        guard url.utf8.count > Self.longestPath || !url.utf8.allSatisfy({ $0 < 0x7F && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "%") })
        else {
            main = URLRequest(url: plain)
            foreign = nil
            return
        }
        guard let own = URL(string: "http://answers.invalid/" + Fingerprint.of(url)) else { return nil }
        main = URLRequest(url: own)
        foreign = URLRequest(url: plain)
    }
}

/// The request fields on which a response depends, with their values in that request. A fingerprint, as they may be secrets.
private struct Varying: CustomStringConvertible {
    let description: String

    /// `nil` where the response depends on what no field tells.
    init?(_ headers: HTTPHeaders, request: HTTPHeaders) {
        let names = StoredAnswer.varyingNames(headers)
        guard !names.contains("*") else { return nil }
        let fields = names.map { "\($0)=\(request.values(for: $0).joined(separator: ","))" }
        description = names.isEmpty ? "" : Fingerprint.of(fields.joined(separator: "\n"))
    }
}

/// What we note beside an answer, in strings: the cache's archive on disk does not take much else.
private struct Notes {
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

/// A number for a text that stays the same from run to run, in hexadecimal digits. Not for security.
private enum Fingerprint {
    /// FNV-1a, twice from different starts: 128 bits.
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
    /// The fields of a response of Foundation's, by name.
    init(_ response: HTTPURLResponse) {
        self.init(Dictionary(response.allHeaderFields.map { ("\($0.base)", "\($1)") }) { first, _ in first })
    }
}
