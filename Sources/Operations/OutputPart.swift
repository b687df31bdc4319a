// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A hidden partial file in the destination's directory, to which a body is written until it is complete: `.name.XXXXXX.part`.
///
/// An exclusive lock keeps other operations out while it is open, such as a second one made from the same archive. Used on one queue.
final class OutputPart {
    private static let suffixCharacters = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")

    let url: URL
    private let handle: FileHandle

    private init(_ url: URL, _ descriptor: Int32) {
        self.url = url
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Creates an empty file under an unused name.
    ///
    /// - Throws: `CocoaError` with the destination's URL, also if something other than a regular file or a symbolic link exists there.
    static func make(for destination: URL) throws -> OutputPart {
        var status = stat()
        if lstat(destination.path, &status) == 0, ![S_IFREG, S_IFLNK].contains(status.st_mode & S_IFMT) {
            throw FileError.writing(destination.path, EEXIST)
        }
        // File names are limited to 255 bytes; the affixes take 13.
        let stem = String(decoding: destination.lastPathComponent.utf8.prefix(200), as: UTF8.self)
        for _ in 0..<100 {
            let random = String((0..<6).compactMap { _ in suffixCharacters.randomElement() })
            let url = destination.deletingLastPathComponent().appendingPathComponent(".\(stem).\(random).part")
            let descriptor = open(url.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o666)
            if descriptor >= 0 {
                _ = flock(descriptor, LOCK_EX | LOCK_NB)
                return OutputPart(url, descriptor)
            }
            guard errno == EEXIST else { break }
        }
        throw FileError.writing(destination.path, errno)
    }

    /// Opens an existing partial file for appending; `nil` if it is missing, is not a regular file, or is locked by another operation.
    static func reopen(_ url: URL) -> OutputPart? {
        let descriptor = open(url.path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        let part = OutputPart(url, descriptor)
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, part.isNamed else { return nil }
        return part
    }

    /// Whether a name is one that partial files have, and stays in the directory.
    static func isName(_ name: String) -> Bool {
        name.hasPrefix(".") && name.hasSuffix(".part") && name.utf8.count > 6 && !name.contains("/") && !name.contains("\0")
    }

    /// Whether the open file still has that name: the operation that held the lock may have renamed it.
    private var isNamed: Bool {
        var (ours, named) = (stat(), stat())
        guard fstat(handle.fileDescriptor, &ours) == 0, lstat(url.path, &named) == 0 else { return false }
        return ours.st_mode & S_IFMT == S_IFREG && ours.st_dev == named.st_dev && ours.st_ino == named.st_ino
    }

    /// Truncates the file to at most `limit` bytes and seeks to the end; returns the number of bytes left.
    func truncate(to limit: Int64) throws -> Int64 {
        let count = min(limit, Int64(clamping: try handle.seekToEnd()))
        try handle.truncate(atOffset: UInt64(count))
        try handle.seek(toOffset: UInt64(count))
        return count
    }

    func write(_ data: Data) throws {
        try handle.write(contentsOf: data)
    }

    /// Closes the file, keeping it under its hidden name.
    func close() {
        try? handle.close()
    }

    /// Renames the file to the destination, replacing what was there, and closes it. The lock is held until then.
    func move(to destination: URL) throws {
        guard rename(url.path, destination.path) == 0 else { throw FileError.writing(destination.path, errno) }
        try handle.close()
    }

    /// Removes the file while the lock is held, so that no other operation opens it, and closes it.
    func remove() {
        unlink(url.path)
        close()
    }
}
