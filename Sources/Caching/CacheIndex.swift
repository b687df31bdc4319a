// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// What one use of the lock does to the files: places and removes entries, and keeps their size and order.
///
/// A process may be killed between any two calls of the system. So a record is in the queue before its file has its name, and the state
/// says which file is placed or removed before that is done; the next index undoes the numbers of a file that was not placed, and removes
/// one that was not removed.
final class CacheIndex {
    /// The most entries that get a second chance in one call. Then the least recently used of them are evicted, so that a call takes a
    /// bounded time although everything was used.
    private static let chances = 256
    /// The number of records that are taken from the queue at once.
    private static let batch = 32
    /// Records of entries that were removed are dropped from the queue once it has four times as many records as there are entries, and
    /// this number more.
    static let spareRecords = 16 << 10

    private let files: CacheFiles
    /// `nil` without the lock: then nothing is known but by reading the directory, and nothing of it is kept.
    private let lock: Descriptor?
    /// `nil` if unknown.
    private var state: CacheState?
    private var opened: EvictionQueue?

    /// - Parameters:
    ///   - lock: the lock file, locked.
    ///   - isTrusted: whether the state in it is to be used.
    init(_ files: CacheFiles, lock: Descriptor?, isTrusted: Bool = true) {
        self.files = files
        self.lock = lock
        if isTrusted { state = lock.flatMap { CacheState.read($0) } } else { writeState() }
        completeChange()
    }

    private func completeChange() {
        switch state?.change {
        case .placing(let name, let inode, let growth, let isNew):
            if files.status(of: files.path(of: name)).map({ UInt64($0.st_ino) }) != inode {
                state?.add(size: -growth, count: isNew ? -1 : 0)
            }
        case .removing(let name, let inode):
            let path = files.path(of: name)
            if files.status(of: path).map({ UInt64($0.st_ino) }) == inode { unlink(path) }
        case nil: break
        }
        state?.change = nil
    }

    private func writeState() {
        if let lock { CacheState.write(state, lock) }
    }

    // MARK: Size

    /// The total size of all entries' files, in bytes.
    func total() throws -> Int64 {
        if state == nil || state?.recountIn != 0 {
            _ = try recount()
            writeState()
        }
        return state?.total ?? 0
    }

    /// Reads the directory, and makes a new queue if the one that is there lacks entries.
    private func recount() throws -> [CacheFiles.File] {
        let found = try files.scan()
        state = CacheState(total: found.reduce(0) { $0 + $1.size }, count: Int64(found.count))
        guard lock != nil, queue()?.count ?? 0 < found.count else { return found }
        let ordered = found.sorted { $0.isOlder(than: $1) }
        replaceQueue { file throws(SystemError) in
            try EvictionQueue.write(ordered.lazy.map { .init(name: $0.name, used: $0.used) }, to: file)
        }
        return ordered
    }

    // MARK: Changes

    /// Makes room for a file and gives it the name of an entry; `false` if the file has been removed.
    ///
    /// - Parameter capacity: in bytes.
    func place(_ temporaryPath: String, as name: EntryName, size: Int64, in capacity: Int64) throws -> Bool {
        guard let placed = files.status(of: temporaryPath) else { return false }
        let path = files.path(of: name)
        let old = files.status(of: path)
        let growth = size - Int64(old?.st_size ?? 0)
        try makeRoom(for: growth, in: capacity, keeping: name)
        let before = state
        state?.add(size: growth, count: old == nil ? 1 : 0)
        state?.change = .placing(name, inode: UInt64(placed.st_ino), growth: growth, isNew: old == nil)
        writeState()
        // The file that is replaced has a record.
        if old == nil { enqueue(.init(name: name, used: placed.modificationTime.nanoseconds)) }
        if rename(temporaryPath, path) == 0 { return true }
        let code = errno
        if [EISDIR, ENOTEMPTY, EEXIST].contains(code) {
            files.removeTree(path)
            if rename(temporaryPath, path) == 0 { return true }
        }
        state = before
        writeState()
        if code == ENOENT { return false }
        throw FileError.writing(path, code)
    }

    /// Removes the file of an entry, if there is one, or anything else that has its name.
    func remove(_ name: EntryName) throws {
        let path = files.path(of: name)
        if let status = files.status(of: path) {
            guard removeFile(name, status) || errno == ENOENT else { throw FileError.writing(path, errno) }
        } else if files.isDirectory(path) {
            files.removeTree(path)
        } else if unlink(path) != 0, errno != ENOENT, errno != ENOTDIR {
            throw FileError.writing(path, errno)
        }
    }

    /// Removes the invalid file in an entry's place, unless it has been replaced since.
    ///
    /// - Parameters:
    ///   - seen: the status of the invalid file; `nil` if it was not a regular file.
    ///   - hasSize: whether it has the size with which it was placed.
    func removeInvalid(_ name: EntryName, seen: stat?, hasSize: Bool) {
        let path = files.path(of: name)
        let status = files.status(of: path)
        if let seen {
            guard let status, status.st_dev == seen.st_dev, status.st_ino == seen.st_ino else { return }
            if !hasSize { state?.doubt() }
            _ = removeFile(name, status)
        } else if status == nil {
            state?.doubt()
            writeState()
            files.removeTree(path)
        }
    }

    /// Removes all entries, and what dead writers have left.
    func removeAll() throws {
        state = nil
        writeState()
        files.sweep(always: true)
        for file in try files.scan() {
            let path = files.path(of: file.name)
            if unlink(path) != 0, errno != ENOENT { throw FileError.writing(path, errno) }
        }
        // The next entry makes a new queue.
        removeQueue()
        state = CacheState()
        writeState()
    }

    /// Removes a file; returns `false` with the reason in `errno`.
    private func removeFile(_ name: EntryName, _ status: stat) -> Bool {
        let before = state
        state?.add(size: -Int64(status.st_size), count: -1)
        state?.change = .removing(name, inode: UInt64(status.st_ino))
        if before != nil { writeState() }
        if unlink(files.path(of: name)) == 0 { return true }
        let code = errno
        state = before
        writeState()
        errno = code
        return false
    }

    // MARK: Eviction

    /// Evicts entries until a file that takes so much more fits.
    private func makeRoom(for growth: Int64, in capacity: Int64, keeping name: EntryName) throws {
        var found: [CacheFiles.File]?
        if state == nil || state?.recountIn == 1 { found = try recount() }
        let fits = { [self] in (state?.total ?? 0) + growth <= capacity }
        guard !fits() else { return }
        files.sweep()
        evict(until: fits, keeping: name)
        guard !fits() else { return }
        // Without a queue, or there are entries that it lacks.
        let all = try found ?? recount()
        evict(until: fits, keeping: name)
        guard !fits() else { return }
        // A tenth more, as all of the directory was read for it.
        let aim = max(capacity - capacity / 10 - growth, 0)
        for file in all.sorted(by: { $0.isOlder(than: $1) }) where (state?.total ?? 0) > aim && file.name != name {
            if let status = files.status(of: files.path(of: file.name)) { _ = removeFile(file.name, status) }
        }
    }

    /// Evicts by the queue.
    private func evict(until fits: () -> Bool, keeping name: EntryName) {
        guard let queue = queue() else { return }
        var spared: [EvictionQueue.Record] = []
        var left = queue.count
        do throws(SystemError) {
            while left > 0, !fits() {
                let records = try queue.take(atMost: min(Self.batch, left))
                guard !records.isEmpty else { break }
                left -= records.count
                var again: [EvictionQueue.Record] = []
                for (index, record) in records.enumerated() {
                    if fits() {
                        queue.giveBack(records.count - index)
                        break
                    }
                    guard let record, let status = files.status(of: files.path(of: record.name)) else { continue }
                    let used = status.modificationTime.nanoseconds
                    if record.name != name, used == record.used, removeFile(record.name, status) {
                        countEviction()
                    } else {
                        again.append(.init(name: record.name, used: used))
                        if record.name != name { spared.append(.init(name: record.name, used: used)) }
                    }
                }
                try queue.append(again)
                try queue.save()
                if spared.count >= Self.chances { evictOldest(of: &spared, until: fits) }
            }
            evictOldest(of: &spared, until: fits)
            if queue.isMostlyTaken { compact(queue) { _ in true } }
        } catch {
            // A new one is made of the directory.
            removeQueue()
        }
    }

    /// Evicts entries that had a second chance; their records are dropped later.
    private func evictOldest(of records: inout [EvictionQueue.Record], until fits: () -> Bool) {
        for record in records.sorted(by: { $0.used < $1.used }) where !fits() {
            guard let status = files.status(of: files.path(of: record.name)), removeFile(record.name, status) else { continue }
            countEviction()
        }
        records.removeAll(keepingCapacity: true)
    }

    private func countEviction() {
        if let recountIn = state?.recountIn, recountIn > 1 { state?.recountIn = recountIn - 1 }
    }

    // MARK: The queue

    private func queue() -> EvictionQueue? {
        if opened == nil, lock != nil { opened = PrivateFile.open(files.queuePath, O_RDWR).flatMap { EvictionQueue($0) } }
        return opened
    }

    private func removeQueue() {
        opened = nil
        if lock != nil { files.removeTree(files.queuePath) }
    }

    /// Appends a record. A queue that can't be written is removed, so that the entry is found by the next one.
    private func enqueue(_ record: EvictionQueue.Record) {
        guard lock != nil else { return }
        if queue() == nil {
            // Entries that have no record are those of a queue that was lost: it is made of the directory when it is needed.
            guard state?.count == 1 else { return }
            return replaceQueue { file throws(SystemError) in try EvictionQueue.write([record], to: file) }
        }
        guard let queue = queue() else { return }
        do throws(SystemError) { try queue.append([record]) } catch { return removeQueue() }
        guard queue.count > 4 * Int(state?.count ?? 0) + Self.spareRecords else { return }
        var names: Set<EntryName> = []
        compact(queue) { other in
            let isThere = other.name == record.name || files.status(of: files.path(of: other.name)) != nil
            return isThere && names.insert(other.name).inserted
        }
    }

    private func compact(_ queue: EvictionQueue, where isWanted: (EvictionQueue.Record) -> Bool) {
        replaceQueue { file throws(SystemError) in try queue.copy(to: file, where: isWanted) }
    }

    /// Puts a new file in the place of the queue; if that fails the old one stays.
    private func replaceQueue(_ write: (Descriptor) throws(SystemError) -> Void) {
        let path = files.queuePath
        _ = try? files.withTemporaryFile { file, _ throws(SystemError) in
            try write(file)
        } place: { temporaryPath in
            if files.isDirectory(path) { files.removeTree(path) }
            return rename(temporaryPath, path) == 0
        }
        opened = nil
    }
}
