// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Texts that lead to a response by another URL than its own, the newest first: an entry of the store without a body.
///
/// They are hints: they may be missing or outdated, and what is found by them has to match by its own fields.
package struct SearchHints: Sendable, Hashable {
    private static let version: UInt8 = 1
    /// The most texts; the oldest makes room for another.
    package static let capacity = 4
    /// The longest text, in bytes.
    static let longest = 8 << 10

    /// The texts.
    package private(set) var texts: [String] = []

    /// Creates hints without a text.
    package init() {}

    /// Puts a text first.
    package mutating func add(_ text: String) {
        texts.removeAll { $0 == text }
        texts.insert(text, at: 0)
        if texts.count > Self.capacity { texts.removeLast() }
    }

    /// The texts as bytes: version, number, and each with its length before it.
    package var encoded: Data {
        var writer = ByteWriter()
        writer.put(Self.version)
        writer.put(UInt8(texts.count))
        for text in texts { writer.put(text) }
        return Data(writer.bytes)
    }

    /// Decodes what ``encoded`` has made; untrusted bytes give hints or `nil` (fuzzed: `FuzzTests`, `stored-response`).
    package init?(decoding data: Data) {
        var reader = ByteReader([UInt8](data))
        guard reader.byte() == Self.version, let count = reader.byte(), count <= Self.capacity else { return nil }
        for _ in 0..<count {
            guard let text = reader.text(), text.utf8.count <= Self.longest else { return nil }
            texts.append(text)
        }
        guard reader.isAtEnd else { return nil }
    }
}

// MARK: - Responses by equivalent URLs

/// Responses are found by URLs that differ from their own only in what their `No-Vary-Search` names.
///
/// For each URL without its query there is an entry with the rules of the last responses, and for each rule and URL in its normal form one
/// with the URLs that have it. A look-up reads at most 1 + 4 + 16 entries, however many URLs are stored.
extension VariantStore {
    /// A response for another URL.
    package struct Equivalent: Sendable {
        /// What is stored for that URL.
        package let found: Found
        /// The response's index in it.
        package let index: Int
    }

    /// The responses for other URLs that may answer requests for this one.
    package func findEquivalents(of url: String, in partition: String = "") throws -> [Equivalent] {
        var equivalents: [Equivalent] = []
        for other in try equivalentURLs(of: url) {
            guard let found = try find(other, in: partition) else { continue }
            for (index, variant) in found.record.variants.enumerated()
            where variant.head.noVarySearch?.areEquivalent(url, other) ?? false {
                equivalents.append(Equivalent(found: found, index: index))
            }
        }
        return equivalents
    }

    /// Makes a response that has been stored known to requests for equivalent URLs, and removes those that it replaces: of several that a
    /// request selects the most recent counts (RFC 9111, section 4).
    func noteEquivalence(of head: StoredResponse) throws {
        guard let rule = head.noVarySearch, let field = head.headers.value(for: "No-Vary-Search"),
            max(field.utf8.count, head.url.utf8.count) <= SearchHints.longest
        else { return }
        try addHint(field, to: Self.rulesKey(head.url))
        let older = try addHint(head.url, to: Self.classKey(head.url, rule))
        for other in older where other != head.url {
            try removeVariants(of: other, in: head.partition) { old in
                // A part does not take the place of a whole response.
                old.selection == head.selection && (head.part == nil || old.part != nil) && rule.areEquivalent(old.url, head.url)
            }
        }
    }

    /// Removes the responses for other URLs that might answer requests for this one.
    func removeEquivalents(of url: String) throws {
        for other in try equivalentURLs(of: url) {
            for partition in try [""] + partitions(of: other) {
                try removeVariants(of: other, in: partition) { $0.noVarySearch?.areEquivalent(url, other) ?? false }
            }
        }
    }

    private func equivalentURLs(of url: String) throws -> [String] {
        var urls: [String] = []
        for field in try hints(Self.rulesKey(url)).texts {
            guard let rule = NoVarySearch(field) else { continue }
            for other in try hints(Self.classKey(url, rule)).texts where other != url && !urls.contains(other) { urls.append(other) }
        }
        return urls
    }

    private static func rulesKey(_ url: String) -> CacheKey { CacheKey("http", NoVarySearch.path(of: url), "search-rules") }

    private static func classKey(_ url: String, _ rule: NoVarySearch) -> CacheKey {
        CacheKey("http", rule.normalized(url), "search-class", rule.canonical)
    }

    private func hints(_ key: CacheKey) throws -> SearchHints {
        try storage.entry(for: key).flatMap { SearchHints(decoding: $0.metadata) } ?? SearchHints()
    }

    /// - Returns: the texts that were there before.
    @discardableResult
    private func addHint(_ text: String, to key: CacheKey) throws -> [String] {
        try writing.withLock { _ in
            let old = try hints(key)
            var new = old
            new.add(text)
            if new != old { try storage.store(CacheEntry(metadata: new.encoded, body: Data()), for: key) }
            return old.texts
        }
    }
}
