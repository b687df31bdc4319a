// SPDX-License-Identifier: Apache-2.0
#if Redis
public import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// Each tag has a set with the digests of the entries that have it, which lives as long as the last of them. An entry that was removed, or has
// lost the tag, leaves the set when that is read.

extension RedisCacheStorage {
    /// The key of a tag's set. A digest, as a tag may have any characters, and may be what is to be sealed.
    func place(ofTag tag: String) -> String { "\(tagStart)\(SHA256.digest(of: tag.utf8).hexDigits)}" }

    /// Adds an entry, before it is stored, to the sets of its tags.
    func note(_ tags: [String], of key: CacheKey) throws {
        guard !tags.isEmpty else { return }
        let digest = key.digest
        _ = try client.blockAll(
            tags.flatMap { tag -> [[RedisArgument]] in
                let place = place(ofTag: tag)
                return [
                    ["SADD", .text(place), .text(digest)],
                    ["PEXPIRE", .text(place), .number(lifetime.atLeastOneMillisecond)],
                ]
            })
    }

    /// The tags in the field of an entry; `nil` if it can't be read.
    func tags(of value: RedisValue, at place: String) -> [String]? {
        field("t", of: value, at: place).flatMap { try? JSONDecoder().decode([String].self, from: $0) }
    }

    /// Whether an entry is in the sets of all its tags: otherwise removing by tag would miss it.
    func areFound(_ key: CacheKey, by tags: [String]) throws -> Bool {
        let digest = key.digest
        return try client.blockAll(tags.map { ["SISMEMBER", .text(place(ofTag: $0)), .text(digest)] }).allSatisfy { $0 == .integer(1) }
    }

    // MARK: TaggingCacheStorage

    /// Calls `visit` with each entry that has a tag; reads the tag's set, and the keys and metadata of its entries, some hundreds at once.
    public func forEachEntry(
        tagged tag: String, _ visit: (_ key: CacheKey, _ metadata: Data, _ bodyLength: Int64) -> Bool
    ) throws {
        let set = place(ofTag: tag)
        try scan("SSCAN", of: [.text(set)]) { digests in
            let entries = try entries(at: digests.map { place(ofDigest: $0) })
            try forget(zip(digests, entries).filter { $1 == nil }.map(\.0), in: set)
            return entries.allSatisfy { entry in entry.map { visit($0.key, $0.metadata, $0.length) } ?? true }
        }
    }

    /// Has the other processes, and other stores of this one, drop their copies of entries with a tag: the server may have evicted the
    /// entries, and then no key is reported for them.
    public func announceRemoval(ofTag tag: String) throws {
        _ = try client.block(["PUBLISH", .text(channel.name), .bytes(try channel.message(.tagRemoved(tag)))])
    }

    /// Reports the tags that other processes, or other stores of this one, have announced; on the client's thread.
    public func observeRemovedTags(_ report: @escaping @Sendable (_ tag: String) -> Void) -> CacheObservation? {
        channel.observeRemovedTags(report)
    }

    /// Removes from a set what does not exist any more. One that is stored at the same moment may lose its place in the set, which makes it a
    /// miss.
    private func forget(_ digests: [String], in set: String) throws {
        guard !digests.isEmpty else { return }
        _ = try client.blockAll([["SREM", .text(set)] + digests.map { .text($0) }])
    }
}
#endif
