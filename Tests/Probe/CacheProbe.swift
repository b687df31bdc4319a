// SPDX-License-Identifier: Apache-2.0
import CurlewCaching
import CurlewHTTP

/// Uses a cache in a directory shared with other processes.
struct CacheProbe {
    let storage: DiskCacheStorage

    init(directory: String, capacity: Int64) {
        storage = DiskCacheStorage(directory: URL(fileURLWithPath: directory, isDirectory: true), capacity: capacity)
    }

    /// Makes an entry that identifies its number and writer, of a size derived from the number.
    static func entry(_ number: Int, _ writer: String) -> CacheEntry {
        CacheEntry(metadata: Data("\(number) \(writer)".utf8), body: Data(repeating: UInt8(number % 251), count: 100 + 37 * number % 3000))
    }

    /// Whether an entry is intact and was written for the number, by any process.
    static func isIntact(_ entry: CacheEntry, _ number: Int) -> Bool {
        guard let writer = String(decoding: entry.metadata, as: UTF8.self).split(separator: " ").last else { return false }
        return entry == Self.entry(number, String(writer))
    }

    /// Writes, reads and removes entries; returns the number of entries that were found but not intact.
    func churn(rounds: Int, name: String) throws -> Int {
        var wrong = 0
        for round in 0..<rounds {
            let number = round * 7 % 40
            let key = CacheKey("number", "\(number)")
            if round % 23 == 22 {
                try storage.removeEntry(for: key)
            } else if round % 3 == 0 {
                if let entry = try storage.entry(for: key), !Self.isIntact(entry, number) { wrong += 1 }
            } else if round % 3 == 1 {
                try storage.store(Self.entry(number, name), for: key)
            } else {
                try storeInPieces(Self.entry(number, name), for: key)
            }
        }
        return wrong
    }

    private func storeInPieces(_ entry: CacheEntry, for key: CacheKey) throws {
        let writer = try storage.makeWriter(for: key, metadata: entry.metadata)
        for start in stride(from: 0, to: entry.body.count, by: 500) {
            try entry.body[start..<min(start + 500, entry.body.count)].withUnsafeBytes { try writer.append($0) }
        }
        try writer.commit()
    }

    /// Stores entries, whole and in pieces, until it fails or is killed.
    func fill(name: String) throws {
        for number in 0... {
            let key = CacheKey("number", "\(number % 200)")
            let entry = Self.entry(number % 40, name)
            if number % 2 == 0 { try storage.store(entry, for: key) } else { try storeInPieces(entry, for: key) }
        }
    }
}
