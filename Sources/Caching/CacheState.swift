// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// What is known of all entries together: kept in the lock file, read and written under the lock.
///
/// It is written with a change that is about to be made, so that the next holder of the lock can determine whether a process that was
/// killed has made it.
struct CacheState: Equatable {
    /// A change of one file, which the numbers include.
    enum Change: Equatable {
        /// A file with this inode is given the name of an entry: a new one, or in place of another file.
        case placing(EntryName, inode: UInt64, growth: Int64, isNew: Bool)
        /// The file of an entry is removed.
        case removing(EntryName, inode: UInt64)
    }

    /// The total size of all entries' files, in bytes.
    var total: Int64 = 0
    /// The number of entries.
    var count: Int64 = 0
    /// After how many evictions the files are counted again, because the size of one was not what it had been; 0 for never.
    var recountIn: Int64 = 0
    /// The change that was begun last.
    var change: Change?

    private static let magic: UInt64 = 0x324C_4154_4F54_4C43  // "CLTOTAL2"
    private static let wordCount = 11

    init(total: Int64 = 0, count: Int64 = 0) {
        self.total = total
        self.count = count
    }

    /// Adds to size and number, which don't become negative when files were changed by others.
    mutating func add(size: Int64, count: Int64) {
        total = max(total + size, 0)
        self.count = max(self.count + count, 0)
    }

    /// Plans to count the files again: not at once, so that counting takes a constant share of the evictions' time however many files are
    /// damaged.
    mutating func doubt() {
        if recountIn == 0 { recountIn = max(count / 4, 1) }
    }

    // MARK: Bytes

    /// Reads the state; `nil` if there is none, or only a damaged one.
    static func read(_ file: Descriptor) -> CacheState? {
        guard let bytes = try? file.read(8 * (wordCount + 1), at: 0), let words = CheckedWords.words(bytes, count: wordCount),
            words[0] == magic, let total = Int64(exactly: words[1]), let count = Int64(exactly: words[2]),
            let recountIn = Int64(exactly: words[3])
        else { return nil }
        var state = CacheState(total: total, count: count)
        state.recountIn = recountIn
        let name = EntryName(words: words[7..<11])
        switch words[4] {
        case 1, 2: state.change = .placing(name, inode: words[5], growth: Int64(bitPattern: words[6]), isNew: words[4] == 2)
        case 3: state.change = .removing(name, inode: words[5])
        default: break
        }
        return state
    }

    /// Writes the state; `nil` if it is unknown. One that can't be written is unknown to the next.
    static func write(_ state: CacheState?, _ file: Descriptor) {
        guard let state else {
            file.truncate()
            return
        }
        do throws(SystemError) { try file.write(state.bytes, at: 0) } catch { file.truncate() }
    }

    private var bytes: Data {
        var words = [Self.magic, UInt64(total), UInt64(count), UInt64(recountIn)]
        switch change {
        case .placing(let name, let inode, let growth, let isNew):
            words += [isNew ? 2 : 1, inode, UInt64(bitPattern: growth)] + name.words
        case .removing(let name, let inode): words += [3, inode, 0] + name.words
        case nil: words += Array(repeating: 0, count: 7)
        }
        return CheckedWords.bytes(words)
    }
}
