// SPDX-License-Identifier: Apache-2.0

extension Data {
    /// Reads a file into memory.
    ///
    /// In place of `Data(contentsOf:)`, which on Linux (FoundationEssentials) leaks 4 KiB for each empty file.
    ///
    /// - Throws: `CocoaError` if the file can't be opened or read completely.
    package init(readingFrom file: URL) throws {
        let path = file.path
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw FileError.reading(path, errno) }
        defer { _ = close(descriptor) }
        var status = stat()
        // A hint only: files of the kernel have the size 0, and a file may grow.
        let expected = fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
        self.init(capacity: expected)
        let room = Swift.max(64 << 10, Swift.min(expected, 1 << 20))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: room, alignment: 16)
        defer { buffer.deallocate() }
        while true {
            let length = read(descriptor, buffer.baseAddress, room)
            if length < 0, errno == EINTR { continue }
            guard length >= 0 else { throw FileError.reading(path, errno) }
            if length == 0 { return }
            append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<length]))
        }
    }
}
