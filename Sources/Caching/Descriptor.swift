// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// An open file, closed when the last reference is released.
final class Descriptor {
    /// The number of the open file; valid as long as this object.
    let number: Int32

    /// Opens a file without following links or waiting for the other end of a pipe; `nil` on failure, with the reason in `errno`.
    ///
    /// A created file is accessible to its owner only.
    init?(_ path: String, _ flags: Int32) {
        let number = PrivateFile.open(path, flags)
        if number < 0 { return nil }
        self.number = number
    }

    deinit {
        // Not retried after EINTR, because the number may belong to another file by then.
        _ = close(number)
    }

    /// The status of the file; `nil` if it is not a regular file.
    var status: stat? {
        var status = stat()
        return fstat(number, &status) == 0 && status.st_mode & S_IFMT == S_IFREG ? status : nil
    }

    /// Reads up to `count` bytes; fewer only at the end of the file.
    ///
    /// - Throws: the system's error code.
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

    /// Reads up to `count` bytes at an offset, without a change of the position; fewer only at the end of the file.
    ///
    /// - Throws: the system's error code.
    func read(_ count: Int, at offset: Int64) throws(SystemError) -> Data {
        guard count > 0 else { return Data() }
        guard let memory = malloc(count) else { throw SystemError(code: ENOMEM) }
        do throws(SystemError) {
            let filled = try read(into: UnsafeMutableRawBufferPointer(start: memory, count: count), at: offset)
            return Data(bytesNoCopy: memory, count: filled, deallocator: .free)
        } catch {
            free(memory)
            throw error
        }
    }

    /// Reads up to `count` bytes at an offset, of which the first are known; fewer only at the end of the file.
    ///
    /// - Throws: the system's error code.
    func read(_ count: Int, at offset: Int64, beginningWith known: Slice<UnsafeRawBufferPointer>) throws(SystemError) -> Data {
        if known.count >= count { return Data(copying: known.prefix(count)) }
        guard let memory = malloc(count) else { throw SystemError(code: ENOMEM) }
        UnsafeMutableRawBufferPointer(start: memory, count: known.count).copyMemory(from: UnsafeRawBufferPointer(rebasing: known))
        do throws(SystemError) {
            let rest = UnsafeMutableRawBufferPointer(start: memory + known.count, count: count - known.count)
            let filled = try read(into: rest, at: offset + Int64(known.count))
            return Data(bytesNoCopy: memory, count: known.count + filled, deallocator: .free)
        } catch {
            free(memory)
            throw error
        }
    }

    /// Fills a buffer with bytes at an offset, and returns their number: fewer only at the end of the file.
    ///
    /// - Throws: the system's error code.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemError) -> Int {
        var filled = 0
        while filled < buffer.count {
            let length = pread(number, buffer.baseAddress.map { $0 + filled }, buffer.count - filled, off_t(offset) + off_t(filled))
            if length < 0, errno == EINTR { continue }
            guard length >= 0 else { throw SystemError(code: errno) }
            if length == 0 { break }
            filled += length
        }
        return filled
    }

    /// Writes all bytes.
    ///
    /// - Throws: the system's error code.
    func write(_ data: Data) throws(SystemError) {
        var failure: SystemError?
        data.withUnsafeBytes { bytes in
            do throws(SystemError) { try write(bytes) } catch { failure = error }
        }
        if let failure { throw failure }
    }

    /// Writes all bytes.
    ///
    /// - Throws: the system's error code.
    func write(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
        var written = 0
        while written < bytes.count {
            let length = systemWrite(number, bytes.baseAddress.map { $0 + written }, bytes.count - written)
            if length < 0, errno == EINTR { continue }
            guard length > 0 else { throw SystemError(code: length < 0 ? errno : ENOSPC) }
            written += length
        }
    }

    /// Writes all bytes at an offset, without a change of the position.
    ///
    /// - Throws: the system's error code; a part may have been written.
    func write(_ data: Data, at offset: Int64) throws(SystemError) {
        var written = 0
        while written < data.count {
            let length = data.withUnsafeBytes { bytes in
                pwrite(number, bytes.baseAddress.map { $0 + written }, bytes.count - written, off_t(offset) + off_t(written))
            }
            if length < 0, errno == EINTR { continue }
            guard length > 0 else { throw SystemError(code: length < 0 ? errno : ENOSPC) }
            written += length
        }
    }

    /// Moves to an offset in the file.
    func seek(to offset: Int64) {
        _ = lseek(number, off_t(offset), SEEK_SET)
    }

    /// Truncates the file to a length in bytes; returns whether that succeeded.
    @discardableResult
    func truncate(to length: Int64 = 0) -> Bool { ftruncate(number, off_t(length)) == 0 }

    /// Locks the file exclusively until it is closed. Returns false without waiting if it is locked already.
    func lock() -> Bool { flock(number, LOCK_EX | LOCK_NB) == 0 }

    /// Sets the time of modification, which records the last use; the access time is kept.
    func setUsed(at time: timespec) {
        var times = [timespec(tv_sec: 0, tv_nsec: omittedTime), time]
        _ = futimens(number, &times)
    }
}

/// The error code of a failed system call.
struct SystemError: Error {
    let code: Int32
}

private func systemRead(_ descriptor: Int32, _ buffer: UnsafeMutableRawPointer, _ count: Int) -> Int { read(descriptor, buffer, count) }

private func systemWrite(_ descriptor: Int32, _ buffer: UnsafeRawPointer?, _ count: Int) -> Int { write(descriptor, buffer, count) }
