// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// A file on its way to be whole: written in large pieces, renamed when it is complete.
///
/// One thread at a time uses it: the transport's while it is written, the session's queue before and after.
final class PartFile: @unchecked Sendable {  // handed over with the task, never shared
    /// Small pieces are put together up to this size, as each write costs a system call.
    private static let pieceSize = 64 * 1024
    /// A piece of this size is written as it is: copying it would cost more than the system call it saves.
    private static let sizeWorthACall = 8 * 1024

    let url: URL
    /// How many bytes were there when it was opened: behind them it is written.
    let offset: Int64
    private var descriptor: Int32
    /// A second descriptor of a file that others may want, which keeps them off until it has moved.
    private var lock: Int32 = -1
    private let buffer: UnsafeMutableRawBufferPointer
    private var count = 0
    /// After an error nothing is written any more: what is there stays a beginning of what came.
    private var hasFailed = false

    /// Makes a new file in a directory, hidden, named after the file it is going to be.
    ///
    /// - Parameter isPrivate: whether only its owner may read it, whatever the process's mask allows.
    /// - Throws: `CocoaError` with the path, when the directory is not there or not to be written.
    init(in directory: URL, for name: String = "download", isPrivate: Bool = false) throws {
        // 255 bytes is what a name may have; the template needs 16 of them.
        let stem = String(decoding: name.utf8.prefix(200), as: UTF8.self)
        var template = Array((directory.path + "/.\(stem).XXXXXX.part").utf8CString)
        descriptor = mkstemps(&template, 5)
        guard descriptor >= 0 else { throw FileError.writing(directory.path, errno) }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        // mkstemps makes files for their owner alone; what is downloaded has the rights that new files have.
        if !isPrivate { fchmod(descriptor, 0o666 & ~Self.fileModeMask) }
        url = URL(fileURLWithPath: String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
        offset = 0
        buffer = .allocate(byteCount: Self.pieceSize, alignment: 4096)
    }

    /// Opens a file that an earlier download has left, to write behind what is there; `nil` if there is none, it is no plain file, or
    /// somebody else writes to it: it is locked until ``unlock()``.
    ///
    /// - Parameter isMade: whether an empty file is made where there is none.
    init?(continuing url: URL, isMade: Bool = false) {
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
    static func isName(_ name: String) -> Bool {
        name.hasPrefix(".") && name.hasSuffix(".part") && name.utf8.count > 6 && !name.contains("/")
    }

    /// The part file of a destination, the same each time.
    static func stableURL(for destination: URL) -> URL {
        let stem = String(decoding: destination.lastPathComponent.utf8.prefix(200), as: UTF8.self)
        return destination.deletingLastPathComponent().appendingPathComponent(".\(stem).part")
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
    var length: Int64 {
        var status = stat()
        let result = descriptor >= 0 ? fstat(descriptor, &status) : lstat(url.path, &status)
        return result == 0 ? Int64(status.st_size) : 0
    }

    /// Removes what is in the file.
    func truncate() throws {
        guard ftruncate(descriptor, 0) == 0, lseek(descriptor, 0, SEEK_SET) == 0 else { throw FileError.writing(url.path, errno) }
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws {
        if bytes.count > buffer.count - count || bytes.count >= Self.sizeWorthACall { try flush() }
        guard bytes.count < Self.sizeWorthACall else { return try writeAll(bytes) }
        UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyMemory(from: bytes)
        count += bytes.count
    }

    /// Writes what is left, and closes the file.
    func close() throws {
        guard descriptor >= 0 else { return }
        defer { descriptor = -1 }
        do {
            try flush()
        } catch {
            _ = systemClose(descriptor)
            throw error
        }
        guard systemClose(descriptor) == 0 else { throw FileError.writing(url.path, errno) }
    }

    /// Closes and removes the file.
    func discard() {
        // Before anybody else can have it.
        unlink(url.path)
        if descriptor >= 0 { _ = systemClose(descriptor) }
        descriptor = -1
        unlock()
    }

    private func flush() throws {
        guard count > 0 else { return }
        defer { count = 0 }
        try writeAll(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }

    private func writeAll(_ bytes: UnsafeRawBufferPointer) throws {
        guard !hasFailed else { return }
        var rest = bytes
        while !rest.isEmpty {
            let written = systemWrite(descriptor, rest)
            if written < 0, errno == EINTR { continue }
            guard written > 0 else {
                hasFailed = true
                throw FileError.writing(url.path, written < 0 ? errno : ENOSPC)
            }
            rest = UnsafeRawBufferPointer(rebasing: rest[written...])
        }
    }

    // MARK: Moving

    /// Gives the closed file its final name, at once or not at all; on another file system a copy of it.
    func move(to destination: URL, replacing: Bool, creatingDirectories: Bool) throws {
        if creatingDirectories {
            try FileManager.default.createDirectory(at: destination.deletingLastPathComponent(), withIntermediateDirectories: true)
        }
        if replacing { try checkReplaceable(destination) }
        do {
            try rename(url.path, to: destination.path, replacing: replacing)
        } catch let error as CocoaError where error.posixCode == .EXDEV {
            try copy(to: destination, replacing: replacing)
        }
    }

    /// Only a file is replaced, or a link to one: a directory would go with all that is in it.
    private func checkReplaceable(_ destination: URL) throws {
        var status = stat()
        guard lstat(destination.path, &status) == 0 else { return }
        let kind = status.st_mode & S_IFMT
        guard kind == S_IFREG || kind == S_IFLNK else { throw FileError.writing(destination.path, EEXIST) }
    }

    private func rename(_ source: String, to target: String, replacing: Bool) throws {
        let status = replacing ? systemRename(source, target) : renameExclusively(source, target)
        guard status == 0 else { throw FileError.writing(target, errno) }
    }

    /// Copies to a hidden file beside the destination, has it written to the disk, and renames that.
    private func copy(to destination: URL, replacing: Bool) throws {
        let copy = try PartFile(in: destination.deletingLastPathComponent(), for: destination.lastPathComponent)
        do {
            let source = open(url.path, O_RDONLY | O_CLOEXEC)
            guard source >= 0 else { throw FileError.reading(url.path, errno) }
            defer { _ = systemClose(source) }
            try copy.append(from: source, path: url.path)
            guard fsync(copy.descriptor) == 0 else { throw FileError.writing(copy.url.path, errno) }
            try copy.close()
            try rename(copy.url.path, to: destination.path, replacing: replacing)
        } catch {
            copy.discard()
            throw error
        }
        unlink(url.path)
    }

    private func append(from source: Int32, path: String) throws {
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

private func systemRename(_ source: String, _ target: String) -> Int32 { rename(source, target) }

/// Renames unless the target is there. A second link to the file is refused where there is something, which no check beforehand can
/// promise; file systems without links get the check.
private func renameExclusively(_ source: String, _ target: String) -> Int32 {
    if link(source, target) == 0 { return unlink(source) }
    guard [EPERM, ENOTSUP, EMLINK, ENOSYS].contains(errno) else { return -1 }
    guard access(target, F_OK) != 0 else {
        errno = EEXIST
        return -1
    }
    return rename(source, target)
}

extension CocoaError {
    fileprivate var posixCode: POSIXErrorCode? { (userInfo["NSUnderlyingError"] as? POSIXError)?.code }
}
