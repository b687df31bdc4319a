// SPDX-License-Identifier: Apache-2.0
import Curlew

/// A file that the user names. It may be a pipe, as that of a shell's `<(command)`.
enum InputFile {
    /// Whether the path is something to read that has no size, and is read once: neither a folder nor a regular file, unless the size of that
    /// is reported as 0 although it has bytes, as those of `/proc`.
    static func isStream(_ path: String) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFDIR else { return false }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_size == 0 else { return status.st_mode & S_IFMT != S_IFREG }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        defer { if descriptor >= 0 { close(descriptor) } }
        return hasByte(descriptor, at: 0)
    }

    /// Whether a regular file has a byte at an offset, whatever its size is said to be.
    static func hasByte(_ descriptor: Int32, at offset: off_t) -> Bool {
        var byte: UInt8 = 0
        return pread(descriptor, &byte, 1, offset) > 0
    }

    /// Reads a file to its end, or standard input (`-`); `nil` if it can't be read.
    static func contents(_ path: String) -> Data? {
        let descriptor = path == "-" ? 0 : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { if descriptor != 0 { close(descriptor) } }
        let stream = DescriptorStream(descriptor: descriptor)
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        var data = Data()
        while true {
            let count = stream.read(&buffer, maxLength: buffer.count)
            guard count > 0 else { return count == 0 ? data : nil }
            data += buffer[..<count]
        }
    }
}

/// The lines of a descriptor, as their bytes, without the line feed or CRLF at their end.
struct InputLines {
    private let stream: DescriptorStream
    private var bytes: [UInt8] = []
    private var buffer = [UInt8](repeating: 0, count: 64 << 10)
    private var isAtEnd = false

    init(descriptor: Int32) {
        stream = DescriptorStream(descriptor: descriptor)
    }

    /// Blocks until there is a line; `nil` at the end.
    mutating func next() -> [UInt8]? {
        var searched = 0
        while true {
            if let end = bytes[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                defer { bytes.removeFirst(end + 1) }
                return Array(bytes[..<(end > 0 && bytes[end - 1] == UInt8(ascii: "\r") ? end - 1 : end)])
            }
            searched = bytes.count
            let count = isAtEnd ? 0 : stream.read(&buffer, maxLength: buffer.count)
            guard count > 0 else {
                isAtEnd = true
                defer { bytes = [] }
                return bytes.isEmpty ? nil : bytes
            }
            bytes += buffer[..<count]
        }
    }
}
