// SPDX-License-Identifier: Apache-2.0

/// An open file, closed when the last reference is released.
///
/// Reads and writes are repeated after EINTR, and until all bytes are transferred.
package final class Descriptor: @unchecked Sendable {  // only `close()` changes the number, which is the last call
    /// The number of the open file; −1 after ``close()``. Valid as long as this object, which ends with its last use: where only the number is
    /// used from then on, it needs `withExtendedLifetime`.
    package private(set) var number: Int32

    /// Takes over an open file.
    package init(_ number: Int32) {
        self.number = number
    }

    /// Opens a file, which programs that this process starts don't inherit; `nil` on failure, with the reason in `errno`.
    ///
    /// - Parameter mode: the permissions of a created file, as far as the process's umask allows them.
    package static func open(_ path: String, _ flags: Int32, mode: mode_t = 0o600) -> Descriptor? {
        let number = systemOpen(path, flags | O_CLOEXEC, mode)
        return number < 0 ? nil : Descriptor(number)
    }

    deinit {
        try? close()
    }

    /// Closes the file, which may report failed writes. Further calls do nothing.
    package func close() throws(SystemError) {
        guard number >= 0 else { return }
        defer { number = -1 }
        // Not repeated after EINTR, because the number may belong to another file by then.
        guard systemClose(number) == 0 else { throw SystemError() }
    }

    /// Returns another descriptor of the same open file, with the same position and lock; `nil` on failure, with the reason in `errno`.
    package func duplicate() -> Descriptor? {
        let copy = fcntl(number, F_DUPFD_CLOEXEC, 0)
        return copy < 0 ? nil : Descriptor(copy)
    }

    /// The status of the file; `nil` on failure, with the reason in `errno`.
    package var status: stat? {
        var status = stat()
        return fstat(number, &status) == 0 ? status : nil
    }

    /// The status of the file; `nil` if it is not a regular file.
    package var regularStatus: stat? { status.flatMap { $0.isRegularFile ? $0 : nil } }

    // MARK: Reading

    /// Reads up to `count` bytes; fewer only at the end of the file.
    package func read(_ count: Int) throws(SystemError) -> Data {
        try Self.data(count) { (buffer) throws(SystemError) in try read(into: buffer) }
    }

    /// Reads up to `count` bytes at an offset, without a change of the position; fewer only at the end of the file.
    package func read(_ count: Int, at offset: Int64) throws(SystemError) -> Data {
        try Self.data(count) { (buffer) throws(SystemError) in try read(into: buffer, at: offset) }
    }

    /// Reads up to `count` bytes at an offset, of which the first are known; fewer only at the end of the file.
    package func read(_ count: Int, at offset: Int64, beginningWith known: Slice<UnsafeRawBufferPointer>) throws(SystemError) -> Data {
        try Self.data(count) { (buffer) throws(SystemError) in
            let known = UnsafeRawBufferPointer(rebasing: known.prefix(count))
            buffer.copyMemory(from: known)
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[known.count...])
            return try known.count + read(into: rest, at: offset + Int64(known.count))
        }
    }

    /// Fills a buffer, and returns the number of bytes: fewer than there is room for only at the end of the file.
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
        try Self.repeated(buffer.count) { done in systemRead(number, buffer.baseAddress.map { $0 + done }, buffer.count - done) }
    }

    /// Fills a buffer with bytes at an offset, without a change of the position, and returns their number: fewer than there is room for only
    /// at the end of the file.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemError) -> Int {
        try Self.read(into: buffer, at: offset, from: number)
    }

    /// Fills a buffer like ``read(into:at:)``, from a descriptor that belongs to others.
    package static func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, from number: Int32) throws(SystemError) -> Int {
        try repeated(buffer.count) { done in
            pread(number, buffer.baseAddress.map { $0 + done }, buffer.count - done, off_t(offset) + off_t(done))
        }
    }

    // MARK: Writing

    /// Writes all bytes. After an error, a part may have been written.
    package func write(_ bytes: some ContiguousBytes) throws(SystemError) {
        try Self.write(bytes, to: number)
    }

    /// Writes all bytes to a descriptor that belongs to others, such as standard error.
    package static func write(_ bytes: some ContiguousBytes, to number: Int32) throws(SystemError) {
        try writeAll(bytes) { bytes, done in systemWrite(number, bytes.baseAddress.map { $0 + done }, bytes.count - done) }
    }

    /// Writes all bytes at an offset, without a change of the position. After an error, a part may have been written.
    package func write(_ bytes: some ContiguousBytes, at offset: Int64) throws(SystemError) {
        try Self.writeAll(bytes) { bytes, done in
            pwrite(number, bytes.baseAddress.map { $0 + done }, bytes.count - done, off_t(offset) + off_t(done))
        }
    }

    /// Has the bytes and the status written to the disk; returns whether that succeeded.
    package func sync() -> Bool { fsync(number) == 0 }

    /// Has the bytes written to the disk; returns whether that succeeded.
    package func syncData() -> Bool { fsyncData(number) == 0 }

    /// Moves to an offset in the file, and returns it; −1 on failure.
    @discardableResult
    package func seek(to offset: Int64, from origin: Int32 = SEEK_SET) -> Int64 { Int64(lseek(number, off_t(offset), origin)) }

    /// Truncates the file to a length in bytes, or extends it; returns whether that succeeded.
    @discardableResult
    package func truncate(to length: Int64 = 0) -> Bool { ftruncate(number, off_t(length)) == 0 }

    /// Locks the file exclusively until it is closed. Returns false without waiting if it is locked already.
    package func lock() -> Bool { flock(number, LOCK_EX | LOCK_NB) == 0 }

    /// Sets the time of modification, and keeps that of access; returns whether that succeeded.
    @discardableResult
    package func setModified(at time: timespec) -> Bool { futimens(number, [timespec(tv_sec: 0, tv_nsec: omittedTime), time]) == 0 }

    // MARK: Loops

    private static func data(
        _ count: Int, _ fill: (UnsafeMutableRawBufferPointer) throws(SystemError) -> Int
    ) throws(SystemError) -> Data {
        guard count > 0 else { return Data() }
        guard let memory = malloc(count) else { throw SystemError(code: ENOMEM) }
        do throws(SystemError) {
            let filled = try fill(UnsafeMutableRawBufferPointer(start: memory, count: count))
            return Data(bytesNoCopy: memory, count: filled, deallocator: .free)
        } catch {
            free(memory)
            throw error
        }
    }

    private static func writeAll(
        _ bytes: some ContiguousBytes, _ call: (_ bytes: UnsafeRawBufferPointer, _ done: Int) -> Int
    ) throws(SystemError) {
        let failure: SystemError? = bytes.withUnsafeBytes { bytes in
            do throws(SystemError) {
                let count = try repeated(bytes.count) { call(bytes, $0) }
                return count < bytes.count ? SystemError(code: ENOSPC) : nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
    }

    /// Repeats a call that transfers a part of `count` bytes until all are transferred or it returns 0, and returns their number.
    private static func repeated(_ count: Int, _ call: (_ done: Int) -> Int) throws(SystemError) -> Int {
        var done = 0
        while done < count {
            let length = call(done)
            if length < 0, errno == EINTR { continue }
            guard length >= 0 else { throw SystemError() }
            if length == 0 { break }
            done += length
        }
        return done
    }
}

/// The error code of a failed system call.
package struct SystemError: Error, Equatable {
    package let code: Int32

    /// The error of the call that has just failed, by default.
    package init(code: Int32 = errno) { self.code = code }
}

extension stat {
    package var isRegularFile: Bool { st_mode & S_IFMT == S_IFREG }
}

private func systemOpen(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 { open(path, flags, mode) }
private func systemClose(_ number: Int32) -> Int32 { close(number) }
private func systemRead(_ number: Int32, _ buffer: UnsafeMutableRawPointer?, _ count: Int) -> Int { read(number, buffer, count) }
private func systemWrite(_ number: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int { write(number, bytes, count) }
