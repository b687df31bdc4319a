// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The files whose bodies this process has compared with their checksums, as they were then: those that were not changed since need not be
/// read again for that.
///
/// Files of entries are never changed but for their time of use, which the store itself sets; the system sets the time of change with any
/// write by another program.
struct VerifiedFiles: Sendable {
    private struct ID: Hashable {
        let device: UInt64
        let inode: UInt64
    }

    private struct Mark: Equatable {
        let size: Int64
        let modified: Int64
        let changed: Int64
        let hash: UInt64
    }

    /// The most files, which take about 100 bytes each.
    private static let capacity = 4096

    /// How often a body was compared.
    let comparisons = Lock(0)

    private let marks = Lock([ID: Mark]())

    /// Whether a file was verified, and was not changed since.
    ///
    /// - Parameter hash: the checksum that it was compared with.
    func contains(_ status: stat, hash: UInt64) -> Bool {
        marks.withLock { $0[Self.id(status)] } == Self.mark(status, hash)
    }

    func insert(_ status: stat, hash: UInt64) {
        marks.withLock { marks in
            if marks.count >= Self.capacity { marks.removeAll(keepingCapacity: true) }
            marks[Self.id(status)] = Self.mark(status, hash)
        }
    }

    /// Whether two statuses are those of one file that was not changed in between.
    static func isSame(_ a: stat, _ b: stat) -> Bool { id(a) == id(b) && mark(a, 0) == mark(b, 0) }

    private static func id(_ status: stat) -> ID { ID(device: UInt64(status.st_dev), inode: UInt64(status.st_ino)) }

    private static func mark(_ status: stat, _ hash: UInt64) -> Mark {
        Mark(
            size: Int64(status.st_size), modified: status.modificationTime.nanoseconds, changed: status.changeTime.nanoseconds, hash: hash)
    }
}
