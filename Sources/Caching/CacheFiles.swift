// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP

/// The files of a disk store: their names, the lock shared by the stores of all processes, and the total size kept in the lock file.
struct CacheFiles: Sendable {
    /// The file of an entry.
    struct File {
        let path: String
        let size: Int64
        let used: timespec

        func isOlder(than other: File) -> Bool {
            (used.tv_sec, used.tv_nsec, path) < (other.used.tv_sec, other.used.tv_nsec, other.path)
        }
    }

    /// The contents of the directory.
    struct Contents {
        let files: [File]
        var total: Int64 { files.reduce(0) { $0 + $1.size } }
    }

    /// The total size of all entries, as recorded in the lock file.
    final class SizeRecord {
        /// `nil` if unknown. Written immediately, so that a killed process leaves the value set last.
        var total: Int64? {
            didSet {
                if let file, total != oldValue { CacheFiles.write(total, file) }
            }
        }
        private let file: Descriptor?

        /// - Parameter file: locked; without a file the size is not recorded.
        fileprivate init(_ file: Descriptor?) {
            self.file = file
            total = file.flatMap { CacheFiles.readTotal($0) }
        }
    }

    /// How long to wait for the lock, as the process holding it may be suspended.
    private let lockTimeout: Duration
    private static let temporaryPrefix = ".new-"

    /// How often the directory was read as a whole.
    let scans = Lock(0)

    private let directory: String
    private let entries: String
    /// Whether to wait for the lock; false after a timeout. The `Lock` keeps this store's threads from polling the file lock concurrently.
    private let waitsForLock = Lock(true)

    init(directory: String, lockTimeout: Duration) {
        self.lockTimeout = lockTimeout
        self.directory = directory
        entries = directory + "/v\(EntryHead.version)"
    }

    func path(of key: CacheKey) -> String { entries + "/" + key.digest }

    private static func isEntryName(_ name: String) -> Bool {
        name.utf8.count == 64 && name.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    // MARK: Queries

    /// Returns the size of a file; 0 if it doesn't exist.
    func size(of path: String) -> Int64 {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG ? Int64(status.st_size) : 0
    }

    func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Returns all entries. Removes temporary files whose writers have died. Called inside ``withLock(creating:_:)``.
    func scan() throws -> Contents {
        scans.withLock { $0 += 1 }
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: entries)
        } catch {
            // The directory may be created a moment later; it is empty as of now.
            if (error as? CocoaError)?.code == .fileReadNoSuchFile || access(entries, F_OK) != 0 { return Contents(files: []) }
            throw error
        }
        var files: [File] = []
        for name in names {
            let path = entries + "/" + name
            if name.hasPrefix(Self.temporaryPrefix) {
                // Writers hold a lock on their temporary files.
                if let file = Descriptor(path, O_RDONLY), file.lock() { unlink(path) }
            } else if Self.isEntryName(name) {
                var status = stat()
                guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
                files.append(File(path: path, size: Int64(status.st_size), used: status.modified))
            }
        }
        return Contents(files: files)
    }

    // MARK: Changes

    /// Runs `body` with exclusive access to the directory among all stores, passing the recorded total size, and records its new value.
    ///
    /// If the lock can't be acquired in time, or the file system has no locks, `body` runs without it and the total size is recounted.
    /// Files are always complete, with or without the lock.
    ///
    /// - Parameter creating: whether to create the directory if it doesn't exist.
    func withLock<Value>(creating: Bool, _ body: (SizeRecord) throws -> Value) throws -> Value {
        try waitsForLock.withLock { waitsForLock in
            guard let file = try openLock(creating: creating) else { return try body(SizeRecord(nil)) }
            waitsForLock = lock(file, for: waitsForLock ? lockTimeout : .zero)
            return try body(SizeRecord(waitsForLock ? file : nil))
        }
    }

    private func openLock(creating: Bool) throws -> Descriptor? {
        let path = entries + "/.lock"
        if let file = Descriptor(path, O_RDWR | (creating ? O_CREAT : 0)) { return file }
        switch errno {
        case ENOENT where creating, ENOTDIR where creating:
            try makeDirectory()
            return Descriptor(path, O_RDWR | O_CREAT)
        case ELOOP, EISDIR, ENXIO:
            removeTree(path)
            return Descriptor(path, O_RDWR | O_CREAT)
        default: return nil
        }
    }

    private func lock(_ file: Descriptor, for timeout: Duration) -> Bool {
        let end = ContinuousClock.now + timeout
        while !file.lock() {
            guard errno == EWOULDBLOCK || errno == EINTR, ContinuousClock.now < end else { return false }
            usleep(500)
        }
        return true
    }

    func makeDirectory() throws {
        if !isDirectory(entries) { unlink(entries) }
        try FileManager.default.createDirectory(
            atPath: entries, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        CacheDirectoryTag.put(into: directory)
    }

    /// Creates a temporary file, fills it with `write` and moves it into place with `place`. The temporary file is always removed.
    ///
    /// - Returns: the result of `place`.
    func withTemporaryFile(
        write: (Descriptor, String) throws(SystemError) -> Void, place: (String) throws -> Bool
    ) throws -> Bool {
        let (file, path) = try makeTemporaryFile()
        defer { unlink(path) }
        do {
            try write(file, path)
        } catch {
            throw FileError.writing(path, error.code)
        }
        // Still open, and therefore locked, until it is in place.
        return try withExtendedLifetime(file) { try place(path) }
    }

    /// Creates a temporary file that is locked, so that no store removes it as abandoned.
    func makeTemporaryFile() throws -> (file: Descriptor, path: String) {
        var path = ""
        for _ in 0..<100 {
            path = entries + "/" + Self.temporaryPrefix + UUID().uuidString
            let flags = O_WRONLY | O_CREAT | O_EXCL
            var opened = Descriptor(path, flags)
            if opened == nil, errno == ENOENT || errno == ENOTDIR {
                try makeDirectory()
                opened = Descriptor(path, flags)
            }
            guard let file = opened else { throw FileError.writing(path, errno) }
            // A store scanning between these two lines holds the lock or has removed the file. Some file systems have no locks at all.
            if file.lock() || errno != EWOULDBLOCK, file.status.map({ $0.st_nlink > 0 }) ?? true { return (file, path) }
            unlink(path)
        }
        throw FileError.writing(path, EAGAIN)
    }

    /// Removes the invalid file in an entry's place, unless it has been replaced since.
    ///
    /// - Parameter seen: the status of the invalid file; `nil` if it was not a regular file.
    func removeInvalid(_ path: String, seen: stat?) throws {
        try withLock(creating: false) { record in
            var status = stat()
            guard lstat(path, &status) == 0 else { return }
            if let seen {
                guard status.st_dev == seen.st_dev, status.st_ino == seen.st_ino else { return }
            } else if status.st_mode & S_IFMT == S_IFREG {
                return
            }
            // The file's size may have changed since it was counted.
            record.total = nil
            removeTree(path)
        }
    }

    /// Removes a file, or a directory and its contents. Failures are ignored.
    func removeTree(_ path: String) {
        if unlink(path) != 0 { try? FileManager.default.removeItem(atPath: path) }
    }

    // MARK: Total size

    private static let totalMagic: UInt64 = 0x314C_4154_4F54_4C43  // "CLTOTAL1"

    private static func readTotal(_ file: Descriptor) -> Int64? {
        guard let bytes = try? file.read(24), bytes.count == 24 else { return nil }
        let words = bytes.withUnsafeBytes { bytes in (0..<3).map { bytes.loadUnaligned(fromByteOffset: 8 * $0, as: UInt64.self) } }
        guard words[0] == totalMagic, words[1] == ~words[2] else { return nil }
        return Int64(exactly: words[1])
    }

    private static func write(_ total: Int64?, _ file: Descriptor) {
        file.seek(to: 0)
        guard let total, total >= 0 else { return file.truncate() }
        var bytes = Data()
        for word in [totalMagic, UInt64(total), ~UInt64(total)] { withUnsafeBytes(of: word) { bytes.append(contentsOf: $0) } }
        do {
            try file.write(bytes)
        } catch {
            // A partially written size must not be trusted.
            file.truncate()
        }
    }
}
