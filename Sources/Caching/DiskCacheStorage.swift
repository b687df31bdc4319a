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
/// so that a later format can have its own. The time of an entry's last use is its file's modification time, to the second.
///
/// Which entries are evicted first is in a file, too: those that were stored first, unless they were used since they were considered last.
/// So the time that a look-up, a store or an eviction takes does not depend on the number of entries. The directory is read as a whole by
/// ``removeAll()`` and ``forEachEntry(_:)``, and by others only if what is known of it was lost or has turned out to be wrong,
/// or if the lock was not to be had: because the file system has none, or a process that has it is suspended.
public final class DiskCacheStorage: CacheStorage {
    /// The directory.
    public let directory: URL
    /// The maximum total size of all entries' files, in bytes. It is enforced on writing, so among stores that share a directory the
    /// smallest capacity of those that write applies. The file being written is briefly added on top.
    public let capacity: Int64

    let files: CacheFiles
    let now: @Sendable () -> timespec
    let verified = VerifiedFiles()

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
        get throws { try files.withLock(creating: false) { try $0.total() } }
    }

    // MARK: Reading

    /// An entry whose file is open, and whose head, key and metadata are valid.
    struct Opened {
        let file: Descriptor
        let path: String
        let status: stat
        let head: EntryHead
        let metadata: Data
        /// The beginning of the file, valid while the closure of ``read(_:_:)`` runs.
        fileprivate let beginning: UnsafeRawBufferPointer

        /// Reads the body; `nil` if the file is shorter.
        fileprivate func body() throws(SystemError) -> Data? {
            let known = beginning.dropFirst(Int(clamping: head.bodyOffset))
            let body = try file.read(head.bodyLength, at: head.bodyOffset, beginningWith: known)
            return body.count == head.bodyLength ? body : nil
        }
    }

    /// How much of a file is read at once: all of most entries.
    private static let firstRead = 16 << 10

    /// Returns the entry for a key and marks it as used; `nil` if there is none, or only a damaged one.
    ///
    /// - Throws: `CocoaError` if the file can't be read, for lack of permission or of file descriptors for example.
    public func entry(for key: CacheKey) throws -> CacheEntry? {
        try read(key) { opened throws(SystemError) in
            guard let body = try opened.body(), try isVerified(opened, hash: { XXHash64.hash(of: body) }) else { return nil }
            return CacheEntry(metadata: opened.metadata, body: body)
        }
    }

    /// Returns the metadata for a key without reading or checking the body. Does not mark the entry as used.
    ///
    /// - Throws: `CocoaError` if the file can't be read, for lack of permission or of file descriptors for example.
    public func metadata(for key: CacheKey) throws -> Data? {
        try read(key) { $0.metadata }
    }

    /// Reads head, key and metadata, calls `rest` for the remainder, and removes a file that is not a valid entry for the key.
    func read<Value>(_ key: CacheKey, _ rest: (Opened) throws(SystemError) -> Value?) throws -> Value? {
        let path = files.path(of: key)
        guard let file = PrivateFile.open(path, O_RDONLY) else {
            switch errno {
            case ENOENT, ENOTDIR: return nil
            case ELOOP, ENXIO, EISDIR: break
            default: throw FileError.reading(path, errno)
            }
            try removeInvalid(key, seen: nil, hasSize: false)
            return nil
        }
        let status = file.regularStatus
        var hasSize = false
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: min(Int(status?.st_size ?? 0), Self.firstRead), alignment: 8)
        defer { buffer.deallocate() }
        do {
            if let status, status.st_size <= capacity, let (head, metadata) = try describe(file, status, buffer, key, &hasSize) {
                let opened = Opened(
                    file: file, path: path, status: status, head: head, metadata: metadata, beginning: UnsafeRawBufferPointer(buffer))
                if let value = try rest(opened) { return value }
            }
        } catch {
            // A directory is not an entry and is removed like any other invalid file.
            guard error.code == EISDIR else { throw FileError.reading(path, error.code) }
        }
        try removeInvalid(key, seen: status, hasSize: hasSize)
        return nil
    }

    /// Fills a buffer with the beginning of a file; returns the head and the metadata if they are valid, and the entry is that of the key.
    ///
    /// - Parameter hasSize: set if the lengths in the head add up to the size of the file.
    private func describe(
        _ file: Descriptor, _ status: stat, _ buffer: UnsafeMutableRawBufferPointer, _ key: CacheKey, _ hasSize: inout Bool
    ) throws(SystemError) -> (EntryHead, Data)? {
        guard try file.read(into: buffer, at: 0) == buffer.count, buffer.count >= EntryHead.size else { return nil }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<EntryHead.size])
        guard let head = EntryHead(bytes, fileSize: Int64(status.st_size)) else { return nil }
        hasSize = true
        let length = head.keyLength + head.metadataLength
        let known = UnsafeRawBufferPointer(buffer).dropFirst(EntryHead.size)
        let metadata: Data?
        if length <= known.count {
            metadata = head.metadata(for: key.bytes, bytes: bytes, rest: UnsafeRawBufferPointer(rebasing: known.prefix(length)))
        } else {
            let rest = try file.read(length, at: Int64(EntryHead.size), beginningWith: known)
            metadata = rest.withUnsafeBytes { head.metadata(for: key.bytes, bytes: bytes, rest: $0) }
        }
        return metadata.map { (head, $0) }
    }

    private func removeInvalid(_ key: CacheKey, seen: stat?, hasSize: Bool) throws {
        try files.withLock(creating: false) { $0.removeInvalid(EntryName(key), seen: seen, hasSize: hasSize) }
    }

    /// Compares the checksum of an entry's body, unless this store has done that and the file was not changed since, and marks the entry as
    /// used.
    ///
    /// - Parameter hash: the checksum of the body as it is.
    func isVerified(_ opened: Opened, hash: () throws(SystemError) -> UInt64) throws(SystemError) -> Bool {
        let expected = opened.head.bodyHash
        let isKnown = verified.contains(opened.status, hash: expected)
        if !isKnown {
            verified.comparisons.withLock { $0 += 1 }
            guard try hash() == expected else { return false }
        }
        let time = now()
        let isUsedNow = (0..<1_000_000_000).contains(time.nanoseconds &- opened.status.modificationTime.nanoseconds)
        if isKnown, isUsedNow { return true }
        // A change by another program before the time of use is set would not be seen after that.
        let isUnchanged = opened.file.status.map { VerifiedFiles.isSame($0, opened.status) } ?? false
        if !isUsedNow { opened.file.setModified(at: time) }
        if isUnchanged, let status = opened.file.status { verified.insert(status, hash: expected) }
        return true
    }

    /// Calls `visit` with each entry, in no order, until it returns `false`. Reads keys and metadata, not the bodies; damaged files are left
    /// out.
    ///
    /// - Throws: `CocoaError` if the directory can't be read.
    public func forEachEntry(_ visit: (_ key: CacheKey, _ metadata: Data, _ bodyLength: Int64) -> Bool) throws {
        for found in try files.scan() {
            guard let file = PrivateFile.open(files.path(of: found.name), O_RDONLY), let status = file.regularStatus,
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
        // Retried once, in case the temporary file or the directory was removed before the rename.
        for isLastTry in [false, true] {
            let isPlaced = try files.withTemporaryFile { file, temporaryPath throws(SystemError) in
                for part in [head.bytes, key.bytes, entry.metadata, entry.body] { try file.write(part) }
                file.setModified(at: now())
            } place: { temporaryPath in
                try place(temporaryPath, for: key, size: head.fileSize)
            }
            if isPlaced { return }
            if isLastTry { throw FileError.writing(files.path(of: key), ENOENT) }
        }
    }

    /// Makes room and renames; `false` if the temporary file has been removed.
    func place(_ temporaryPath: String, for key: CacheKey, size: Int64) throws -> Bool {
        try files.withLock(creating: true) { try $0.place(temporaryPath, as: EntryName(key), size: size, in: capacity) }
    }

    // MARK: Removing

    /// Removes the entry for a key, if there is one.
    public func removeEntry(for key: CacheKey) throws {
        try files.withLock(creating: false) { try $0.remove(EntryName(key)) }
    }

    /// Removes all entries. Other files in the directory are kept.
    public func removeAll() throws {
        try files.withLock(creating: false) { try $0.removeAll() }
    }
}
