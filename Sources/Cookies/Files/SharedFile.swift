// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A file that several processes read and replace as a whole.
///
/// It is replaced by renaming a new one, so that a reader, or a process that is killed at any moment, leaves the old or the new one. Writers
/// lock a file beside it (flock(2)), which stays.
struct SharedFile: SharedPlace {
    /// The largest file that is read, in bytes.
    private static let largest = 64 << 20

    /// The file given by the user.
    let path: String
    var forgets: Bool { false }
    /// How long another process may keep the lock.
    let lockTimeout: Duration

    init(_ url: URL, lockTimeout: Duration = .seconds(5)) {
        path = url.path
        self.lockTimeout = lockTimeout
    }

    /// The path without symbolic links, so that replacing the file keeps a link to it.
    private var target: String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    // MARK: Reading

    /// The present version; `nil` if there is no file.
    func version() throws -> SharedVersion? {
        var status = stat()
        if stat(path, &status) == 0 { return SharedVersion(status) }
        guard errno == ENOENT || errno == ENOTDIR else { throw FileError.reading(path, errno) }
        return nil
    }

    /// Reads the file; `nil` if there is none.
    func read() throws -> (bytes: [UInt8], version: SharedVersion)? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            guard errno == ENOENT || errno == ENOTDIR else { throw FileError.reading(path, errno) }
            return nil
        }
        defer { _ = close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw FileError.reading(path, errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw FileError.reading(path, EISDIR) }
        guard status.st_size <= Self.largest else { throw FileError.reading(path, EFBIG) }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var filled = 0
        while filled < bytes.count {
            let length = bytes.withUnsafeMutableBytes { systemRead(descriptor, $0.baseAddress.map { $0 + filled }, $0.count - filled) }
            if length < 0, errno == EINTR { continue }
            guard length >= 0 else { throw FileError.reading(path, errno) }
            if length == 0 { break }
            filled += length
        }
        bytes.removeLast(bytes.count - filled)
        return (bytes, SharedVersion(status))
    }

    // MARK: Writing

    /// Runs `body` while no other process does.
    ///
    /// - Throws: ``CookieStoreError/locked(path:)`` if another one keeps the lock; `CocoaError` if the file system has no locks, or the lock's
    ///   file can't be created.
    func changing<Value>(_ body: () throws -> Value) throws -> Value {
        let lock = sibling("lock")
        var descriptor = PrivateFile.open(lock, O_RDWR | O_CREAT)
        if descriptor < 0, errno == ENOENT {
            try PrivateFile.makeDirectory(URL(fileURLWithPath: path).deletingLastPathComponent().path)
            descriptor = PrivateFile.open(lock, O_RDWR | O_CREAT)
        }
        guard descriptor >= 0 else { throw FileError.writing(lock, errno) }
        // Closing releases the lock, as does the end of the process.
        defer { _ = close(descriptor) }
        let end = ContinuousClock.now + lockTimeout
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR else { throw FileError.writing(lock, errno) }
            guard ContinuousClock.now < end else { throw CookieStoreError.locked(path: path) }
            usleep(500)
        }
        return try body()
    }

    /// Replaces the file, with access for its owner only. Called inside ``changing(_:)``, whose lock makes it that version's successor.
    func replace(_ version: SharedVersion?, with bytes: [UInt8]) throws -> SharedVersion? {
        let (new, target) = (sibling("new"), target)
        var link = stat()
        // Only the owner of a directory, and the user, may lead the file elsewhere.
        if lstat(path, &link) == 0, PrivateFile.isForeign(link, in: URL(fileURLWithPath: path).deletingLastPathComponent().path) {
            throw FileError.writing(path, EPERM)
        }
        // That of a process that was killed.
        unlink(new)
        let descriptor = PrivateFile.open(new, O_WRONLY | O_CREAT | O_EXCL)
        guard descriptor >= 0 else { throw FileError.writing(new, errno) }
        var status = stat()
        let isWritten = write(bytes, descriptor) && stamp(descriptor) && fsync(descriptor) == 0 && fstat(descriptor, &status) == 0
        var code = errno
        let isClosed = close(descriptor) == 0
        if isWritten, !isClosed { code = errno }
        if isWritten, isClosed, rename(new, target) == 0 { return SharedVersion(status) }
        if isWritten, isClosed { code = errno }
        unlink(new)
        throw FileError.writing(target, code)
    }

    private func write(_ bytes: [UInt8], _ descriptor: Int32) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var written = 0
            while written < bytes.count {
                let length = systemWrite(descriptor, bytes.baseAddress.map { $0 + written }, bytes.count - written)
                if length < 0, errno == EINTR { continue }
                if length == 0 { errno = ENOSPC }
                guard length > 0 else { return false }
                written += length
            }
            return true
        }
    }

    /// Sets the time of modification to the nanosecond: file systems have that of the last tick, the same for versions in quick succession.
    private func stamp(_ descriptor: Int32) -> Bool {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return futimens(descriptor, [now, now]) == 0
    }

    private func sibling(_ kind: String) -> String {
        let url = URL(fileURLWithPath: target)
        return url.deletingLastPathComponent().appendingPathComponent(".\(url.lastPathComponent).\(kind)").path
    }
}

extension SharedVersion {
    fileprivate init(_ status: stat) {
        let modified = status.modificationTime
        self = .file(
            inode: UInt64(status.st_ino), size: Int64(status.st_size), seconds: modified.tv_sec, nanoseconds: modified.tv_nsec)
    }
}

private func systemRead(_ descriptor: Int32, _ buffer: UnsafeMutableRawPointer?, _ count: Int) -> Int { read(descriptor, buffer, count) }

private func systemWrite(_ descriptor: Int32, _ buffer: UnsafeRawPointer?, _ count: Int) -> Int { write(descriptor, buffer, count) }
