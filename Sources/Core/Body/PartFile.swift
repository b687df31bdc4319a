// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Dispatch

/// A file on its way to be whole: written in large pieces, put in its place when it is complete.
///
/// Where the file system can (`O_TMPFILE`, Linux), it has no name until then, so that nothing is left of it however the process ends.
/// Elsewhere its name is hidden.
///
/// One thread at a time uses it: the transport's while it is written, the session's queue before and after. Beside it there is only the
/// look for bytes that have waited too long.
package final class PartFile: @unchecked Sendable {  // what that look needs is behind a lock, the rest is handed over with the task
    /// Bytes that were put together and are to be written.
    private struct Waiting {
        var count = 0
        /// How often bytes were written.
        var writes = 0
        /// Whether somebody is going to look after them.
        var isWatched = false
        /// After an error nothing is written any more: what is there stays a beginning of what came.
        var hasFailed = false
        /// An error of which nobody has been told.
        var error: (any Error)?
    }

    /// What libcurl hands over, 16 KiB at most, is put together up to this size. Written as it comes, a gigabyte costs twice as much on a
    /// file system that has a disk below it.
    private static let pieceSize = 256 * 1024
    /// After how many milliseconds somebody looks for bytes that wait for others, as a process may be killed while a server pauses. They
    /// wait twice as long at most.
    private static let patience = 100

    /// Where it lies, or would if it had a name.
    package private(set) var url: URL
    /// Whether it is found there.
    package private(set) var isNamed: Bool
    /// Whether it can be linked to a name, as a file can that never had one. One that has lost its name is copied.
    private var canBeLinked: Bool
    /// How many bytes were there when it was opened: behind them it is written.
    package private(set) var offset: Int64
    private(set) var descriptor: Int32
    /// A second descriptor of a file that others may want, which keeps them off until it has moved.
    private var lock: Int32 = -1
    private let buffer: UnsafeMutableRawBufferPointer
    private let waiting = Lock(Waiting())

    /// Makes a new file in a directory, without a name where that is possible, or else hidden, named after the file it is going to be.
    ///
    /// - Parameters:
    ///   - isPrivate: whether only its owner may read it, whatever the process's mask allows.
    ///   - isNamed: whether it has a name in any case.
    /// - Throws: `CocoaError` with the path, when the directory is not there or not to be written.
    package init(in directory: URL, for name: String = "download", isPrivate: Bool = false, isNamed: Bool = false) throws {
        let stem = Self.stem(of: name)
        let unnamed = isNamed ? nil : openUnnamedFile(in: directory.path, mode: isPrivate ? 0o600 : 0o666)
        if let unnamed {
            descriptor = unnamed
            url = Self.randomURL(in: directory, stem)
        } else {
            (descriptor, url) = try Self.openNamed(in: directory, stem, isPrivate: isPrivate)
        }
        self.isNamed = unnamed == nil
        canBeLinked = unnamed != nil
        offset = 0
        buffer = .allocate(byteCount: Self.pieceSize, alignment: 4096)
    }

    /// A name may have 255 bytes, 16 of which are used by what is added to this.
    private static func stem(of name: String) -> String { String(decoding: name.utf8.prefix(200), as: UTF8.self) }

    private static func randomURL(in directory: URL, _ stem: String) -> URL {
        let characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        let middle = String((0..<6).compactMap { _ in characters.randomElement() })
        return directory.appendingPathComponent(".\(stem).\(middle).part")
    }

    private static func openNamed(in directory: URL, _ stem: String, isPrivate: Bool) throws -> (Int32, URL) {
        var template = Array((directory.path + "/.\(stem).XXXXXX.part").utf8CString)
        let descriptor = mkstemps(&template, 5)
        guard descriptor >= 0 else { throw FileError.writing(directory.path, errno) }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        // mkstemps makes files for their owner alone; what is downloaded has the rights that new files have.
        if !isPrivate { fchmod(descriptor, 0o666 & ~fileModeMask) }
        return (descriptor, URL(fileURLWithPath: String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)))
    }

    /// Opens a file that an earlier download has left, to write behind what is there; `nil` if there is none, it is no plain file, or
    /// somebody else writes to it: it is locked until ``unlock()``.
    ///
    /// - Parameter isMade: whether an empty file is made where there is none.
    package init?(continuing url: URL, isMade: Bool = false) {
        // Neither through a link nor to a pipe, which would wait for its other end.
        let flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (isMade ? O_CREAT : 0)
        let descriptor = open(url.path, flags, 0o666)
        guard descriptor >= 0 else { return nil }
        // Whoever had it may have moved it away meanwhile: then our lock is on another file than that name's.
        let isOurs = flock(descriptor, LOCK_EX | LOCK_NB) == 0 && Self.isPlainFile(descriptor, at: url.path)
        offset = isOurs ? Int64(lseek(descriptor, 0, SEEK_END)) : -1
        guard offset >= 0 else {
            _ = systemClose(descriptor)
            return nil
        }
        lock = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        self.url = url
        isNamed = true
        canBeLinked = false
        self.descriptor = descriptor
        buffer = .allocate(byteCount: Self.pieceSize, alignment: 4096)
        if lock < 0 { return nil }
    }

    private static func isPlainFile(_ descriptor: Int32, at path: String) -> Bool {
        var (ours, named) = (stat(), stat())
        guard fstat(descriptor, &ours) == 0, lstat(path, &named) == 0 else { return false }
        return ours.st_mode & S_IFMT == S_IFREG && ours.st_dev == named.st_dev && ours.st_ino == named.st_ino
    }

    /// Whether a name is one that part files have.
    package static func isName(_ name: String) -> Bool {
        name.hasPrefix(".") && name.hasSuffix(".part") && name.utf8.count > 6 && !name.contains("/") && !name.contains("\0")
    }

    /// The part file of a destination, the same each time.
    static func stableURL(for destination: URL) -> URL {
        destination.deletingLastPathComponent().appendingPathComponent(".\(stem(of: destination.lastPathComponent)).part")
    }

    deinit {
        if descriptor >= 0 { _ = systemClose(descriptor) }
        unlock()
        buffer.deallocate()
    }

    /// Lets others have the file.
    func unlock() {
        if lock >= 0 { _ = systemClose(lock) }
        lock = -1
    }

    /// The process's umask, which can only be read by setting it; so once.
    private static let fileModeMask: mode_t = {
        let mask = umask(0o022)
        umask(mask)
        return mask
    }()

    /// The number of bytes in the file; those that wait to be written do not count.
    package var length: Int64 {
        var status = stat()
        let result = descriptor >= 0 ? fstat(descriptor, &status) : lstat(url.path, &status)
        return result == 0 ? Int64(status.st_size) : 0
    }

    /// Shortens the file to a length, which is not more than it has, and continues to write there.
    package func truncate(to length: Int64 = 0) throws {
        guard ftruncate(descriptor, off_t(length)) == 0, lseek(descriptor, off_t(length), SEEK_SET) == length else {
            throw FileError.writing(url.path, errno)
        }
    }

    /// Adds bytes to the file, where they are at the latest when it is closed.
    ///
    /// - Throws: `CocoaError` with the path, also for bytes that were added before; once.
    package func write(_ bytes: UnsafeRawBufferPointer) throws {
        let unwatched = try waiting.withLock { waiting -> Int? in
            try tellError(&waiting)
            try add(bytes, to: &waiting)
            guard waiting.count > 0, !waiting.isWatched else { return nil }
            waiting.isWatched = true
            return waiting.writes
        }
        if let unwatched { watch(since: unwatched) }
    }

    private func add(_ bytes: UnsafeRawBufferPointer, to waiting: inout Waiting) throws {
        if bytes.count > buffer.count - waiting.count { try flush(&waiting) }
        guard bytes.count < buffer.count else { return try writeUnlessFailed(bytes, &waiting) }
        UnsafeMutableRawBufferPointer(rebasing: buffer[waiting.count...]).copyMemory(from: bytes)
        waiting.count += bytes.count
    }

    /// Looks after a while whether bytes wait that did so already when there had been so many writes.
    private func watch(since writes: Int) {
        DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + .milliseconds(Self.patience)) { [weak self] in
            guard let self, let later = self.look(since: writes) else { return }
            self.watch(since: later)
        }
    }

    /// Writes bytes that have waited for long. If they are newer than that, how many writes there were, to look again.
    private func look(since writes: Int) -> Int? {
        waiting.withLock { waiting in
            if waiting.count > 0, waiting.writes != writes { return waiting.writes }
            waiting.isWatched = false
            guard descriptor >= 0 else { return nil }
            do { try flush(&waiting) } catch { waiting.error = error }
            return nil
        }
    }

    private func tellError(_ waiting: inout Waiting) throws {
        guard let error = waiting.error else { return }
        waiting.error = nil
        throw error
    }

    /// Writes what is left, and closes the file; one without a name stays open, as it would be gone.
    package func close() throws {
        try waiting.withLock { waiting in
            guard descriptor >= 0 else { return }
            defer { if isNamed { descriptor = -1 } }
            do {
                try tellError(&waiting)
                try flush(&waiting)
            } catch {
                if isNamed { _ = systemClose(descriptor) }
                throw error
            }
            // Some file systems say only now what they could not write, also when another descriptor is left.
            let closed = isNamed ? descriptor : fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
            guard closed < 0 || systemClose(closed) == 0 else { throw FileError.writing(url.path, errno) }
        }
    }

    /// Closes and removes the file.
    package func discard() {
        // Before anybody else can have it.
        if isNamed { unlink(url.path) }
        isNamed = false
        letGo()
        unlock()
    }

    /// The file is at its destination, and no longer ours.
    func wasPlaced() {
        isNamed = false
        letGo()
    }

    private func letGo() {
        waiting.withLock { _ in
            if descriptor >= 0 { _ = systemClose(descriptor) }
            descriptor = -1
        }
    }

    /// Makes a closed file without a name ready to be written on.
    package func goOn() {
        waiting.withLock { waiting in
            offset = Int64(lseek(descriptor, 0, SEEK_END))
            waiting.count = 0
            waiting.hasFailed = false
            waiting.error = nil
        }
    }

    // MARK: Names

    /// Gives a closed file that has no name a hidden one, in the directory in which it was made, and closes it.
    ///
    /// - Throws: `CocoaError` with the path.
    package func giveName() throws {
        guard !isNamed else { return }
        let (directory, name) = (url.deletingLastPathComponent(), url.lastPathComponent)
        let stem = name.dropFirst().dropLast(".XXXXXX.part".count)
        var status = linkUnnamed(to: url.path)
        while status == EEXIST {
            url = Self.randomURL(in: directory, String(stem))
            status = linkUnnamed(to: url.path)
        }
        if status != 0 { try copyToName(in: directory, String(stem)) }
        isNamed = true
        letGo()
    }

    /// Takes the file's name away, so that nothing is left of it unless it is given one again; it stays open.
    func takeName() {
        guard isNamed else { return }
        let reopened = waiting.withLock { _ in
            if descriptor < 0 { descriptor = open(url.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) }
            return descriptor >= 0
        }
        guard reopened else { return }
        unlink(url.path)
        isNamed = false
        canBeLinked = false
    }

    /// Links the file, which has no name, to one; 0, or why that failed. Never replaces what is there.
    func linkUnnamed(to path: String) -> Int32 {
        canBeLinked ? linkUnnamedFile(descriptor, to: path) : ENOTSUP
    }

    /// Copies the file, which has lost its name, to a new one.
    private func copyToName(in directory: URL, _ stem: String) throws {
        let (copy, copyURL) = try Self.openNamed(in: directory, stem, isPrivate: true)
        let old = descriptor
        do {
            var status = stat()
            if fstat(old, &status) == 0 { fchmod(copy, status.st_mode & 0o7777) }
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

    private func flush(_ waiting: inout Waiting) throws {
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<waiting.count])
        waiting.count = 0
        try writeUnlessFailed(bytes, &waiting)
    }

    private func writeUnlessFailed(_ bytes: UnsafeRawBufferPointer, _ waiting: inout Waiting) throws {
        guard !bytes.isEmpty, !waiting.hasFailed else { return }
        waiting.writes += 1
        do {
            try writeAll(bytes)
        } catch {
            waiting.hasFailed = true
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

    /// Copies the rest of another file.
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
