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
        guard let file = Descriptor.open(path, O_RDONLY | O_NONBLOCK) else {
            guard errno == ENOENT || errno == ENOTDIR else { throw FileError.reading(path, errno) }
            return nil
        }
        guard let status = file.status else { throw FileError.reading(path, errno) }
        guard status.isRegularFile else { throw FileError.reading(path, EISDIR) }
        guard status.st_size <= Self.largest else { throw FileError.reading(path, EFBIG) }
        do throws(SystemError) {
            return ([UInt8](try file.read(Int(status.st_size))), SharedVersion(status))
        } catch {
            throw FileError.reading(path, error.code)
        }
    }

    // MARK: Writing

    /// Runs `body` while no other process does.
    ///
    /// - Throws: ``CookieStoreError/locked(path:)`` if another one keeps the lock; `CocoaError` if the file system has no locks, or the lock's
    ///   file can't be created.
    func changing<Value>(_ body: () throws -> Value) throws -> Value {
        let lock = sibling("lock")
        var opened = PrivateFile.open(lock, O_RDWR | O_CREAT)
        if opened == nil, errno == ENOENT {
            try PrivateFile.makeDirectory(URL(fileURLWithPath: path).deletingLastPathComponent().path)
            opened = PrivateFile.open(lock, O_RDWR | O_CREAT)
        }
        guard let file = opened else { throw FileError.writing(lock, errno) }
        let end = ContinuousClock.now + lockTimeout
        while !file.lock() {
            guard errno == EWOULDBLOCK || errno == EINTR else { throw FileError.writing(lock, errno) }
            guard ContinuousClock.now < end else { throw CookieStoreError.locked(path: path) }
            usleep(500)
        }
        defer { try? file.close() }
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
        guard let file = PrivateFile.open(new, O_WRONLY | O_CREAT | O_EXCL) else { throw FileError.writing(new, errno) }
        do throws(SystemError) {
            try file.write(bytes)
            // To the nanosecond: file systems have the time of the last tick, the same for versions in quick succession.
            var now = timespec()
            clock_gettime(CLOCK_REALTIME, &now)
            guard file.setModified(at: now), file.sync(), let status = file.status else { throw SystemError() }
            try file.close()
            guard rename(new, target) == 0 else { throw SystemError() }
            return SharedVersion(status)
        } catch {
            unlink(new)
            throw FileError.writing(target, error.code)
        }
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
