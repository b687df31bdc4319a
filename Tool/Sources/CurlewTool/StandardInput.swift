// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Whether there is a body on standard input.
enum StandardInput {
    /// The bytes that are left of a regular file; `nil` for what has no length, and for a file whose size is said to be 0 although it has
    /// bytes.
    static var length: Int64? {
        var status = stat()
        guard fstat(0, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        let offset = max(lseek(0, 0, SEEK_CUR), 0)
        return status.st_size == 0 && InputFile.hasByte(0, at: offset) ? nil : Int64(max(status.st_size - offset, 0))
    }

    /// Waits until a pipe has data or its end. What is neither a pipe nor a file has no body.
    static func hasBody() -> Bool {
        var status = stat()
        guard fstat(0, &status) == 0 else { return false }
        switch status.st_mode & S_IFMT {
        case S_IFREG: return InputFile.hasByte(0, at: max(lseek(0, 0, SEEK_CUR), 0))
        case S_IFIFO: break
        default: return false
        }
        var entry = pollfd(fd: 0, events: Int16(POLLIN), revents: 0)
        if poll(&entry, 1, 2000) == 0 {
            Output.error.note("curlew: waiting for a body on standard input; --ignore-stdin sends none")
            while poll(&entry, 1, -1) < 0, errno == EINTR {}
        }
        guard entry.revents & Int16(POLLIN) != 0 else { return false }
        var count: Int32 = 0
        // A pipe that is readable and empty is at its end. FIONREAD tells without reading.
        return ioctl(0, UInt(FIONREAD), &count) != 0 || count > 0
    }
}

extension Arguments {
    /// Whether standard input is the body, if there is one: where a method that has a body, or `--json`, asks for one that nothing else is.
    /// Not for a bare URL, as in a loop of a shell whose lines are on standard input.
    var mayReadInput: Bool {
        guard body == nil, !options.ignoreStdin, !options.form, !options.multipart, !items.contains(where: \.isField) else { return false }
        guard let method else { return options.json }
        return !["GET", "HEAD", "DELETE", "OPTIONS", "TRACE"].contains(method)
    }
}
