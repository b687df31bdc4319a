// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP

/// The files of a disk store: their names, and the lock shared by the stores of all processes.
///
///     v2/.lock     the lock, and the ``CacheState``
///     v2/.queue    the ``EvictionQueue``
///     v2/.new/     temporary files of writers
///     v2/DIGEST    the entries
struct CacheFiles: Sendable {
    /// The file of an entry.
    struct File {
        let name: EntryName
        let size: Int64
        let used: Int64

        func isOlder(than other: File) -> Bool { (used, name) < (other.used, other.name) }
    }

    /// What this store knows about the lock.
    private struct LockState {
        /// Whether to wait for the lock; false after a timeout.
        var waits = true
        /// Whether this store has changed files without the lock since it had it last, so that the state is not to be trusted.
        var isDoubtful = false
    }

    /// Temporary files that were seen locked when abandoned ones were removed last, and evictions since.
    private struct Sweeping {
        var living = 0
        var evictions = 0
    }

    /// How long to wait for the lock, as the process holding it may be suspended.
    private let lockTimeout: Duration
    /// What temporary files were called when they were beside the entries.
    private static let oldTemporaryPrefix = ".new-"

    /// How often the directory was read as a whole.
    let scans = Lock(0)

    private let directory: String
    private let entries: String
    /// The same, as what precedes the name of an entry.
    private let entriesPrefix: String
    /// The `Lock` keeps this store's threads from polling the file lock concurrently.
    private let lockState = Lock(LockState())
    private let sweeping = Lock(Sweeping())

    init(directory: String, lockTimeout: Duration) {
        self.lockTimeout = lockTimeout
        self.directory = directory
        entries = directory + "/v\(EntryHead.version)"
        entriesPrefix = entries + "/"
    }

    func path(of key: CacheKey) -> String { path(of: EntryName(key)) }
    func path(of name: EntryName) -> String { name.digits(after: entriesPrefix) }

    /// The path of the ``EvictionQueue``.
    var queuePath: String { entries + "/.queue" }
    private var temporaryDirectory: String { entries + "/.new" }

    // MARK: Queries

    /// Returns the status of a regular file; `nil` if there is none.
    func status(of path: String) -> stat? {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG ? status : nil
    }

    func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Returns the files of all entries. Reads the whole directory: for what can't be known otherwise.
    func scan() throws -> [File] {
        scans.withLock { $0 += 1 }
        var files: [File] = []
        for name in try names(in: entries) {
            if let entry = EntryName(name) {
                guard let status = status(of: entries + "/" + name) else { continue }
                files.append(File(name: entry, size: Int64(status.st_size), used: status.modificationTime.nanoseconds))
            } else if name.hasBytePrefix(Self.oldTemporaryPrefix) {
                removeAbandoned(entries + "/" + name)
            }
        }
        return files
    }

    private func names(in directory: String) throws -> [String] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: directory)
        } catch {
            // The directory may be created a moment later; it is empty as of now.
            if (error as? CocoaError)?.code == .fileReadNoSuchFile || access(directory, F_OK) != 0 { return [] }
            throw error
        }
    }

    // MARK: Temporary files

    /// Removes the temporary files whose writers have died. Called for each eviction, but reads their directory only after as many as there
    /// were files of living writers, so that those cost each eviction no more than one of them.
    func sweep(always: Bool = false) {
        let isDue = sweeping.withLock { sweeping in
            sweeping.evictions += 1
            return always || sweeping.evictions > sweeping.living
        }
        guard isDue else { return }
        let names = (try? names(in: temporaryDirectory)) ?? []
        let living = names.reduce(0) { $0 + (removeAbandoned(temporaryDirectory + "/" + $1) ? 0 : 1) }
        sweeping.withLock { $0 = Sweeping(living: living) }
    }

    /// Removes a temporary file unless its writer is alive: writers hold a lock on their files.
    @discardableResult
    private func removeAbandoned(_ path: String) -> Bool {
        guard let file = PrivateFile.open(path, O_RDONLY), file.lock() else { return false }
        return withExtendedLifetime(file) { unlink(path) == 0 }
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
            path = temporaryDirectory + "/" + UUID().uuidString
            let flags = O_WRONLY | O_CREAT | O_EXCL
            var opened = PrivateFile.open(path, flags)
            if opened == nil, errno == ENOENT || errno == ENOTDIR {
                try makeDirectory()
                opened = PrivateFile.open(path, flags)
            }
            guard let file = opened else { throw FileError.writing(path, errno) }
            // A store sweeping between these two lines holds the lock or has removed the file. Some file systems have no locks at all.
            if file.lock() || errno != EWOULDBLOCK, file.regularStatus.map({ $0.st_nlink > 0 }) ?? true { return (file, path) }
            unlink(path)
        }
        throw FileError.writing(path, EAGAIN)
    }

    // MARK: The lock

    /// Runs `body` with exclusive access to the directory among all stores.
    ///
    /// If the lock can't be acquired in time, or the file system has no locks, `body` runs without it, and the index counts the files each
    /// time. Files are always complete, with or without the lock.
    ///
    /// - Parameter creating: whether to create the directory if it doesn't exist.
    func withLock<Value>(creating: Bool, _ body: (CacheIndex) throws -> Value) throws -> Value {
        try lockState.withLock { state in
            guard let file = try openLock(creating: creating) else { return try body(CacheIndex(self, lock: nil)) }
            state.waits = lock(file, for: state.waits ? lockTimeout : .zero)
            let index = CacheIndex(self, lock: state.waits ? file : nil, isTrusted: !state.isDoubtful)
            state.isDoubtful = !state.waits
            return try body(index)
        }
    }

    private func openLock(creating: Bool) throws -> Descriptor? {
        let path = entries + "/.lock"
        if let file = PrivateFile.open(path, O_RDWR | (creating ? O_CREAT : 0)) { return file }
        switch errno {
        case ENOENT where creating, ENOTDIR where creating:
            try makeDirectory()
            return PrivateFile.open(path, O_RDWR | O_CREAT)
        case ELOOP, EISDIR, ENXIO:
            removeTree(path)
            return PrivateFile.open(path, O_RDWR | O_CREAT)
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

    private func makeDirectory() throws {
        for path in [entries, temporaryDirectory] {
            if !isDirectory(path) { unlink(path) }
            try PrivateFile.makeDirectory(path)
        }
        CacheDirectoryTag.put(into: directory)
    }

    /// Removes a file, or a directory and its contents. Failures are ignored.
    func removeTree(_ path: String) {
        if unlink(path) != 0 { try? FileManager.default.removeItem(atPath: path) }
    }
}
