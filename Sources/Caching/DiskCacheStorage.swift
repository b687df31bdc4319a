// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP

/// A store in a directory, with one file for each entry.
///
/// Several stores, in one or several processes, can share a directory. An entry is one file of head, key, metadata and body, which is
/// written under a temporary name and renamed, so it is either complete or absent, and readers need no lock. Only the total size and
/// eviction are under a lock between processes. Damage by a system crash, a full disk or another program is detected by checksums; the
/// entry is removed and counts as a miss. The store owns the places of its entries: links are not followed, and other files there are
/// removed.
///
/// The directory is created on the first write, accessible to its owner only, with a `CACHEDIR.TAG`. Entries are in its subdirectory `v2`,
/// so that a later format can have its own. The time of an entry's last use is its file's modification time.
public final class DiskCacheStorage: CacheStorage {
    /// The directory.
    public let directory: URL
    /// The maximum total size of all entries' files, in bytes. It is enforced on writing, so among stores that share a directory the
    /// smallest capacity of those that write applies. The file being written is briefly added on top.
    public let capacity: Int64

    let files: CacheFiles
    let now: @Sendable () -> timespec

    /// Creates a store in a directory that need not exist yet; nothing is read or written.
    ///
    /// - Parameters:
    ///   - directory: the directory of the files.
    ///   - capacity: in bytes; 256 MiB by default. With 0 or less nothing is stored.
    public convenience init(directory: URL, capacity: Int64 = 256 << 20) {
        self.init(directory: directory, capacity: capacity, now: Self.systemTime)
    }

    /// - Parameters:
    ///   - now: the clock for times of use, which decide what is evicted.
    ///   - lockTimeout: how long to wait for other processes.
    init(directory: URL, capacity: Int64, lockTimeout: Duration = .seconds(2), now: @escaping @Sendable () -> timespec = systemTime) {
        self.directory = directory
        self.capacity = capacity
        self.now = now
        files = CacheFiles(directory: directory.path, lockTimeout: lockTimeout)
    }

    private static let systemTime: @Sendable () -> timespec = {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return time
    }

    /// The total size of all entries' files, in bytes.
    public var size: Int64 {
        get throws { try files.withLock(creating: false) { try $0.total ?? files.scan().total } }
    }

    // MARK: Reading

    /// Returns the entry for a key and marks it as used; `nil` if there is none, or only a damaged one.
    ///
    /// - Throws: `CocoaError` if the file can't be read, for lack of permission or of file descriptors for example.
    public func entry(for key: CacheKey) throws -> CacheEntry? {
        try read(key) { file, head, metadata throws(SystemError) in
            let body = try file.read(head.bodyLength)
            guard body.count == head.bodyLength, XXHash64.hash(of: body) == head.bodyHash else { return nil }
            file.setUsed(at: now())
            return CacheEntry(metadata: metadata, body: body)
        }
    }

    /// Returns the metadata for a key without reading or checking the body. Does not mark the entry as used.
    ///
    /// - Throws: `CocoaError` if the file can't be read, for lack of permission or of file descriptors for example.
    public func metadata(for key: CacheKey) throws -> Data? {
        try read(key) { _, _, metadata in metadata }
    }

    /// Reads head, key and metadata, calls `rest` for the remainder, and removes a file that is not a valid entry for the key.
    func read<Value>(
        _ key: CacheKey, _ rest: (Descriptor, EntryHead, Data) throws(SystemError) -> Value?
    ) throws -> Value? {
        let path = files.path(of: key)
        guard let file = Descriptor(path, O_RDONLY) else {
            switch errno {
            case ENOENT, ENOTDIR: return nil
            case ELOOP, ENXIO, EISDIR: break
            default: throw FileError.reading(path, errno)
            }
            try files.removeInvalid(path, seen: nil)
            return nil
        }
        let status = file.status
        do {
            if let status, status.st_size <= capacity, let head = EntryHead(try file.read(EntryHead.size), fileSize: Int64(status.st_size))
            {
                let foundKey = try file.read(head.keyLength)
                let metadata = try file.read(head.metadataLength)
                if foundKey == key.bytes, head.agrees(with: foundKey, metadata), let value = try rest(file, head, metadata) { return value }
            }
        } catch {
            // A directory is not an entry and is removed like any other invalid file.
            guard error.code == EISDIR else { throw FileError.reading(path, error.code) }
        }
        try files.removeInvalid(path, seen: status)
        return nil
    }

    /// Calls `visit` with each entry, in no order, until it returns `false`. Reads keys and metadata, not the bodies; damaged files are left
    /// out.
    ///
    /// - Throws: `CocoaError` if the directory can't be read.
    public func forEachEntry(_ visit: (_ key: CacheKey, _ metadata: Data, _ bodyLength: Int64) -> Bool) throws {
        let found = try files.withLock(creating: false) { _ in try files.scan().files }
        for found in found {
            guard let file = Descriptor(found.path, O_RDONLY), let status = file.status,
                let head = (try? file.read(EntryHead.size)).flatMap({ EntryHead($0, fileSize: Int64(status.st_size)) }),
                let key = try? file.read(head.keyLength), let metadata = try? file.read(head.metadataLength),
                head.agrees(with: key, metadata)
            else { continue }
            guard visit(CacheKey(bytes: key), metadata, Int64(head.bodyLength)) else { return }
        }
    }

    // MARK: Writing

    /// Stores an entry for a key, replacing the previous one atomically: readers see the old entry or the new one.
    ///
    /// - Throws: ``CacheStorageError/entryTooLarge(size:capacity:)``, in which case the key has no entry afterwards; `CocoaError` for file
    ///   system errors such as `fileWriteOutOfSpace`, in which case the old entry is kept.
    public func store(_ entry: CacheEntry, for key: CacheKey) throws {
        guard let head = EntryHead(entry, key), head.fileSize <= capacity else {
            try removeEntry(for: key)
            let size = Int64(EntryHead.size + key.bytes.count) + Int64(entry.metadata.count + entry.body.count)
            throw CacheStorageError.entryTooLarge(size: size, capacity: capacity)
        }
        let path = files.path(of: key)
        // Retried once, in case the temporary file or the directory was removed before the rename.
        for isLastTry in [false, true] {
            let isPlaced = try files.withTemporaryFile { file, temporaryPath throws(SystemError) in
                for part in [head.bytes, key.bytes, entry.metadata, entry.body] { try file.write(part) }
                file.setUsed(at: now())
            } place: { temporaryPath in
                try place(temporaryPath, at: path, size: head.fileSize)
            }
            if isPlaced { return }
            if isLastTry { throw FileError.writing(path, ENOENT) }
        }
    }

    /// Makes room and renames; `false` if the temporary file has been removed.
    func place(_ temporaryPath: String, at path: String, size: Int64) throws -> Bool {
        try files.withLock(creating: true) { record in
            var total = try record.total ?? files.scan().total
            total += size - files.size(of: path)
            if total > capacity { total = try makeRoom(for: size, at: path) }
            // Recorded before the rename: a process killed in between leaves a total that is too large, which the next count corrects.
            record.total = total
            if rename(temporaryPath, path) == 0 { return true }
            let code = errno
            record.total = nil
            switch code {
            case ENOENT: return false
            case EISDIR, ENOTEMPTY, EEXIST:
                files.removeTree(path)
                guard rename(temporaryPath, path) == 0 else { throw FileError.writing(path, errno) }
                return true
            default: throw FileError.writing(path, code)
            }
        }
    }

    /// Evicts the least recently used entries until the new one and a tenth of the capacity fit. Returns the total size, including the new
    /// entry.
    private func makeRoom(for size: Int64, at path: String) throws -> Int64 {
        let found = try files.scan().files.filter { $0.path != path }
        var total = found.reduce(size) { $0 + $1.size }
        guard total > capacity else { return total }
        let aim = max(size, capacity - capacity / 10)
        for file in found.sorted(by: { $0.isOlder(than: $1) }) {
            if total <= aim { break }
            if unlink(file.path) == 0 || errno == ENOENT { total -= file.size }
        }
        return total
    }

    // MARK: Removing

    /// Removes the entry for a key, if there is one.
    public func removeEntry(for key: CacheKey) throws {
        let path = files.path(of: key)
        try files.withLock(creating: false) { record in
            let size = files.size(of: path)
            guard unlink(path) != 0 else {
                record.total = record.total.map { max($0 - size, 0) }
                return
            }
            switch errno {
            case ENOENT, ENOTDIR: return
            case EISDIR,
                EPERM where files.isDirectory(path):
                files.removeTree(path)
            default: throw FileError.writing(path, errno)
            }
        }
    }

    /// Removes all entries. Other files in the directory are kept.
    public func removeAll() throws {
        try files.withLock(creating: false) { record in
            record.total = nil
            for file in try files.scan().files where unlink(file.path) != 0 && errno != ENOENT {
                throw FileError.writing(file.path, errno)
            }
            record.total = 0
        }
    }
}
