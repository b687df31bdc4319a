// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The files of a store on disk: their names, the lock that stores of all processes share, and the size that they share with it.
struct CacheFiles: Sendable {
    /// A file of an entry.
    struct File {
        let path: String
        let size: Int64
        let used: timespec

        func isOlder(than other: File) -> Bool {
            (used.tv_sec, used.tv_nsec, path) < (other.used.tv_sec, other.used.tv_nsec, other.path)
        }
    }

    /// What is in the directory.
    struct Contents {
        let files: [File]
        var total: Int64 { files.reduce(0) { $0 + $1.size } }
    }

    /// The size of all entries, as it stands in the file that is locked.
    final class Accounts {
        /// `nil` if it is not known. Written at once, so that who is killed leaves what was set last.
        var total: Int64? {
            didSet {
                if let file, total != oldValue { CacheFiles.write(total, file) }
            }
        }
        private let file: Descriptor?

        /// - Parameter file: locked; without one the size is not kept.
        fileprivate init(_ file: Descriptor?) {
            self.file = file
            total = file.flatMap { CacheFiles.readTotal($0) }
        }
    }

    /// How long others are waited for: who holds the lock may have been stopped.
    private let patience: Duration
    private static let newPrefix = ".new-"

    private let directory: String
    private let entries: String
    /// Keeps this store's threads from waiting for each other by asking again and again. Says whether others are to be waited for.
    private let isPatient = Lock(true)

    init(directory: String, patience: Duration) {
        self.patience = patience
        self.directory = directory
        entries = directory + "/v\(EntryHead.version)"
    }

    func path(of key: CacheKey) -> String { entries + "/" + key.digest }

    private static func isName(_ name: String) -> Bool {
        name.utf8.count == 64 && name.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    // MARK: Looking

    /// The size of a file; 0 if there is none.
    func size(of path: String) -> Int64 {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG ? Int64(status.st_size) : 0
    }

    func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// All entries there are. Removes the new files of those who have not lived to rename them. With the lock held.
    func scan() throws -> Contents {
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: entries)
        } catch {
            // It may be there a moment later: what counts is that it was not.
            if (error as? CocoaError)?.code == .fileReadNoSuchFile || access(entries, F_OK) != 0 { return Contents(files: []) }
            throw error
        }
        var files: [File] = []
        for name in names {
            let path = entries + "/" + name
            if name.hasPrefix(Self.newPrefix) {
                // Locked as long as somebody writes it.
                if let file = Descriptor(path, O_RDONLY), file.lock() { unlink(path) }
            } else if Self.isName(name) {
                var status = stat()
                guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
                files.append(File(path: path, size: Int64(status.st_size), used: status.modified))
            }
        }
        return Contents(files: files)
    }

    // MARK: Changing

    /// Runs `body` alone among all stores of the directory, with the size as it is known, and keeps what that has become.
    ///
    /// Who can't get the lock in time, or on a file system without locks, goes on without: then the size is counted anew.
    /// Files are whole either way.
    ///
    /// - Parameter making: whether the directory is made if it is not there.
    func withLock<Value>(making: Bool, _ body: (Accounts) throws -> Value) throws -> Value {
        try isPatient.withLock { isPatient in
            guard let file = try openLock(making: making) else { return try body(Accounts(nil)) }
            isPatient = lock(file, for: isPatient ? patience : .zero)
            return try body(Accounts(isPatient ? file : nil))
        }
    }

    private func openLock(making: Bool) throws -> Descriptor? {
        let path = entries + "/.lock"
        if let file = Descriptor(path, O_RDWR | (making ? O_CREAT : 0)) { return file }
        switch errno {
        case ENOENT where making, ENOTDIR where making:
            try makeDirectory()
            return Descriptor(path, O_RDWR | O_CREAT)
        case ELOOP, EISDIR, ENXIO:
            removeTree(path)
            return Descriptor(path, O_RDWR | O_CREAT)
        default: return nil
        }
    }

    private func lock(_ file: Descriptor, for patience: Duration) -> Bool {
        let end = ContinuousClock.now + patience
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

    /// Makes a new file, has it written, and then put in its place; it is gone afterwards, whatever happens.
    ///
    /// - Returns: what `place` says.
    func withNewFile(
        write: (Descriptor, String) throws(SystemError) -> Void, place: (String) throws -> Bool
    ) throws -> Bool {
        let (file, path) = try makeNewFile()
        defer { unlink(path) }
        do {
            try write(file, path)
        } catch {
            throw FileError.writing(path, error.code)
        }
        // Open, and so locked, until it is in its place.
        return try withExtendedLifetime(file) { try place(path) }
    }

    /// A file that nobody takes for one of the dead.
    private func makeNewFile() throws -> (file: Descriptor, path: String) {
        var path = ""
        for _ in 0..<100 {
            path = entries + "/" + Self.newPrefix + UUID().uuidString
            let flags = O_WRONLY | O_CREAT | O_EXCL
            var opened = Descriptor(path, flags)
            if opened == nil, errno == ENOENT || errno == ENOTDIR {
                try makeDirectory()
                opened = Descriptor(path, flags)
            }
            guard let file = opened else { throw FileError.writing(path, errno) }
            // Who has swept between these lines holds the lock, or has removed the file. Other file systems may have no locks at all.
            if file.lock() || errno != EWOULDBLOCK, file.status.map({ $0.st_nlink > 0 }) ?? true { return (file, path) }
            unlink(path)
        }
        throw FileError.writing(path, EAGAIN)
    }

    /// Removes what lies in an entry's place and is none, unless somebody has put another there.
    ///
    /// - Parameter seen: what was found there; `nil` for what is no plain file.
    func removeForeign(_ path: String, seen: stat?) throws {
        try withLock(making: false) { accounts in
            var status = stat()
            guard lstat(path, &status) == 0 else { return }
            if let seen {
                guard status.st_dev == seen.st_dev, status.st_ino == seen.st_ino else { return }
            } else if status.st_mode & S_IFMT == S_IFREG {
                return
            }
            // Its size may have changed since it was counted.
            accounts.total = nil
            removeTree(path)
        }
    }

    /// Removes a file, or a directory with all that is in it. What can't be removed stays.
    func removeTree(_ path: String) {
        if unlink(path) != 0 { try? FileManager.default.removeItem(atPath: path) }
    }

    // MARK: The size

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
            // What can't be written is not to be believed.
            file.truncate()
        }
    }
}
