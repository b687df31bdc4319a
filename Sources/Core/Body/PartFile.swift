// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Dispatch

/// A file that is being received: written in large pieces, and moved to its destination when it is complete.
///
/// Where the file system supports it (`O_TMPFILE` on Linux), the file has no name until then, so that nothing is left of it however the
/// process ends. Elsewhere it has a hidden name (`.name.XXXXXX.part`). The file of a download that a later process resumes has a name that
/// is found again (`.name.part`), and a lock on it (`flock`) until the rename, so that two downloads never write to the same
/// file.
///
/// Only its owner has access to it (``PrivateFile``) until it is at its destination, where it has the permissions of a new file there.
///
/// Moving is a link or a rename, so that the destination has the complete file or none. Where the destination must not be replaced it is a
/// link, which fails if there is a file; across file systems the file is copied beside the destination, synced, and renamed.
///
/// Used by one thread at a time: the event loop's while the file is written, the session's queue before and after. Only the flush of
/// buffered bytes runs concurrently.
package final class PartFile: @unchecked Sendable {  // what the flush uses is behind a lock, the rest is handed over with the task
    /// The bytes in the buffer, and what became of those before.
    private struct Pending {
        var count = 0
        /// The number of writes so far.
        var writes = 0
        /// Whether a flush is scheduled.
        var isFlushScheduled = false
        /// Whether a write has failed. Nothing is written after that, so that the file stays a prefix of the body.
        var hasFailed = false
        /// The error of a scheduled flush, thrown by the next call.
        var error: (any Error)?
    }

    /// The size of the buffer in which pieces are collected. libcurl delivers 16 KiB at most; written as it comes, a gigabyte takes twice
    /// as long on a file system on a disk.
    private static let pieceSize = 256 * 1024
    /// The interval after which buffered bytes are written, in milliseconds, as a process may be killed while a server pauses. They are
    /// buffered for twice as long at most.
    private static let flushInterval = 100

    /// The file's URL or, while it has no name, the one it would get.
    package private(set) var url: URL
    /// Whether the file exists at ``url``.
    package private(set) var isNamed: Bool
    /// Whether the file can be linked to a name: only one that never had a name can. One that has lost its name is copied.
    private var isLinkable: Bool
    /// The length of the file when it was opened, in bytes: writes append to it.
    package private(set) var offset: Int64
    private(set) var descriptor: Int32
    /// A second descriptor, which holds the lock on a file with a stable name until it was moved; −1 without a lock.
    private var lockDescriptor: Int32 = -1
    private let buffer: UnsafeMutableRawBufferPointer
    /// How ranges of other files are appended; others by tests of file systems that can't.
    var copyWays: CopyWays = [.clone, .kernel]
    /// Whether only its owner may read it at its destination too.
    let isPrivate: Bool
    /// Sets attributes of the complete file before it gets its final name.
    private(set) var mark: ((Int32) -> Void)?
    private let pending = Lock(Pending())

    /// Creates a file in a directory: without a name where that is possible, else with a hidden one made of `name`.
    ///
    /// - Parameters:
    ///   - isPrivate: whether only its owner may read it at its destination too, even if the process's umask allows more.
    ///   - isNamed: whether it has a name even where it needs none.
    /// - Throws: `CocoaError` with the path, if the directory does not exist or is not writable.
    package init(in directory: URL, for name: String = "download", isPrivate: Bool = false, isNamed: Bool = false) throws {
        let stem = Self.stem(of: name)
        let unnamed = isNamed ? nil : openUnnamedFile(in: directory.path, mode: 0o600)
        if let unnamed {
            descriptor = unnamed
            url = Self.randomURL(in: directory, stem)
        } else {
            (descriptor, url) = try Self.openNamed(in: directory, stem)
        }
        self.isPrivate = isPrivate
        self.isNamed = unnamed == nil
        isLinkable = unnamed != nil
        offset = 0
        buffer = .allocate(byteCount: Self.pieceSize, alignment: 4096)
    }

    /// The part of a name that fits: a file name has at most 255 bytes, 16 of which are added to this one.
    static func stem(of name: String) -> String { String(decoding: name.utf8.prefix(200), as: UTF8.self) }

    private static func randomURL(in directory: URL, _ stem: String) -> URL {
        directory.appendingPathComponent(".\(stem).\(PrivateFile.randomName()).part")
    }

    private static func openNamed(in directory: URL, _ stem: String) throws -> (Int32, URL) {
        guard let (descriptor, path) = PrivateFile.create(in: directory.path, named: ".\(stem).", ".part") else {
            throw FileError.writing(directory.path, errno)
        }
        return (descriptor, URL(fileURLWithPath: path))
    }

    /// Opens a file that an earlier download has left, to append to it, and locks it until ``unlock()``; `nil` if it does not exist, is not
    /// a regular file, may have been put there by another user, or is locked by another download.
    ///
    /// - Parameter isMade: whether an empty file is created if there is none.
    package init?(continuing url: URL, isMade: Bool = false) {
        let descriptor = PrivateFile.open(url.path, O_RDWR | (isMade ? O_CREAT : 0))
        guard descriptor >= 0 else { return nil }
        // A download that held the lock may have renamed the file in the meantime: then this lock is on a file that has lost this
        // name.
        let isLocked = flock(descriptor, LOCK_EX | LOCK_NB) == 0 && Self.isPlainFile(descriptor, at: url.path)
        offset = isLocked ? Int64(lseek(descriptor, 0, SEEK_END)) : -1
        guard offset >= 0 else {
            _ = systemClose(descriptor)
            return nil
        }
        lockDescriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        self.url = url
        isNamed = true
        isLinkable = false
        isPrivate = false
        self.descriptor = descriptor
        buffer = .allocate(byteCount: Self.pieceSize, alignment: 4096)
        if lockDescriptor < 0 { return nil }
    }

    private static func isPlainFile(_ descriptor: Int32, at path: String) -> Bool {
        var (ours, named) = (stat(), stat())
        guard fstat(descriptor, &ours) == 0, lstat(path, &named) == 0 else { return false }
        return ours.st_mode & S_IFMT == S_IFREG && ours.st_dev == named.st_dev && ours.st_ino == named.st_ino
            && !PrivateFile.isForeign(ours, in: URL(fileURLWithPath: path).deletingLastPathComponent().path)
    }

    deinit {
        if descriptor >= 0 { _ = systemClose(descriptor) }
        unlock()
        buffer.deallocate()
    }

    /// Releases the lock, if there is one.
    func unlock() {
        if lockDescriptor >= 0 { _ = systemClose(lockDescriptor) }
        lockDescriptor = -1
    }

    /// Sets a closure that gets a descriptor of the complete file before this one is moved.
    package func setMark(_ mark: @escaping (Int32) -> Void) {
        self.mark = mark
    }

    /// The permissions of a new file in a directory: those that the process's umask and the directory give. Found out by creating one,
    /// because reading the umask sets it for a moment, for all threads.
    static func permissions(in directory: URL) -> mode_t? {
        let unnamed = openUnnamedFile(in: directory.path, mode: 0o666)
        let path = directory.path + "/.\(PrivateFile.randomName()).new"
        let descriptor = unnamed ?? open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o666)
        guard descriptor >= 0 else { return nil }
        defer { _ = systemClose(descriptor) }
        if unnamed == nil { unlink(path) }
        var status = stat()
        return fstat(descriptor, &status) == 0 ? status.st_mode & 0o777 : nil
    }

    /// The number of bytes in the file, without the buffered ones.
    package var length: Int64 {
        var status = stat()
        let result = descriptor >= 0 ? fstat(descriptor, &status) : lstat(url.path, &status)
        return result == 0 ? Int64(status.st_size) : 0
    }

    /// Returns up to `count` bytes of the beginning of a closed file; `nil` if it can't be read.
    func beginning(_ count: Int) -> Data? {
        guard descriptor < 0 else { return Self.beginning(count, of: descriptor) }
        return Self.beginning(count, at: url.path)
    }

    /// Returns up to `count` bytes of the beginning of the file at a path; `nil` if it can't be read.
    static func beginning(_ count: Int, at path: String) -> Data? {
        // Does not block on a pipe without a writer.
        let source = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard source >= 0 else { return nil }
        defer { _ = systemClose(source) }
        return beginning(count, of: source)
    }

    private static func beginning(_ count: Int, of descriptor: Int32) -> Data? {
        var bytes = Data(count: count)
        let length = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
        return length >= 0 ? bytes.prefix(length) : nil
    }

    /// Truncates the file to a length, at most its own, and appends there from now on.
    package func truncate(to length: Int64 = 0) throws {
        guard ftruncate(descriptor, off_t(length)) == 0, lseek(descriptor, off_t(length), SEEK_SET) == length else {
            throw FileError.writing(url.path, errno)
        }
    }

    /// Appends bytes, which are written within a fifth of a second, or when the file is closed.
    ///
    /// - Throws: `CocoaError` with the path, also for bytes that were appended earlier. An error is thrown once.
    package func write(_ bytes: UnsafeRawBufferPointer) throws {
        let unscheduled = try pending.withLock { pending -> Int? in
            try throwPendingError(&pending)
            try add(bytes, to: &pending)
            guard pending.count > 0, !pending.isFlushScheduled else { return nil }
            pending.isFlushScheduled = true
            return pending.writes
        }
        if let unscheduled { scheduleFlush(since: unscheduled) }
    }

    private func add(_ bytes: UnsafeRawBufferPointer, to pending: inout Pending) throws {
        if bytes.count > buffer.count - pending.count { try flush(&pending) }
        guard bytes.count < buffer.count else { return try writeUnlessFailed(bytes, &pending) }
        UnsafeMutableRawBufferPointer(rebasing: buffer[pending.count...]).copyMemory(from: bytes)
        pending.count += bytes.count
    }

    /// Calls a closure that appends to the file without the buffer, after what is buffered was written.
    ///
    /// - Parameter body: gets the descriptor; returns the number of bytes, `nil` for none.
    func appendUnbuffered(_ body: (Int32) throws -> Int64?) throws -> Int64? {
        try pending.withLock { pending in
            try throwPendingError(&pending)
            try flush(&pending)
            guard !pending.hasFailed, let count = try body(descriptor) else { return nil }
            pending.writes += 1
            return count
        }
    }

    /// Schedules a flush of the bytes that are buffered now, identified by the number of writes before them.
    private func scheduleFlush(since writes: Int) {
        DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + .milliseconds(Self.flushInterval)) { [weak self] in
            guard let self, let later = self.flushStale(since: writes) else { return }
            self.scheduleFlush(since: later)
        }
    }

    /// Writes the buffered bytes if there was no write since; otherwise returns the number of writes, to schedule another flush.
    private func flushStale(since writes: Int) -> Int? {
        pending.withLock { pending in
            if pending.count > 0, pending.writes != writes { return pending.writes }
            pending.isFlushScheduled = false
            guard descriptor >= 0 else { return nil }
            do { try flush(&pending) } catch { pending.error = error }
            return nil
        }
    }

    private func throwPendingError(_ pending: inout Pending) throws {
        guard let error = pending.error else { return }
        pending.error = nil
        throw error
    }

    /// Writes the buffered bytes and closes the file. A file without a name stays open, because closing would delete it.
    package func close() throws {
        try pending.withLock { pending in
            guard descriptor >= 0 else { return }
            defer { if isNamed { descriptor = -1 } }
            do {
                try throwPendingError(&pending)
                try flush(&pending)
            } catch {
                if isNamed { _ = systemClose(descriptor) }
                throw error
            }
            // Some file systems report failed writes only on close, of any descriptor.
            let closed = isNamed ? descriptor : fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
            guard closed < 0 || systemClose(closed) == 0 else { throw FileError.writing(url.path, errno) }
        }
    }

    /// Closes and removes the file, and releases its lock.
    package func discard() {
        // Before the lock is released: another download could open it.
        if isNamed { unlink(url.path) }
        isNamed = false
        closeDescriptor()
        unlock()
    }

    /// Ends the use of a file that is at its destination.
    func wasPlaced() {
        isNamed = false
        closeDescriptor()
    }

    private func closeDescriptor() {
        pending.withLock { _ in
            if descriptor >= 0 { _ = systemClose(descriptor) }
            descriptor = -1
        }
    }

    /// Makes a closed file without a name ready to be appended to.
    package func resume() {
        pending.withLock { pending in
            offset = Int64(lseek(descriptor, 0, SEEK_END))
            pending.count = 0
            pending.hasFailed = false
            pending.error = nil
        }
    }

    // MARK: Names

    /// Gives a closed file without a name a hidden one, in the directory in which it was created, and closes its descriptor.
    ///
    /// - Throws: `CocoaError` with the path.
    package func giveName() throws {
        guard !isNamed else { return }
        let (directory, name) = (url.deletingLastPathComponent(), url.lastPathComponent)
        let stem = name.dropFirstScalars().dropLastScalars(".XXXXXX.part".count)
        var status = linkUnnamed(to: url.path)
        while status == EEXIST {
            url = Self.randomURL(in: directory, String(stem))
            status = linkUnnamed(to: url.path)
        }
        if status != 0 { try copyToName(in: directory, String(stem)) }
        isNamed = true
        closeDescriptor()
    }

    /// Removes the file's name, so that the file is deleted with its descriptor unless it is named again. It stays open.
    func takeName() {
        guard isNamed else { return }
        let reopened = pending.withLock { _ in
            if descriptor < 0 { descriptor = open(url.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) }
            return descriptor >= 0
        }
        guard reopened else { return }
        unlink(url.path)
        isNamed = false
        isLinkable = false
    }

    /// Links the file without a name to one; returns 0 or the error number. Never replaces a file.
    func linkUnnamed(to path: String) -> Int32 {
        isLinkable ? linkUnnamedFile(descriptor, to: path) : ENOTSUP
    }

    /// Copies the file, which has lost its name and so can't be linked, to a new one.
    private func copyToName(in directory: URL, _ stem: String) throws {
        let (copy, copyURL) = try Self.openNamed(in: directory, stem)
        let old = descriptor
        do {
            guard lseek(old, 0, SEEK_SET) == 0 else { throw FileError.reading(url.path, errno) }
            descriptor = copy
            try append(from: old, path: url.path)
        } catch {
            descriptor = old
            _ = systemClose(copy)
            unlink(copyURL.path)
            throw error
        }
        _ = systemClose(old)
        url = copyURL
    }

    private func flush(_ pending: inout Pending) throws {
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<pending.count])
        pending.count = 0
        try writeUnlessFailed(bytes, &pending)
    }

    private func writeUnlessFailed(_ bytes: UnsafeRawBufferPointer, _ pending: inout Pending) throws {
        guard !bytes.isEmpty, !pending.hasFailed else { return }
        pending.writes += 1
        do {
            try writeAll(bytes)
        } catch {
            pending.hasFailed = true
            throw error
        }
    }

    private func writeAll(_ bytes: UnsafeRawBufferPointer) throws {
        var rest = bytes
        while !rest.isEmpty {
            let written = systemWrite(descriptor, rest)
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { throw FileError.writing(url.path, written < 0 ? errno : ENOSPC) }
            rest = UnsafeRawBufferPointer(rebasing: rest[written...])
        }
    }

    /// Appends the rest of another file.
    func append(from source: Int32, path: String) throws {
        while true {
            let length = read(source, buffer.baseAddress, buffer.count)
            if length < 0, errno == EINTR { continue }
            guard length >= 0 else { throw FileError.reading(path, errno) }
            guard length > 0 else { return }
            try writeAll(UnsafeRawBufferPointer(rebasing: buffer[..<length]))
        }
    }
}

private func systemClose(_ descriptor: Int32) -> Int32 { close(descriptor) }

private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int { write(descriptor, bytes.baseAddress, bytes.count) }
