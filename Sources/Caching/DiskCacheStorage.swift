// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A store in a directory, a file for each entry.
///
/// Several stores, also of several processes, may use one directory at once. An entry is written to a file of its own and renamed, so
/// that there is a whole one or none; what a crash of the machine, a full disk or another program has spoiled is found by its
/// checksums, removed, and is a miss. What a store finds in a place of its own is its own: links are not followed, other files are removed.
///
/// The directory is made when something is first written, open to its owner alone, with a `CACHEDIR.TAG`. Entries lie in a directory `v1` of
/// it: a later form has a place beside it. When entries were used is their files' time of modification.
public final class DiskCacheStorage: CacheStorage {
    /// The directory.
    public let directory: URL
    /// The largest size of all entries' files together, in bytes. Whoever writes sees to it, so among several stores of a directory the
    /// smallest counts that writes. For a moment the file that is being written comes on top.
    public let capacity: Int64

    let files: CacheFiles
    private let now: @Sendable () -> timespec

    /// Makes a store in a directory that need not exist; nothing is read or written yet.
    ///
    /// - Parameter capacity: in bytes; 256 MiB by default. With 0 or less nothing is kept.
    public convenience init(directory: URL, capacity: Int64 = 256 << 20) {
        self.init(directory: directory, capacity: capacity, now: Self.systemTime)
    }

    /// - Parameters:
    ///   - now: the time of uses, by which it is decided what goes.
    ///   - patience: how long other processes are waited for.
    init(directory: URL, capacity: Int64, patience: Duration = .seconds(2), now: @escaping @Sendable () -> timespec = systemTime) {
        self.directory = directory
        self.capacity = capacity
        self.now = now
        files = CacheFiles(directory: directory.path, patience: patience)
    }

    private static let systemTime: @Sendable () -> timespec = {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return time
    }

    /// The size of all entries' files together, in bytes.
    public var size: Int64 {
        get throws { try files.withLock(making: false) { try $0.total ?? files.scan().total } }
    }

    // MARK: Reading

    /// The entry under a key, which counts as a use of it; `nil` if there is none, or none that is whole.
    ///
    /// - Throws: `CocoaError`, when the file can't be read, as for want of permission or of descriptors.
    public func entry(for key: CacheKey) throws -> CacheEntry? {
        try read(key) { file, head, metadata throws(SystemError) in
            let body = try file.read(head.bodyLength)
            guard body.count == head.bodyLength, CRC64.check(of: body) == head.bodyCheck else { return nil }
            file.setUsed(at: now())
            return CacheEntry(metadata: metadata, body: body)
        }
    }

    /// The metadata under a key, without the body, which is neither read nor checked; no use of the entry.
    ///
    /// - Throws: `CocoaError`, when the file can't be read, as for want of permission or of descriptors.
    public func metadata(for key: CacheKey) throws -> Data? {
        try read(key) { _, _, metadata in metadata }
    }

    /// Reads head, key and metadata, and has the rest read; removes what is no entry of the key.
    private func read<Value>(
        _ key: CacheKey, _ rest: (Descriptor, EntryHead, Data) throws(SystemError) -> Value?
    ) throws -> Value? {
        let path = files.path(of: key)
        guard let file = Descriptor(path, O_RDONLY) else {
            switch errno {
            case ENOENT, ENOTDIR: return nil
            case ELOOP, ENXIO, EISDIR: break
            default: throw FileError.reading(path, errno)
            }
            try files.removeForeign(path, seen: nil)
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
            // A directory is no entry, and goes like all that others have put here.
            guard error.code == EISDIR else { throw FileError.reading(path, error.code) }
        }
        try files.removeForeign(path, seen: status)
        return nil
    }

    // MARK: Writing

    /// Puts an entry under a key, in place of what is there: others see the old one or the new one, never a part.
    ///
    /// - Throws: ``CacheStorageError/entryTooLarge(size:capacity:)``, when nothing stays under the key; `CocoaError` for what the file
    ///   system says, such as `fileWriteOutOfSpace`, when the old entry stays.
    public func store(_ entry: CacheEntry, for key: CacheKey) throws {
        guard let head = EntryHead(entry, key), head.fileSize <= capacity else {
            try removeEntry(for: key)
            let size = Int64(EntryHead.size + key.bytes.count) + Int64(entry.metadata.count + entry.body.count)
            throw CacheStorageError.entryTooLarge(size: size, capacity: capacity)
        }
        let path = files.path(of: key)
        // Once more if the new file was swept away, or the directory, before it was in its place.
        for isLastTry in [false, true] {
            let isPlaced = try files.withNewFile { file, newPath throws(SystemError) in
                for part in [head.bytes, key.bytes, entry.metadata, entry.body] { try file.write(part) }
                file.setUsed(at: now())
            } place: { newPath in
                try place(newPath, at: path, size: head.fileSize)
            }
            if isPlaced { return }
            if isLastTry { throw FileError.writing(path, ENOENT) }
        }
    }

    /// Makes room, and renames; `false` if the new file is gone.
    private func place(_ newPath: String, at path: String, size: Int64) throws -> Bool {
        try files.withLock(making: true) { accounts in
            var total = try accounts.total ?? files.scan().total
            total += size - files.size(of: path)
            if total > capacity { total = try makeRoom(for: size, at: path) }
            // Before the file is there: who is killed in between leaves a size that is too large, which the next count mends.
            accounts.total = total
            if rename(newPath, path) == 0 { return true }
            let code = errno
            accounts.total = nil
            switch code {
            case ENOENT: return false
            case EISDIR, ENOTEMPTY, EEXIST:
                files.removeTree(path)
                guard rename(newPath, path) == 0 else { throw FileError.writing(path, errno) }
                return true
            default: throw FileError.writing(path, code)
            }
        }
    }

    /// Removes entries, those first that were not used for the longest time, until a tenth of the capacity is free behind the new one;
    /// the size with it.
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

    /// Removes what is under a key, if anything is.
    public func removeEntry(for key: CacheKey) throws {
        let path = files.path(of: key)
        try files.withLock(making: false) { accounts in
            let size = files.size(of: path)
            guard unlink(path) != 0 else {
                accounts.total = accounts.total.map { max($0 - size, 0) }
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

    /// Removes all entries. Files of others in the directory stay.
    public func removeAll() throws {
        try files.withLock(making: false) { accounts in
            accounts.total = nil
            for file in try files.scan().files where unlink(file.path) != 0 && errno != ENOENT {
                throw FileError.writing(file.path, errno)
            }
            accounts.total = 0
        }
    }
}
