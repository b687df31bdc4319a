// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A table in memory and, with a place such as a file, in that as well, which other processes may change at the same time.
///
/// A change is made to what the place has then: under its lock, or again if another process was faster. If the place can't be read or written
/// the change counts in memory, and is written with the next one that can be.
final class SharedStore<Format: SharedFormat>: Sendable {
    typealias Table = Format.Table

    private struct Contents {
        var table: Table
        /// What the place had when it was last read or written.
        var base: [Table.ID: Table.Record] = [:]
        var unread: [ArraySlice<UInt8>] = []
        /// `nil` for an empty place, and before it was first read.
        var version: SharedVersion?
        var isRead = false
        /// Counts reads and writes, so that what was read meanwhile is not taken for newer.
        var generation = 0
        var lastError: (any Error)?
    }

    /// How often a change is made again because another process was faster; each time, one of them has succeeded.
    private static var attempts: Int { 100 }

    let place: (any SharedPlace)?
    private let format: Format
    private let now: @Sendable () -> Date
    private let contents: Lock<Contents>
    /// Held during a change, which may wait for the place; ``contents`` never is.
    private let changing = Lock(())

    init(_ table: Table, place: (any SharedPlace)?, format: Format, now: @escaping @Sendable () -> Date) {
        contents = Lock(Contents(table: table))
        self.place = place
        self.format = format
        self.now = now
    }

    /// Why the place could not be read or written the last time; `nil` if it could.
    var lastError: (any Error)? { contents.withLock { $0.lastError } }

    /// Reads the table in memory. Blocks for no place.
    func peek<Value>(_ body: (Table) -> Value) -> Value { contents.withLock { body($0.table) } }

    /// Changes what is in memory only, such as when records were used.
    func touch(_ body: (inout Table) -> Void) { contents.withLock { body(&$0.table) } }

    // MARK: Reading the place

    /// Reads the place if it has changed since. Waits for no other process.
    ///
    /// - Returns: whether memory has what was in the place; `false` if another thread has read or written it meanwhile.
    @discardableResult
    func refresh() throws -> Bool {
        guard let place else { return true }
        let (version, isRead, generation) = contents.withLock { ($0.version, $0.isRead, $0.generation) }
        do {
            if isRead, try place.version() == version { return true }
            let read = try place.read()
            let found = try parsed(read)
            return contents.withLock { contents in
                guard contents.generation == generation else { return false }
                if read == nil, place.forgets { contents.base = [:] }
                take(found, read?.version, &contents)
                return true
            }
        } catch {
            contents.withLock { $0.lastError = error }
            throw error
        }
    }

    private func parsed(_ read: (bytes: [UInt8], version: SharedVersion)?) throws -> FileContents<Table> {
        guard let read, let place else { return FileContents() }
        return try format.read(read.bytes, path: place.path)
    }

    private func take(_ found: FileContents<Table>, _ version: SharedVersion?, _ contents: inout Contents) {
        let merged = ThreeWayMerge.merge(base: contents.base, mine: contents.table.records, theirs: found.records, in: Table.self)
        contents.table.replace(with: merged)
        contents.base = found.records
        contents.unread = found.unread
        contents.version = version
        contents.isRead = true
        contents.generation += 1
        contents.lastError = nil
    }

    // MARK: Changing

    /// Changes the table, and writes the place if what it keeps has changed.
    ///
    /// - Throws: if the place can't be read or written; the change counts in memory nevertheless.
    @discardableResult
    func change<Value>(_ body: (inout Table) -> Value) throws -> Value {
        guard let place else { return contents.withLock { body(&$0.table) } }
        return try changing.withLock { _ in
            var result: Value?
            do {
                return try place.changing {
                    // Other threads, which hold no lock of the place, may have read an older version meanwhile.
                    while try !refresh() {}
                    let value = contents.withLock { body(&$0.table) }
                    result = value
                    try write(to: place)
                    return value
                }
            } catch {
                contents.withLock { contents in
                    if result == nil { _ = body(&contents.table) }
                    contents.lastError = error
                }
                throw error
            }
        }
    }

    /// Writes the place unless it has what it is to have; what another process has written meanwhile is merged first.
    private func write(to place: any SharedPlace) throws {
        for _ in 0..<Self.attempts {
            if try writeOnce(to: place) { return }
            while try !refresh() {}
        }
        throw CookieStoreError.locked(path: place.path)
    }

    /// Returns `false` if the place has another version than was read.
    private func writeOnce(to place: any SharedPlace) throws -> Bool {
        let date = now()
        let (records, base, unread, known) = contents.withLock { ($0.table.records, $0.base, $0.unread, $0.version) }
        let kept = records.filter { format.isKept($0.value, wasKept: base[$0.key] != nil, now: date) }
        let isSame = kept.count == base.count && kept.allSatisfy { id, record in base[id].map { Table.isSame($0, record) } ?? false }
        guard !isSame else {
            contents.withLock { $0.lastError = nil }
            return true
        }
        guard let version = try place.replace(known, with: format.bytes(of: Array(kept.values), with: unread)) else { return false }
        contents.withLock { contents in
            contents.base = kept
            contents.version = version
            contents.generation += 1
            contents.lastError = nil
        }
        return true
    }
}
