// SPDX-License-Identifier: Apache-2.0
import Curlew

/// A file that the user names. It may be a pipe, as that of a shell's `<(command)`.
enum InputFile {
    /// Whether the path is something to read that is no regular file and no folder: a pipe or a device, which has no size and is read once.
    static func isStream(_ path: String) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0 else { return false }
        return status.st_mode & S_IFMT != S_IFREG && status.st_mode & S_IFMT != S_IFDIR
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
