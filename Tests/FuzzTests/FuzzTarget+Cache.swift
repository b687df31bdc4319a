// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP
import Foundation

extension FuzzTarget {
    /// The fields of caching, and what a store returns.
    static let cache: [FuzzTarget] = [
        FuzzTarget(name: "cache-control", check: cacheControl), FuzzTarget(name: "cache-fields", check: cacheFields),
        FuzzTarget(name: "stored-response", check: storedResponse), FuzzTarget(name: "no-vary-search", check: noVarySearch),
        FuzzTarget(name: "structured-fields", check: structuredFields),
    ]

    private static func cacheControl(_ input: [UInt8]) throws {
        let directives = CacheDirectives(["Cache-Control": text(input)])
        for seconds in [
            directives.maxAge, directives.maxStale, directives.minFresh, directives.staleIfError, directives.staleWhileRevalidate,
        ] {
            try require((0...CacheDirectives.longest).contains(seconds ?? 0), "\(seconds ?? 0) seconds")
        }
        _ = CacheDirectives(["Pragma": text(input)])
        for status in HTTPHeaders(["Cache-Status": text(input)]).cacheStatus {
            try require(HTTPHeaders(["Cache-Status": status.description]).cacheStatus == [status], "not read as written: \(status)")
        }
        if let seconds = CacheDate.seconds(from: text(input)) {
            try require(seconds.isFinite, "no time")
            try require(CacheDate.seconds(from: text(input).uppercased()) == seconds, "another date in upper case")
        }
    }

    /// Each line of the input is the value of a field that decides on freshness and selection.
    private static func cacheFields(_ input: [UInt8]) throws {
        let lines = text(input).split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let names = ["Cache-Control", "Age", "Date", "Expires", "Last-Modified", "ETag", "Vary", "Content-Range"]
        let headers = HTTPHeaders(zip(names, lines).map { HTTPHeader(name: $0, value: $1) })
        let request = CacheRequest(
            method: .get, headers: ["Range": lines.last ?? "", "If-None-Match": lines.first ?? ""], mode: .protocolRules)
        for status in [200, 206] {
            let received = StorageRules.Received(statusCode: status, headers: headers, requestTime: 1e9, responseTime: 1e9 + 1)
            guard let stored = StorageRules.head(of: received, url: "http://host.test/", request: request) else { continue }
            try require(!stored.directives.has(.noStore) || stored.directives.has(.mustUnderstand), "no-store was stored")
            try require(stored.age(at: 1e9 + 2) >= 0 && stored.lifetime >= 0, "a negative age or lifetime")
            try require(StoredResponse(decoding: stored.encoded) == stored, "not decoded as encoded")
            if case .serve(_, _, let reason, let isStale, _) = CacheRules.decide(request, [stored], now: 1e9 + 2) {
                try require(isStale == (stored.remaining(at: 1e9 + 2) <= 0), "stale or not: \(reason.rawValue)")
            }
        }
    }

    private static func storedResponse(_ input: [UInt8]) throws {
        if let response = StoredResponse(decoding: Data(input)) {
            try require(StoredResponse(decoding: response.encoded) == response, "not decoded as encoded")
            _ = response.age(at: 1e9)
        }
        if let record = VariantRecord(decoding: Data(input)) {
            try require(VariantRecord(decoding: record.encoded) == record, "not decoded as encoded")
        }
        if let hints = SearchHints(decoding: Data(input)) {
            try require(SearchHints(decoding: hints.encoded) == hints, "not decoded as encoded")
        }
        _ = CacheKey(bytes: Data(input)).parts
    }

    private static func structuredFields(_ input: [UInt8]) throws {
        let field = text(input)
        if let item = try? StructuredFields.item(from: field) {
            try require(try StructuredFields.item(from: StructuredFields.text(of: item)) == item, "not read as written: \(item)")
        }
        if let list = try? StructuredFields.list(from: field) {
            try require(try StructuredFields.list(from: StructuredFields.text(of: list)) == list, "not read as written: \(list)")
        }
        guard let dictionary = try? StructuredFields.dictionary(from: field) else { return }
        let written = try StructuredFields.text(of: dictionary)
        try require(try StructuredFields.dictionary(from: written) == dictionary, "not read as written: \(dictionary)")
    }

    /// The first line is the field, the others are queries.
    private static func noVarySearch(_ input: [UInt8]) throws {
        let lines = text(input).split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        guard let rule = NoVarySearch(["No-Vary-Search": lines[0]]) else { return }
        let urls = lines.dropFirst().prefix(8).map { "http://host.test/?" + $0 }
        for url in urls {
            let normal = rule.normalized(url)
            try require(normal.hasPrefix("http://host.test/?"), "another path: \(normal)")
            try require(rule.areEquivalent(url, url), "not equivalent to itself: \(url)")
            try require(rule.areEquivalent(url, url + "&"), "an empty parameter distinguishes: \(url)")
            for other in urls where rule.areEquivalent(url, other) {
                try require(rule.areEquivalent(other, url), "not symmetric: \(url), \(other)")
            }
        }
        _ = rule.canonical
    }
}
