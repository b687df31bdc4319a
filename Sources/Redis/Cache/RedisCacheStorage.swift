// SPDX-License-Identifier: Apache-2.0
#if Redis
public import CurlewCache
import CurlewEncoding
import CurlewHTTP

/// A store of responses on a Redis server, which all processes of a fleet share.
///
/// ```swift
/// configuration.cache = .redis(redis)  // with copies in memory
/// ```
///
/// The server bounds it: set its `maxmemory`, with `maxmemory-policy allkeys-lru`, so that it evicts what is used least. With another policy, a
/// full server stores nothing more, and the old entries stay until their lifetimes end. Other data should not be on a server that evicts:
/// tokens least of all.
///
/// If the server is unavailable or late, each member throws ``RedisError`` within ``RedisConfiguration/commandTimeout``: for a
/// `ResponseCache` that is a miss, and requests go to their hosts. Copies in memory (`TieredCacheStorage`) are dropped while changes can't be
/// received. Entries that can't be read, or whose seal does not match, do not exist for it.
///
/// Entries are found by their tags without reading the whole store: for each tag there is a set of those that have it, which is looked into
/// when such an entry is read, so that one whose set was evicted does not exist. All processes should have the same `tagHeader`.
///
/// Thread-safe. Members block until the server has responded.
public final class RedisCacheStorage: LeasingCacheStorage, ObservableCacheStorage, TaggingCacheStorage {
    /// The overhead that each entry is charged, in bytes: about what the server needs for a hash and its key.
    static let overhead: Int64 = 400

    /// Not idempotent: a second run could bring back what was removed after the first.
    private static let storing = RedisScript(
        """
        if ARGV[7] ~= '' then
            local last = redis.call('HGET', KEYS[2], 'number')
            if last and tonumber(last) > tonumber(ARGV[7]) then return 0 end
            local t = redis.call('TIME')
            if not last and t[1] * 1000000 + t[2] - tonumber(ARGV[7]) > tonumber(ARGV[8]) then return 0 end
        end
        redis.call('HSET', KEYS[1], 'k', ARGV[1], 'm', ARGV[2], 'b', ARGV[3])
        if ARGV[9] ~= '' then redis.call('HSET', KEYS[1], 't', ARGV[9]) else redis.call('HDEL', KEYS[1], 't') end
        redis.call('PEXPIRE', KEYS[1], ARGV[4])
        redis.call('PUBLISH', ARGV[5], ARGV[6])
        return 1
        """)

    private static let removing = RedisScript(
        """
        redis.call('UNLINK', KEYS[1])
        redis.call('PUBLISH', ARGV[1], ARGV[2])
        return 1
        """, isIdempotent: true)

    /// The size of the largest entry, in bytes; the server bounds all of them together.
    public let capacity: Int64
    let client: RedisClient
    let channel: CacheChannel
    /// What the keys of the entries begin with.
    private let start: String
    /// What the keys of the tags' sets begin with.
    let tagStart: String
    let lifetime: Duration
    let format: ValueFormat

    /// Creates a store.
    ///
    /// - Parameters:
    ///   - client: the server's client.
    ///   - name: the store's name; processes that give the same one share it.
    ///   - capacity: the size of the largest entry, in bytes, 64 MiB by default; a `ResponseCache` stores bodies up to a tenth of it.
    ///   - lifetime: after which an entry that was not stored again is removed; 7 days by default.
    ///   - sealedWith: the keys that seal entries; `nil`, the default, to store them as they are.
    public init(
        _ client: RedisClient, name: String = "default", capacity: Int64 = 64 << 20, lifetime: Duration = .seconds(7 * 86_400),
        sealedWith: SealingKeys? = nil
    ) {
        self.client = client
        start = "\(client.configuration.prefix):cache1:\(RedisClient.token(name)):{"
        tagStart = "\(client.configuration.prefix):cache1-tag:\(RedisClient.token(name)):{"
        self.capacity = capacity
        self.lifetime = lifetime
        format = ValueFormat(keys: sealedWith)
        channel = CacheChannel(client, name: client.key("cache1-changes", name), format: format)
    }

    /// The key of an entry: the digest is its hash tag, so that an entry and its lease are in one slot.
    func place(of key: CacheKey) -> String { place(ofDigest: key.digest) }

    func place(ofDigest digest: String) -> String { "\(start)\(digest)}" }

    // MARK: CacheStorage

    /// The total size of all entries, in bytes, including an overhead for each. Reads the keys and metadata of the whole store.
    public var size: Int64 {
        get throws {
            var total: Int64 = 0
            try forEachEntry { key, metadata, length in
                total += Self.overhead + Int64(key.bytes.count + metadata.count) + length
                return true
            }
            return total
        }
    }

    /// Returns the entry for a key; for a server with an LRU policy it counts as used.
    public func entry(for key: CacheKey) throws -> CacheEntry? {
        let place = place(of: key)
        let value = try client.block(["HMGET", .text(place), "k", "m", "b", "t"])
        defer { channel.distrustUnlessSubscribed() }
        guard let fields = value.elements, fields.count == 4 else { throw RedisError.unexpectedResponse(command: "HMGET") }
        guard field("k", of: fields[0], at: place) == key.bytes, let metadata = field("m", of: fields[1], at: place),
            let body = field("b", of: fields[2], at: place)
        else { return nil }
        guard fields[3] != .null else { return CacheEntry(metadata: metadata, body: body) }
        guard let tags = tags(of: fields[3], at: place), try areFound(key, by: tags) else { return nil }
        return CacheEntry(metadata: metadata, body: body, tags: tags)
    }

    /// Returns the metadata for a key.
    public func metadata(for key: CacheKey) throws -> Data? {
        let place = place(of: key)
        return field("m", of: try client.block(["HGET", .text(place), "m"]), at: place)
    }

    func field(_ name: String, of value: RedisValue, at place: String) -> Data? {
        value.data.flatMap { try? format.decode($0, of: "\(place):\(name)") }
    }

    /// Stores an entry for a key, and notifies the other processes.
    ///
    /// - Throws: `CacheStorageError.entryTooLarge`; ``RedisError``, with which the old entry is usually kept
    ///   (``RedisError/serverFull(command:message:)`` for one).
    public func store(_ entry: CacheEntry, for key: CacheKey) throws { _ = try store(entry, for: key, number: nil) }

    /// Stores an entry for the key of a lease, unless a later one was granted.
    public func store(_ entry: CacheEntry, under lease: CacheLease) throws {
        guard try store(entry, for: lease.key, number: lease.number) else { throw CacheStorageError.leaseEnded }
    }

    private func store(_ entry: CacheEntry, for key: CacheKey, number: UInt64?) throws -> Bool {
        let size = Self.overhead + Int64(key.bytes.count + entry.metadata.count + entry.body.count)
        guard size <= capacity else {
            try removeEntry(for: key)
            throw CacheStorageError.entryTooLarge(size: size, capacity: capacity)
        }
        let place = place(of: key)
        try note(entry.tags, of: key)
        func encoded(_ value: Data, _ name: String) throws -> RedisArgument { .bytes(try format.encode(value, for: "\(place):\(name)")) }
        let arguments: [RedisArgument] = [
            try encoded(key.bytes, "k"), try encoded(entry.metadata, "m"), try encoded(entry.body, "b"),
            .number(lifetime.atLeastOneMillisecond), .text(channel.name), .bytes(try channel.message(.changed(key))),
            .text(number.map { "\($0)" } ?? ""), .number(Self.leaseMemory),
            entry.tags.isEmpty ? "" : try encoded(try JSONEncoder().encode(entry.tags), "t"),
        ]
        defer { channel.distrustUnlessSubscribed() }
        return try client.block(Self.storing, keys: [place, place + ":lease"], arguments) == .integer(1)
    }

    /// Removes the entry for a key, and notifies the other processes.
    public func removeEntry(for key: CacheKey) throws {
        let message = try channel.message(.changed(key))
        _ = try client.block(Self.removing, keys: [place(of: key)], [.text(channel.name), .bytes(message)])
    }

    /// Removes all entries, and notifies the other processes.
    public func removeAll() throws {
        try scan { places in
            try unlink(places)
            return true
        }
        try announceChanges()
    }

    private func unlink(_ places: [String]) throws {
        guard case .cluster = client.configuration.address else {
            _ = try client.block(["UNLINK"] + places.map { .text($0) })
            return
        }
        // Each for itself, as they are in different slots, and not more at once than the server and others that wait can bear.
        let portion = max(1, min(100, client.configuration.maximumPending / 2))
        for start in stride(from: 0, to: places.count, by: portion) {
            _ = try client.blockAll(places[start..<min(start + portion, places.count)].map { ["UNLINK", .text($0)] })
        }
    }

    /// Calls `visit` with each entry; reads the keys and metadata of the whole store, some hundreds at once.
    public func forEachEntry(_ visit: (_ key: CacheKey, _ metadata: Data, _ bodyLength: Int64) -> Bool) throws {
        try scan { places in
            for entry in try entries(at: places) {
                guard let entry else { continue }
                guard visit(entry.key, entry.metadata, entry.length) else { return false }
            }
            return true
        }
    }

    /// The keys, metadata and lengths of the entries in some places; `nil` where there is none that can be read.
    func entries(at places: [String]) throws -> [(key: CacheKey, metadata: Data, length: Int64)?] {
        let commands = places.flatMap { place -> [[RedisArgument]] in
            [["HMGET", .text(place), "k", "m"], ["HSTRLEN", .text(place), "b"]]
        }
        let values = try client.blockAll(commands)
        return places.enumerated().map { index, place in
            guard let fields = values[2 * index].elements, fields.count == 2, let key = field("k", of: fields[0], at: place),
                let metadata = field("m", of: fields[1], at: place), let length = values[2 * index + 1].integer
            else { return nil }
            return (CacheKey(bytes: key), metadata, Int64(format.length(ofStored: length)))
        }
    }

    private func scan(_ visit: ([String]) throws -> Bool) throws {
        // Exactly the entries: the text before the digest has characters that mean something in patterns.
        let escaped = start.unicodeScalars.map { "*?[]\\".unicodeScalars.contains($0) ? "\\\($0)" : "\($0)" }.joined()
        let pattern = escaped + String(repeating: "?", count: 64) + "}"
        var isWanted = true
        for node in try client.nodes() where isWanted {
            try scan("SCAN", match: ["MATCH", .text(pattern)], at: node) { places in
                isWanted = try visit(places)
                return isWanted
            }
        }
    }

    /// Calls `visit` with what a command of iteration finds, some hundreds at once, until that returns `false`.
    ///
    /// - Throws: ``RedisError/unexpectedResponse(command:)``, also for a cursor that was there before: it would never end.
    func scan(
        _ command: String, of set: [RedisArgument] = [], match: [RedisArgument] = [], at node: RedisConfiguration.Address? = nil,
        _ visit: ([String]) throws -> Bool
    ) throws {
        var (cursor, cursors) = ("0", Set<String>())
        repeat {
            let value = try client.block([.text(command)] + set + [.text(cursor)] + match + ["COUNT", 500], to: node)
            guard let parts = value.elements, parts.count == 2, let next = parts[0].text, let found = parts[1].elements,
                cursors.insert(next).inserted
            else { throw RedisError.unexpectedResponse(command: command) }
            let texts = found.compactMap(\.text)
            guard try texts.isEmpty || visit(texts) else { return }
            cursor = next
        } while cursor != "0"
    }

    // MARK: ObservableCacheStorage

    /// Reports the keys of entries that other processes, or other stores of this one, have stored or removed; on the client's thread.
    public func observeChanges(_ report: @escaping @Sendable (_ key: CacheKey?) -> Void) -> CacheObservation {
        channel.observe(report)
    }

    /// Has the other processes, and other stores of this one, drop all copies.
    public func announceChanges() throws {
        _ = try client.block(["PUBLISH", .text(channel.name), .bytes(try channel.message(.all))])
    }
}

extension ResponseCache {
    /// A cache on a Redis server, shared by the processes of a fleet: with copies in memory, which are dropped when another process changes or
    /// removes the entry, and with one request for all that miss together.
    ///
    /// Needs `import CurlewRedis`.
    ///
    /// - Parameters:
    ///   - storage: the store on the server.
    ///   - memory: the capacity of the copies in memory, in bytes; 16 MiB by default.
    ///   - tagHeader: the name of a response field with tags; none by default.
    ///   - leaseDuration: the longest time for which processes wait for the one that loads a response; 15 seconds by default.
    public static func redis(
        _ storage: RedisCacheStorage, memory: Int64 = 16 << 20, tagHeader: String? = nil, leaseDuration: Duration = .seconds(15)
    ) -> ResponseCache {
        ResponseCache(
            storage: TieredCacheStorage(front: MemoryCacheStorage(capacity: memory), back: storage), tagHeader: tagHeader,
            coalescesMisses: true, leaseDuration: leaseDuration)
    }
}
#endif
