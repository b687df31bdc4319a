// SPDX-License-Identifier: Apache-2.0

extension Data {
    /// Reads a file into memory.
    ///
    /// In place of `Data(contentsOf:)`, which on Linux (FoundationEssentials) leaks 4 KiB for each empty file.
    ///
    /// - Throws: `CocoaError` if the file can't be opened or read completely.
    package init(readingFrom file: URL) throws {
        let path = file.path
        guard let file = Descriptor.open(path, O_RDONLY) else { throw FileError.reading(path, errno) }
        try self.init(reading: file, of: path)
    }

    /// Reads an open file from its position to its end, and at most one piece (64 KiB to 1 MiB) beyond a limit.
    fileprivate init(reading file: Descriptor, of path: String, upTo limit: Int = .max) throws {
        // A hint only: files of the kernel have the size 0, and a file may grow.
        let expected = Int(file.status?.st_size ?? 0)
        self.init(capacity: Swift.min(expected, limit))
        let room = Swift.max(64 << 10, Swift.min(expected, 1 << 20))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: room, alignment: 16)
        defer { buffer.deallocate() }
        do throws(SystemError) {
            while count <= limit {
                let length = try file.read(into: buffer)
                append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<length]))
                if length < room { return }
            }
        } catch {
            throw FileError.reading(path, error.code)
        }
    }
}

extension PrivateFile {
    /// Reads a file that Curlew has made, without following a link in its place or waiting at a pipe.
    ///
    /// - Throws: `CocoaError` if the file can't be opened or read completely, is no regular file, or is longer than `limit` bytes.
    package static func read(_ path: String, upTo limit: Int = .max) throws -> Data {
        guard let file = open(path, O_RDONLY) else { throw FileError.reading(path, errno) }
        guard file.regularStatus != nil else { throw FileError.reading(path, EINVAL) }
        let contents = try Data(reading: file, of: path, upTo: limit)
        guard contents.count <= limit else { throw FileError.reading(path, EFBIG) }
        return contents
    }
}

/// The length of a regular file, as far as its system knows it.
package enum FileLength {
    /// Returns the length in a file's status; `nil` if that is 0 and the file has bytes nevertheless, as those of `/proc` have.
    package static func known(_ status: stat, of path: String) -> Int64? {
        guard status.st_size == 0 else { return Int64(status.st_size) }
        let byte = try? Descriptor.open(path, O_RDONLY | O_NONBLOCK)?.read(1, at: 0)
        return byte?.isEmpty == false ? nil : 0
    }
}
