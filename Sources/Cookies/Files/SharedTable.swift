// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Where a ``SharedStore`` keeps its bytes, as a whole, for several processes: a file, or a key on a server.
package protocol SharedPlace: Sendable {
    /// What errors name.
    var path: String { get }
    /// Whether a place that has nothing has lost it, so that what is in memory counts. In a file, nothing means that all was removed.
    var forgets: Bool { get }

    /// The present version; `nil` if nothing is stored.
    func version() throws -> SharedVersion?
    /// Reads what is stored, with its version; `nil` for nothing.
    func read() throws -> (bytes: [UInt8], version: SharedVersion)?
    /// Runs a change; while no other process does, if the place has locks.
    func changing<Value>(_ body: () throws -> Value) throws -> Value
    /// Replaces what is stored. Called inside ``changing(_:)``.
    ///
    /// - Parameter version: what was there when it was read last.
    /// - Returns: the new version; `nil` if another one is there, and nothing was replaced. A place with locks need not compare.
    func replace(_ version: SharedVersion?, with bytes: [UInt8]) throws -> SharedVersion?
}

/// What distinguishes a version of a place's bytes from others.
package enum SharedVersion: Sendable, Equatable {
    /// A file, by its inode, size and modification time.
    case file(inode: UInt64, size: Int64, seconds: Int, nanoseconds: Int)
    /// A number that grows with each replacement.
    case revision(Int)
}

/// Records with keys, which a ``SharedStore`` keeps in memory and in a place.
package protocol SharedTable: Sendable {
    associatedtype ID: Hashable & Sendable
    associatedtype Record: Sendable

    var records: [ID: Record] { get }
    mutating func replace(with records: [ID: Record])

    /// Whether two records are the same, apart from what needs no writing.
    static func isSame(_ first: Record, _ second: Record) -> Bool
}

/// The format of a place of records.
package protocol SharedFormat: Sendable {
    associatedtype Table: SharedTable

    /// Whether a record is written; `wasKept` says whether the file has one with its key.
    func isKept(_ record: Table.Record, wasKept: Bool, now: Date) -> Bool
    /// Reads a file.
    ///
    /// - Throws: ``CookieStoreError/unknownFormat(path:line:)``.
    func read(_ bytes: [UInt8], path: String) throws -> FileContents<Table>
    func bytes(of records: [Table.Record], with unread: [ArraySlice<UInt8>]) -> [UInt8]
}

/// What was read from a file.
package struct FileContents<Table: SharedTable>: Sendable {
    package var records: [Table.ID: Table.Record] = [:]
    /// The lines that are not understood, which stay in the file as they are.
    package var unread: [ArraySlice<UInt8>] = []

    package init() {}
}

package enum ThreeWayMerge {
    /// Merges the records of a file with those in memory, given what both had in common when the file was last read or written.
    ///
    /// What another process has changed counts; else what this process has changed and could not write; else all agree.
    package static func merge<Table: SharedTable>(
        base: [Table.ID: Table.Record], mine: [Table.ID: Table.Record], theirs: [Table.ID: Table.Record], in table: Table.Type
    ) -> [Table.ID: Table.Record] {
        var merged = theirs
        for (id, record) in mine {
            let isSameAsBase = base[id].map { Table.isSame($0, record) } ?? false
            if isSameAsBase {
                // Mine, if theirs is unchanged, for what is not compared.
                if let other = theirs[id], Table.isSame(other, record) { merged[id] = record }
            } else if !hasChanged(id, base, theirs, in: table) {
                merged[id] = record
            }
        }
        // Removed here, and not changed there.
        for id in base.keys where mine[id] == nil && !hasChanged(id, base, theirs, in: table) { merged[id] = nil }
        return merged
    }

    private static func hasChanged<Table: SharedTable>(
        _ id: Table.ID, _ base: [Table.ID: Table.Record], _ theirs: [Table.ID: Table.Record], in table: Table.Type
    ) -> Bool {
        switch (base[id], theirs[id]) {
        case (nil, nil): false
        case (let first?, let second?): !Table.isSame(first, second)
        default: true
        }
    }
}
