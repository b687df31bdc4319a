// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A table in memory and, with a file, in that as well, which other processes may change at the same time.
///
/// A change is made under the file's lock, to what the file has then. If the file can't be read or written the change counts in memory, and is
/// written with the next one that can be.
final class SharedStore<Format: SharedFormat>: Sendable {
    typealias Table = Format.Table

    private struct Contents {
        var table: Table
        /// What the file had when it was last read or written.
        var base: [Table.ID: Table.Record] = [:]
        var unread: [ArraySlice<UInt8>] = []
        /// `nil` for no file, and before it was first read.
        var version: SharedFile.Version?
        var isRead = false
        /// Counts reads and writes, so that what was read meanwhile is not taken for newer.
        var generation = 0
        var lastError: (any Error)?
    }

    let file: SharedFile?
    private let format: Format
    private let now: @Sendable () -> Date
    private let contents: Lock<Contents>
    /// Held during a change, which may wait for the disk; ``contents`` never is.
    private let changing = Lock(())

    init(_ table: Table, file: SharedFile?, format: Format, now: @escaping @Sendable () -> Date) {
        contents = Lock(Contents(table: table))
        self.file = file
        self.format = format
        self.now = now
    }

    /// Why the file could not be read or written the last time; `nil` if it could.
    var lastError: (any Error)? { contents.withLock { $0.lastError } }

    /// Reads the table in memory. Blocks for no file.
    func peek<Value>(_ body: (Table) -> Value) -> Value { contents.withLock { body($0.table) } }

    /// Changes what is in memory only, such as when records were used.
    func touch(_ body: (inout Table) -> Void) { contents.withLock { body(&$0.table) } }

    // MARK: Reading the file

    /// Reads the file if it has changed since. Waits for no other process.
    ///
    /// - Returns: whether memory has what was in the file; `false` if another thread has read or written it meanwhile.
    @discardableResult
    func refresh() throws -> Bool {
        guard let file else { return true }
        let (version, isRead, generation) = contents.withLock { ($0.version, $0.isRead, $0.generation) }
        do {
            if isRead, try file.version() == version { return true }
            let read = try file.read()
            let found = try parsed(read)
            return contents.withLock { contents in
                guard contents.generation == generation else { return false }
                take(found, read?.version, &contents)
                return true
            }
        } catch {
            contents.withLock { $0.lastError = error }
            throw error
        }
    }

    private func parsed(_ read: (bytes: [UInt8], version: SharedFile.Version)?) throws -> FileContents<Table> {
        guard let read, let file else { return FileContents() }
        return try format.read(read.bytes, path: file.path)
    }

    private func take(_ found: FileContents<Table>, _ version: SharedFile.Version?, _ contents: inout Contents) {
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

    /// Changes the table, and writes the file if what it keeps has changed.
    ///
    /// - Throws: if the file can't be read or written; the change counts in memory nevertheless.
    @discardableResult
    func change<Value>(_ body: (inout Table) -> Value) throws -> Value {
        guard let file else { return contents.withLock { body(&$0.table) } }
        return try changing.withLock { _ in
            var result: Value?
            do {
                return try file.withLock {
                    // Other threads, which hold no lock of the file, may have read an older version meanwhile.
                    while try !refresh() {}
                    let value = contents.withLock { body(&$0.table) }
                    result = value
                    try write(to: file)
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

    /// Writes the file unless it has what it is to have. Inside its lock.
    private func write(to file: SharedFile) throws {
        let date = now()
        let (records, base, unread) = contents.withLock { ($0.table.records, $0.base, $0.unread) }
        let kept = records.filter { format.isKept($0.value, wasKept: base[$0.key] != nil, now: date) }
        let isSame = kept.count == base.count && kept.allSatisfy { id, record in base[id].map { Table.isSame($0, record) } ?? false }
        guard !isSame else { return contents.withLock { $0.lastError = nil } }
        let version = try file.replace(with: format.bytes(of: Array(kept.values), with: unread))
        contents.withLock { contents in
            contents.base = kept
            contents.version = version
            contents.generation += 1
            contents.lastError = nil
        }
    }
}
