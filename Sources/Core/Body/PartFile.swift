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
    /// The open file; `nil` once a file with a name is closed.
    private(set) var file: Descriptor?
    /// A second descriptor, which holds the lock on a file with a stable name until it was moved; `nil` without a lock.
    private var lock: Descriptor?
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
            (file, url) = (unnamed, Self.randomURL(in: directory, stem))
        } else {
            (file, url) = try Self.openNamed(in: directory, stem)
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

    private static func openNamed(in directory: URL, _ stem: String) throws -> (Descriptor, URL) {
        guard let (file, path) = PrivateFile.create(in: directory.path, named: ".\(stem).", ".part") else {
            throw FileError.writing(directory.path, errno)
        }
        return (file, URL(fileURLWithPath: path))
    }

    /// Opens a file that an earlier download has left, to append to it, and locks it until ``unlock()``; `nil` if it does not exist, is not
    /// a regular file, may have been put there by another user, or is locked by another download.
    ///
    /// - Parameter isMade: whether an empty file is created if there is none.
    package init?(continuing url: URL, isMade: Bool = false) {
        guard let file = PrivateFile.open(url.path, O_RDWR | (isMade ? O_CREAT : 0)) else { return nil }
        // A download that held the lock may have renamed the file in the meantime: then this lock is on a file that has lost this
        // name.
        let isLocked = file.lock() && Self.isPlainFile(file, at: url.path)
        offset = isLocked ? file.seek(to: 0, from: SEEK_END) : -1
        guard offset >= 0, let lock = file.duplicate() else { return nil }
        (self.file, self.lock, self.url) = (file, lock, url)
        isNamed = true
        isLinkable = false
        isPrivate = false
        buffer = .allocate(byteCount: Self.pieceSize, alignment: 4096)
    }

    private static func isPlainFile(_ file: Descriptor, at path: String) -> Bool {
        var named = stat()
        guard let ours = file.regularStatus, lstat(path, &named) == 0 else { return false }
        return ours.st_dev == named.st_dev && ours.st_ino == named.st_ino
            && !PrivateFile.isForeign(ours, in: URL(fileURLWithPath: path).deletingLastPathComponent().path)
    }

    deinit {
        buffer.deallocate()
    }

    /// Releases the lock, if there is one.
    func unlock() {
        lock = nil
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
        guard let file = unnamed ?? Descriptor.open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o666) else { return nil }
        if unnamed == nil { unlink(path) }
        return file.status.map { $0.st_mode & 0o777 }
    }

    /// The number of bytes in the file, without the buffered ones.
    package var length: Int64 {
        if let file { return Int64(file.status?.st_size ?? 0) }
        var status = stat()
        return lstat(url.path, &status) == 0 ? Int64(status.st_size) : 0
    }

    /// Returns up to `count` bytes of the beginning of a closed file; `nil` if it can't be read.
    func beginning(_ count: Int) -> Data? {
        file.map { Self.beginning(count, of: $0) } ?? Self.beginning(count, at: url.path)
    }

    /// Returns up to `count` bytes of the beginning of the file at a path; `nil` if it can't be read.
    static func beginning(_ count: Int, at path: String) -> Data? {
        PrivateFile.open(path, O_RDONLY).flatMap { beginning(count, of: $0) }
    }

    /// Reserves no more memory than the file has bytes.
    private static func beginning(_ count: Int, of file: Descriptor) -> Data? {
        try? file.read(min(count, file.status.map { Int($0.st_size) } ?? count), at: 0)
    }

    /// Truncates the file to a length, at most its own, and appends there from now on.
    package func truncate(to length: Int64 = 0) throws {
        guard let file, file.truncate(to: length), file.seek(to: length) == length else { throw FileError.writing(url.path, errno) }
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
    /// - Parameter body: gets the open file; returns the number of bytes, `nil` for none.
    func appendUnbuffered(_ body: (Descriptor) throws -> Int64?) throws -> Int64? {
        try pending.withLock { pending in
            try throwPendingError(&pending)
            try flush(&pending)
            guard !pending.hasFailed, let file, let count = try body(file) else { return nil }
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
            guard file != nil else { return nil }
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
            guard let file else { return }
            defer { if isNamed { self.file = nil } }
            try throwPendingError(&pending)
            try flush(&pending)
            // Some file systems report failed writes only on close, of any descriptor.
            let closed = isNamed ? file : file.duplicate()
            do throws(SystemError) { try closed?.close() } catch { throw FileError.writing(url.path, error.code) }
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
        pending.withLock { _ in file = nil }
    }

    /// Makes a closed file without a name ready to be appended to.
    package func resume() {
        pending.withLock { pending in
            offset = file?.seek(to: 0, from: SEEK_END) ?? -1
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
            if file == nil { file = Descriptor.open(url.path, O_RDWR | O_NOFOLLOW) }
            return file != nil
        }
        guard reopened else { return }
        unlink(url.path)
        isNamed = false
        isLinkable = false
    }

    /// Links the file without a name to one; returns 0 or the error number. Never replaces a file.
    func linkUnnamed(to path: String) -> Int32 {
        guard isLinkable, let file else { return ENOTSUP }
        return linkUnnamedFile(file, to: path)
    }

    /// Copies the file, which has lost its name and so can't be linked, to a new one.
    private func copyToName(in directory: URL, _ stem: String) throws {
        let (copy, copyURL) = try Self.openNamed(in: directory, stem)
        let old = file
        do {
            guard let old, old.seek(to: 0) == 0 else { throw FileError.reading(url.path, errno) }
            file = copy
            try append(from: old, path: url.path)
        } catch {
            file = old
            unlink(copyURL.path)
            throw error
        }
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
        guard let file else { throw FileError.writing(url.path, EBADF) }
        do throws(SystemError) { try file.write(bytes) } catch { throw FileError.writing(url.path, error.code) }
    }

    /// Appends the rest of another file.
    func append(from source: Descriptor, path: String) throws {
        var length = buffer.count
        while length == buffer.count {
            do throws(SystemError) { length = try source.read(into: buffer) } catch { throw FileError.reading(path, error.code) }
            try writeAll(UnsafeRawBufferPointer(rebasing: buffer[..<length]))
        }
    }
}
