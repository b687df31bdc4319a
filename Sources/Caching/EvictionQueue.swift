// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The order in which `CacheIndex` evicts entries, as a file that is used under the lock of the store.
///
/// A record says that a file was there, and when it had been used last. New entries are appended; the one to evict is taken from the
/// beginning. It gets a second chance at the end if it has been used since, and is dropped if it is gone. So each eviction, use and removal
/// accounts for one record, and no operation depends on the number of entries. A use changes the entry's file only, and needs no lock.
///
///     offset  length
///          0      48  "CLQUEUE1", the number of records that were taken, zeros, a checksum
///      48 i+1     48  the entry's name, the time of use in nanoseconds since 1970, a checksum
///
/// A damaged record is skipped. Entries that have none are found by reading the directory once the others are evicted.
final class EvictionQueue {
    /// An entry.
    struct Record: Equatable {
        let name: EntryName
        let used: Int64

        fileprivate var bytes: Data { CheckedWords.bytes(name.words + [UInt64(bitPattern: used)]) }
    }

    private static let magic: UInt64 = 0x3145_5545_5551_4C43  // "CLQUEUE1"
    private static let slot = 48
    private static let wordCount = 5
    /// The most records that are read or written at once.
    private static let batch = 4096
    /// The number of taken records from which on the file is rewritten without them, if they are most of it.
    private static let compactedFrom = 4096

    private let file: Descriptor
    /// The number of records that were taken.
    private var taken: Int
    private var end: Int

    /// Opens the queue in a file; `nil` if it is none.
    init?(_ file: Descriptor) {
        guard let status = file.regularStatus, let bytes = try? file.read(Self.slot, at: 0),
            let words = CheckedWords.words(bytes, count: Self.wordCount), words[0] == Self.magic, let taken = Int(exactly: words[1])
        else { return nil }
        // A torn record at the end is overwritten.
        let end = Int(status.st_size) / Self.slot - 1
        guard taken <= end else { return nil }
        self.file = file
        self.taken = taken
        self.end = end
    }

    /// The number of records.
    var count: Int { end - taken }
    /// Whether most of the file are records that were taken.
    var isMostlyTaken: Bool { taken >= Self.compactedFrom && taken >= count }

    /// Takes records from the beginning, `nil` for damaged ones; ``save()`` makes it last.
    func take(atMost limit: Int) throws(SystemError) -> [Record?] {
        let records = try read(from: taken, count: min(limit, count))
        taken += records.count
        return records
    }

    /// Gives back the last of the records that were taken.
    func giveBack(_ count: Int) { taken -= count }

    private func read(from index: Int, count: Int) throws(SystemError) -> [Record?] {
        guard count > 0 else { return [] }
        let bytes = try file.read(Self.slot * count, at: Int64(Self.slot) * Int64(index + 1))
        return stride(from: 0, to: bytes.count, by: Self.slot).map { offset in
            guard let words = CheckedWords.words(bytes[offset..<min(offset + Self.slot, bytes.count)], count: Self.wordCount) else {
                return nil
            }
            return Record(name: EntryName(words: words[..<4]), used: Int64(bitPattern: words[4]))
        }
    }

    /// Appends records: all or, after an error, none.
    func append(_ records: [Record]) throws(SystemError) {
        guard !records.isEmpty else { return }
        let offset = Int64(Self.slot) * Int64(end + 1)
        do {
            try file.write(records.reduce(into: Data()) { $0 += $1.bytes }, at: offset)
        } catch {
            file.truncate(to: offset)
            throw error
        }
        end += records.count
    }

    /// Writes how many records were taken.
    func save() throws(SystemError) {
        try file.write(Self.header(taken: taken), at: 0)
    }

    private static func header(taken: Int) -> Data { CheckedWords.bytes([magic, UInt64(taken), 0, 0, 0]) }

    // MARK: New files

    /// Writes a queue of records to an empty file.
    static func write(_ records: some Sequence<Record>, to file: Descriptor) throws(SystemError) {
        var bytes = header(taken: 0)
        for record in records {
            bytes += record.bytes
            guard bytes.count >= slot * batch else { continue }
            try file.write(bytes)
            bytes.removeAll(keepingCapacity: true)
        }
        try file.write(bytes)
    }

    /// Writes the records that were not taken to an empty file, without damaged ones.
    ///
    /// - Parameter isWanted: which of them.
    func copy(to file: Descriptor, where isWanted: (Record) -> Bool) throws(SystemError) {
        try file.write(Self.header(taken: 0))
        var index = taken
        while index < end {
            let records = try read(from: index, count: min(Self.batch, end - index))
            guard !records.isEmpty else { return }
            index += records.count
            var bytes = Data(capacity: Self.slot * records.count)
            for case let record? in records where isWanted(record) { bytes += record.bytes }
            try file.write(bytes)
        }
    }
}
