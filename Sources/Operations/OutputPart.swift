// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The hidden file beside a destination into which a body is written until it is whole: `.name.XXXXXX.part`.
///
/// An exclusive lock keeps other operations off while it is open, such as a second one that was made of the same archive. Used on one
/// queue.
final class OutputPart {
    private static let suffixCharacters = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")

    let url: URL
    private let handle: FileHandle

    private init(_ url: URL, _ descriptor: Int32) {
        self.url = url
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Makes an empty file under a name that is not taken.
    ///
    /// - Throws: `CocoaError` with the URL of the destination, also where that is neither a file nor a link to one nor free.
    static func make(for destination: URL) throws -> OutputPart {
        var status = stat()
        if lstat(destination.path, &status) == 0, ![S_IFREG, S_IFLNK].contains(status.st_mode & S_IFMT) {
            throw FileError.writing(destination.path, EEXIST)
        }
        // 255 bytes is the longest name; what is added takes 13.
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

    /// Opens a part that was closed, to write behind what is there; `nil` where there is none, it is no plain file, or another operation
    /// writes to it.
    static func reopen(_ url: URL) -> OutputPart? {
        let descriptor = open(url.path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        let part = OutputPart(url, descriptor)
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, part.isNamed else { return nil }
        return part
    }

    /// Whether a name is one that parts have: with nothing in it that leads elsewhere.
    static func isName(_ name: String) -> Bool {
        name.hasPrefix(".") && name.hasSuffix(".part") && name.utf8.count > 6 && !name.contains("/") && !name.contains("\0")
    }

    /// Whether the file is still the one of that name: the operation that had the lock may have moved it.
    private var isNamed: Bool {
        var (ours, named) = (stat(), stat())
        guard fstat(handle.fileDescriptor, &ours) == 0, lstat(url.path, &named) == 0 else { return false }
        return ours.st_mode & S_IFMT == S_IFREG && ours.st_dev == named.st_dev && ours.st_ino == named.st_ino
    }

    /// Removes what is behind the first `limit` bytes, and goes to the end; how many bytes are there.
    func truncate(to limit: Int64) throws -> Int64 {
        let count = min(limit, Int64(clamping: try handle.seekToEnd()))
        try handle.truncate(atOffset: UInt64(count))
        try handle.seek(toOffset: UInt64(count))
        return count
    }

    func write(_ data: Data) throws {
        try handle.write(contentsOf: data)
    }

    /// Closes the file, which stays under its hidden name.
    func close() {
        try? handle.close()
    }

    /// Gives the file its final name, in place of what has that, and closes it. The lock is held until then.
    func move(to destination: URL) throws {
        guard rename(url.path, destination.path) == 0 else { throw FileError.writing(destination.path, errno) }
        try handle.close()
    }

    /// Removes the file, before another operation can have it, and closes it.
    func remove() {
        unlink(url.path)
        close()
    }
}
