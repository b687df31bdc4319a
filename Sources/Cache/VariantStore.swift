// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The responses for one URL.
package struct VariantRecord: Sendable, Hashable {
    /// A response, and where its body is.
    package struct Variant: Sendable, Hashable {
        /// The head.
        package var head: StoredResponse
        /// The number of the body, which is another one whenever a body is stored, so that a head never meets the body of another; 0 if the
        /// body is in the record's own entry.
        package let body: UInt64
    }

    private static let version: UInt8 = 2
    /// The most variants; the one that was received first makes room for another.
    package static let capacity = 16

    /// The responses, the most recently stored one last.
    package var variants: [Variant] = []

    /// Creates an empty record.
    package init() {}

    /// The record as bytes: version, number of variants, and for each the number of its body and the encoded head.
    package var encoded: Data {
        var writer = ByteWriter()
        writer.put(Self.version)
        writer.put(UInt8(variants.count))
        for variant in variants {
            writer.put(variant.body)
            variant.head.encode(to: &writer)
        }
        return Data(writer.bytes)
    }

    /// Decodes what ``encoded`` has made; untrusted bytes give a record or `nil`.
    package init?(decoding data: Data) {
        var reader = ByteReader([UInt8](data))
        guard reader.byte() == Self.version, let count = reader.byte(), (1...Self.capacity).contains(Int(count)) else { return nil }
        for _ in 0..<count {
            guard let body = reader.word(), let head = StoredResponse.decode(from: &reader) else { return nil }
            variants.append(Variant(head: head, body: body))
        }
        guard reader.isAtEnd else { return nil }
    }
}

/// Responses in a ``CacheStorage``.
///
/// For each URL there is an entry whose metadata is a ``VariantRecord``. A single small body is in that entry, so that a hit reads one entry;
/// others have entries of their own under numbers that are never used again. Processes that store variants of one URL at the same time may
/// lose one of them, which is a miss later.
package final class VariantStore: Sendable {
    /// Bodies up to this size are stored with the record, 64 KiB: larger ones would be written again by each update of the head.
    package static let largestInline = 64 << 10
    /// The number of decoded records that are kept.
    private static let memoCapacity = 512

    /// What is stored for a URL.
    package struct Found: Sendable {
        /// The responses.
        package let record: VariantRecord
        /// The body in the record's entry.
        fileprivate let inline: Data
    }

    let storage: any CacheStorage
    /// The storage if it grants leases.
    let leasing: (any LeasingCacheStorage)?
    /// The storage if it finds entries by tags.
    private let tagging: (any TaggingCacheStorage)?
    /// The name of the field with tags; `nil` without tags.
    private let tagHeader: String?
    /// Makes reading and changing a record atomic in this process.
    let writing = Lock(())
    /// Decoded records by their URL, with the bytes that they were decoded from: decoding costs more than a look-up in memory.
    private let memo = Lock([String: (bytes: Data, record: VariantRecord)]())

    init(_ storage: any CacheStorage, tagHeader: String? = nil) {
        self.storage = storage
        self.tagHeader = tagHeader
        let shared = (storage as? TieredCacheStorage)?.back ?? storage
        leasing = shared as? any LeasingCacheStorage
        tagging = shared as? any TaggingCacheStorage
    }

    /// The tags of a response, in order.
    func tags(of head: StoredResponse) -> [String] {
        guard let tagHeader else { return [] }
        return head.headers.values(for: tagHeader).flatMap { $0.splitScalars { $0 == "," || $0 == " " || $0 == "\t" } }.map(String.init)
    }

    /// The key of a record. The partition is a digest, or empty for plain requests.
    static func key(_ url: String, in partition: String = "") -> CacheKey {
        partition.isEmpty ? CacheKey("http", url) : CacheKey("http", url, "partition", partition)
    }

    /// Keys of one length, so that a body that replaces another one of its size takes no more of the store.
    private static func key(_ url: String, _ body: UInt64) -> CacheKey {
        CacheKey("http", url, body.hexDigits)
    }

    /// What is stored for a URL; `nil` for nothing, or for an entry that can't be read.
    ///
    /// - Parameter partition: only what was stored for requests of this partition is found.
    package func find(_ url: String, in partition: String = "") throws -> Found? {
        guard try partition.isEmpty || partitions(of: url).contains(partition),
            let entry = try storage.entry(for: Self.key(url, in: partition)),
            let record = decoded(entry.metadata, of: url, in: partition)
        else { return nil }
        return Found(record: record, inline: entry.body)
    }

    private func decoded(_ bytes: Data, of url: String, in partition: String) -> VariantRecord? {
        // A URL has no space.
        let name = partition.isEmpty ? url : "\(partition) \(url)"
        if let known = memo.withLock({ $0[name] }), known.bytes == bytes { return known.record }
        // Two URLs have one key only if the store confuses them.
        guard let record = VariantRecord(decoding: bytes),
            record.variants.allSatisfy({ $0.head.url == url && $0.head.partition == partition })
        else { return nil }
        memo.withLock { memo in
            if memo.count >= Self.memoCapacity { memo.removeAll(keepingCapacity: true) }
            memo[name] = (bytes, record)
        }
        return record
    }

    /// The body of a response; `nil` if it is gone, or is not the one that belongs to the head.
    package func body(of index: Int, in found: Found) throws -> Data? {
        let variant = found.record.variants[index]
        guard variant.body != 0 else { return found.inline }
        return try storage.entry(for: Self.key(variant.head.url, variant.body))?.body
    }

    /// The body of a response in pieces; `nil` if it is not stored in pieces, or gone.
    package func open(_ index: Int, in found: Found) throws -> (any CacheBodyReader)? {
        let variant = found.record.variants[index]
        guard variant.body != 0, let streaming = storage as? any StreamingCacheStorage else { return nil }
        return try streaming.openBody(for: Self.key(variant.head.url, variant.body))
    }

    /// A body that is written in pieces, under a number of its own.
    package struct Writing: Sendable {
        /// Writes the body.
        package let writer: any CacheEntryWriter
        fileprivate let number: UInt64
    }

    /// Begins to write the body of a response for a URL; `nil` if the storage takes none in pieces.
    package func makeWriter(_ url: String) throws -> Writing? {
        guard let streaming = storage as? any StreamingCacheStorage else { return nil }
        let number = UInt64.random(in: 1...UInt64.max)
        return Writing(writer: try streaming.makeWriter(for: Self.key(url, number), metadata: Data()), number: number)
    }

    /// Stores a response whose body was written in pieces.
    package func store(_ head: StoredResponse, _ body: Writing, under lease: CacheLease? = nil) throws {
        try body.writer.commit()
        try add(head, stored: body.number, under: lease)
        try noteEquivalence(of: head)
    }

    /// Stores a response in place of those that the same requests select.
    ///
    /// - Parameter lease: the lease of the URL under which it was loaded.
    package func store(_ head: StoredResponse, _ body: Data, under lease: CacheLease? = nil) throws {
        let isInline = body.count <= Self.largestInline
        // A body before the record that names it.
        let number = isInline ? 0 : UInt64.random(in: 1...UInt64.max)
        if !isInline { try storage.store(CacheEntry(body: body), for: Self.key(head.url, number)) }
        if isInline {
            try add(head, number: 0, inline: body, under: lease)
        } else {
            try add(head, stored: number, under: lease)
        }
        try noteEquivalence(of: head)
    }

    /// Adds a response whose body is stored under a number; if that fails, the body is removed.
    private func add(_ head: StoredResponse, stored number: UInt64, under lease: CacheLease?) throws {
        do {
            try add(head, number: number, inline: nil, under: lease)
        } catch {
            try storage.removeEntry(for: Self.key(head.url, number))
            throw error
        }
    }

    /// Adds a response to its URL's record.
    ///
    /// - Parameter inline: a body that may be in the record's entry; `nil` if it is stored under the number.
    private func add(_ head: StoredResponse, number: UInt64, inline body: Data?, under lease: CacheLease?) throws {
        let dropped = try writing.withLock { _ -> [UInt64] in
            let found = try find(head.url, in: head.partition)
            var record = found?.record ?? VariantRecord()
            var dropped = record.variants.filter { $0.head.selection == head.selection }.map(\.body)
            record.variants.removeAll { $0.head.selection == head.selection }
            if record.variants.count == VariantRecord.capacity { dropped.append(record.variants.removeFirst().body) }
            var inline = body ?? Data()
            var number = number
            if let found, record.variants.contains(where: { $0.body == 0 }) {
                // The entry of the record has room for one body, and keeps the one that it has.
                inline = found.inline
                if let body {
                    number = UInt64.random(in: 1...UInt64.max)
                    try storage.store(CacheEntry(body: body), for: Self.key(head.url, number))
                }
            }
            record.variants.append(.init(head: head, body: number))
            try write(record, inline, head.url, head.partition, under: lease)
            // After the record: one of before the URL was removed must not be found again.
            if found == nil, !head.partition.isEmpty { try list(head.partition, of: head.url) }
            return dropped
        }
        for body in dropped where body != 0 { try storage.removeEntry(for: Self.key(head.url, body)) }
    }

    /// Replaces the head of a response, unless another one has taken its place.
    package func update(_ old: StoredResponse, with new: StoredResponse) throws {
        let isUpdated = try writing.withLock { _ in
            guard let found = try find(old.url, in: old.partition), let index = found.record.variants.firstIndex(where: { $0.head == old })
            else {
                return false
            }
            var record = found.record
            record.variants[index].head = new
            try write(record, found.inline, old.url, old.partition)
            return true
        }
        if isUpdated, new.noVarySearch != old.noVarySearch { try noteEquivalence(of: new) }
    }

    private func write(_ record: VariantRecord, _ inline: Data, _ url: String, _ partition: String, under lease: CacheLease? = nil) throws {
        let tags = tagging == nil || tagHeader == nil ? [] : Set(record.variants.flatMap { self.tags(of: $0.head) }).sorted()
        let entry = CacheEntry(metadata: record.encoded, body: inline, tags: tags)
        guard let lease, let leasing else { return try storage.store(entry, for: Self.key(url, in: partition)) }
        guard let tiered = storage as? TieredCacheStorage else { return try leasing.store(entry, under: lease) }
        try tiered.write(entry, lease.key) { try leasing.store(entry, under: lease) }
    }

    /// Removes what is stored for a URL, and for equivalent ones (``findEquivalents(of:)``).
    package func remove(_ url: String) throws {
        try removeOwn(url)
        try removeEquivalents(of: url)
    }

    /// Removes some of the responses for a URL in a partition.
    func removeVariants(of url: String, in partition: String, where isRemoved: (StoredResponse) -> Bool) throws {
        let removed = try writing.withLock { _ -> [VariantRecord.Variant] in
            guard let found = try find(url, in: partition) else { return [] }
            var record = found.record
            let removed = record.variants.filter { isRemoved($0.head) }
            guard !removed.isEmpty else { return [] }
            record.variants.removeAll { isRemoved($0.head) }
            if record.variants.isEmpty {
                try storage.removeEntry(for: Self.key(url, in: partition))
            } else {
                try write(record, record.variants.contains { $0.body == 0 } ? found.inline : Data(), url, partition)
            }
            return removed
        }
        for variant in removed where variant.body != 0 { try storage.removeEntry(for: Self.key(url, variant.body)) }
    }

    /// Removes what is stored for a URL alone, in all partitions.
    package func removeOwn(_ url: String) throws {
        try writing.withLock { _ in
            let partitions = try partitions(of: url)
            // Before the records: what is not listed is not found.
            if !partitions.isEmpty || hasCopies { try storage.removeEntry(for: Self.partitionsKey(url)) }
            try removeRecord(of: url, in: "")
            for partition in partitions { try removeRecord(of: url, in: partition) }
        }
    }

    /// Removes the record of a partition; with the lock held.
    private func removeRecord(of url: String, in partition: String) throws {
        let bytes = try storage.metadata(for: Self.key(url, in: partition))
        guard bytes != nil || hasCopies else { return }
        try storage.removeEntry(for: Self.key(url, in: partition))
        guard let bytes else { return }
        for variant in VariantRecord(decoding: bytes)?.variants ?? [] where variant.body != 0 {
            try storage.removeEntry(for: Self.key(url, variant.body))
        }
    }

    // MARK: Partitions

    /// The most partitions of a URL; the one that was added first makes room for another.
    package static let partitionCapacity = 256

    private static func partitionsKey(_ url: String) -> CacheKey { CacheKey("http", url, "partitions") }

    /// The partitions in which something is stored for a URL, beside that of plain requests, the oldest first. Records of others are not
    /// found: so a URL is removed with all of its partitions, although a store has no other list of them.
    func partitions(of url: String) throws -> [String] {
        guard let metadata = try storage.metadata(for: Self.partitionsKey(url)) else { return [] }
        return String(decoding: metadata, as: UTF8.self).utf8.split(separator: UInt8(ascii: "\n")).map { String(Substring($0)) }
    }

    /// Lists a partition of a URL; with the lock held.
    private func list(_ partition: String, of url: String) throws {
        var partitions = try partitions(of: url)
        guard !partitions.contains(partition) else { return }
        var dropped: [String] = []
        if partitions.count >= Self.partitionCapacity {
            dropped = Array(partitions.prefix(partitions.count - Self.partitionCapacity + 1))
            partitions.removeFirst(dropped.count)
        }
        partitions.append(partition)
        let text = partitions.joined(separator: "\n")
        try storage.store(CacheEntry(metadata: Data(text.utf8), body: Data()), for: Self.partitionsKey(url))
        for old in dropped { try removeRecord(of: url, in: old) }
    }

    /// Whether there are copies in memory, also of entries that the storage behind them has evicted: these are dropped only when their key
    /// is removed.
    private var hasCopies: Bool { storage is TieredCacheStorage }

    /// Removes everything that this store has stored, and nothing else that may be in the storage, apart from copies in memory.
    package func removeAll() throws {
        var keys: [CacheKey] = []
        try storage.forEachEntry { key, _, _ in
            if key.parts?.first == "http" { keys.append(key) }
            return true
        }
        try writing.withLock { _ in
            for key in keys { try storage.removeEntry(for: key) }
        }
        try (storage as? TieredCacheStorage)?.removeCopies()
    }

    /// Calls `visit` with what is stored for each URL.
    package func forEachRecord(_ visit: (VariantRecord) -> Void) throws {
        try storage.forEachEntry { key, metadata, _ in
            if let record = Self.record(key, metadata) { visit(record) }
            return true
        }
    }

    /// Calls `visit` with what copies in the memory of this process are of, also if the storage behind them has evicted it.
    func forEachCopy(_ visit: (VariantRecord) -> Void) {
        (storage as? TieredCacheStorage)?.front.forEachEntry { key, metadata, _ in
            if let record = Self.record(key, metadata) { visit(record) }
            return true
        }
    }

    /// Calls `visit` with what is stored for each URL with a tag, and perhaps for others: for all if the storage does not know tags.
    func forEachRecord(tagged tag: String, _ visit: (VariantRecord) -> Void) throws {
        guard let tagging else { return try forEachRecord(visit) }
        try tagging.forEachEntry(tagged: tag) { key, metadata, _ in
            if let record = Self.record(key, metadata) { visit(record) }
            return true
        }
    }

    /// Removes the copies in memory of what has a tag, which the storage behind it may have evicted.
    func removeCopies(tagged tag: String) throws {
        if let tiered = storage as? TieredCacheStorage { return try tiered.removeCopies(tagged: tag) }
        try tagging?.announceRemoval(ofTag: tag)
    }

    /// The record of an entry; `nil` for an entry that is a body, damaged, or not this store's.
    private static func record(_ key: CacheKey, _ metadata: Data) -> VariantRecord? {
        guard let parts = key.parts, parts.first == "http", parts.count == 2 || parts.count == 4 && parts[2] == "partition" else {
            return nil
        }
        return VariantRecord(decoding: metadata)
    }
}
