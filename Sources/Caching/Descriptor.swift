// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// An open file, closed with its last reference.
final class Descriptor {
    private let number: Int32

    /// Opens what is no link, and does not wait for the other end of a pipe; `nil` with the reason in `errno`.
    ///
    /// What is made is for its owner alone.
    init?(_ path: String, _ flags: Int32) {
        let number = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        if number < 0 { return nil }
        self.number = number
    }

    deinit {
        // Not again after EINTR: the number may be another file's by then.
        _ = close(number)
    }

    /// What the system knows of the file; `nil` if it is no plain one.
    var status: stat? {
        var status = stat()
        return fstat(number, &status) == 0 && status.st_mode & S_IFMT == S_IFREG ? status : nil
    }

    /// Reads as many bytes; fewer at the file's end.
    ///
    /// - Throws: the system's number of what went wrong.
    func read(_ count: Int) throws(SystemError) -> Data {
        guard count > 0 else { return Data() }
        guard let memory = malloc(count) else { throw SystemError(code: ENOMEM) }
        var filled = 0
        while filled < count {
            let length = systemRead(number, memory + filled, count - filled)
            if length < 0, errno == EINTR { continue }
            guard length >= 0 else {
                let code = errno
                free(memory)
                throw SystemError(code: code)
            }
            if length == 0 { break }
            filled += length
        }
        return Data(bytesNoCopy: memory, count: filled, deallocator: .free)
    }

    /// Writes all bytes.
    ///
    /// - Throws: the system's number of what went wrong.
    func write(_ data: Data) throws(SystemError) {
        var (written, code) = (0, Int32(0))
        data.withUnsafeBytes { bytes in
            while written < bytes.count {
                let length = systemWrite(number, bytes.baseAddress.map { $0 + written }, bytes.count - written)
                if length < 0, errno == EINTR { continue }
                guard length > 0 else {
                    code = length < 0 ? errno : ENOSPC
                    return
                }
                written += length
            }
        }
        if code != 0 { throw SystemError(code: code) }
    }

    /// Goes to a place in the file.
    func seek(to offset: Int64) {
        _ = lseek(number, off_t(offset), SEEK_SET)
    }

    /// Makes the file empty.
    func truncate() {
        _ = ftruncate(number, 0)
    }

    /// Whether nobody else has the file locked; it is ours until it is closed.
    func lock() -> Bool { flock(number, LOCK_EX | LOCK_NB) == 0 }

    /// Sets when the file was used last; the time at which it was read stays.
    func setUsed(at time: timespec) {
        var times = [timespec(tv_sec: 0, tv_nsec: omittedTime), time]
        _ = futimens(number, &times)
    }
}

/// What the system says about a call that has failed.
struct SystemError: Error {
    let code: Int32
}

private func systemRead(_ descriptor: Int32, _ buffer: UnsafeMutableRawPointer, _ count: Int) -> Int { read(descriptor, buffer, count) }

private func systemWrite(_ descriptor: Int32, _ buffer: UnsafeRawPointer?, _ count: Int) -> Int { write(descriptor, buffer, count) }
