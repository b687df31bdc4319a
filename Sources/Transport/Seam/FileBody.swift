// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Dispatch

/// A body in a regular file, or a slice of one, read while it is sent and never entirely in memory.
///
/// The file is opened off the transport's thread when the transfer begins, and must keep the length that it had when this body was created:
/// one that has grown or shrunk by the time at which its last bytes are read fails the transfer with
/// ``TransferFailure/Kind/requestBody``. A file whose length is reported as 0 although it has bytes, as those of `/proc`, is read to its end
/// and sent chunked.
package final class FileBody: BodySource {
    private struct State {
        var file: Descriptor?
        /// Whether a transfer reads the body; a file that is opened later than that is closed again.
        var isInUse = false
        var failure: (any Error)?
        var offset: Int64
        var onReadable: (@Sendable () -> Void)?
    }

    /// The size of a memory page, or a divisor of it on systems with larger ones.
    private static let pageSize = 4096

    package let path: String
    /// Where the body begins in the file, in bytes.
    package let start: Int64
    /// Where it ends; `nil` for the end of a file of unknown length.
    private let end: Int64?
    /// The length of the file; `nil` if the system does not know it.
    package let fileSize: Int64?
    private let state: Lock<State>

    /// Creates a body from a file.
    ///
    /// - Throws: `CocoaError.fileReadNoSuchFile`, `.fileReadNoPermission` or `.fileReadUnknown` with the path in `NSFilePath`, when the
    ///   file doesn't exist, can't be read, or is not a regular file.
    package convenience init(path: String) throws { try self.init(path: path, offset: 0, length: nil) }

    /// Creates a body from a slice of a file, which must be regular and of known length.
    ///
    /// - Parameters:
    ///   - offset: where it begins, in bytes.
    ///   - length: `nil` for all bytes up to the end of the file.
    /// - Throws: a ``BodyLengthMismatch`` if the file is too short; else as ``init(path:)``.
    package init(path: String, offset: Int64, length: Int64?) throws {
        var status = stat()
        guard stat(path, &status) == 0 else { throw FileError.reading(path, errno) }
        let kind = status.st_mode & S_IFMT
        guard kind == S_IFREG else { throw FileError.reading(path, kind == S_IFDIR ? EISDIR : EINVAL) }
        guard access(path, R_OK) == 0 else { throw FileError.reading(path, errno) }
        self.path = path
        let size = FileLength.known(status, of: path)
        let end = length.map { $0.addingReportingOverflow(offset) }.map { $0.overflow ? .max : $0.partialValue } ?? size
        if offset != 0 || length != nil {
            guard let size, let end, offset >= 0, length ?? 0 >= 0 else { throw FileError.reading(path, EINVAL) }
            let needed = max(offset, end)
            guard needed <= size else { throw BodyLengthMismatch(.fewer, path: path, actual: size, expected: needed) }
        }
        (start, fileSize, self.end) = (offset, size, end)
        state = Lock(State(offset: offset))
    }

    /// The number of bytes when this body was created; `nil` if the system does not know it.
    package var length: Int64? { end.map { $0 - start } }

    /// Opens the file on another thread, because that may block.
    package func prepare(onReadable: @escaping @Sendable () -> Void) {
        state.withLock { $0 = State(isInUse: true, offset: start, onReadable: onReadable) }
        openFile()
    }

    /// Reads the next bytes from the file; reading a regular file doesn't wait for a peer.
    package func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        state.withLock { state in
            if let failure = state.failure { return .failed(failure) }
            let wanted = readSize(for: buffer, at: state.offset)
            guard wanted > 0 else { return .end }
            guard let file = state.file else { return .unavailable }
            do {
                let count = try read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), from: file, at: state.offset)
                state.offset += Int64(count)
                // There is no further read after the last of the announced bytes.
                if count == 0 || state.offset == end { state.file = nil }
                return count == 0 ? .end : .bytes(count)
            } catch {
                state.failure = error
                return .failed(error)
            }
        }
    }

    private func read(into buffer: UnsafeMutableRawBufferPointer, from file: Descriptor, at offset: Int64) throws -> Int {
        let count: Int
        do throws(SystemError) { count = try file.read(into: buffer, at: offset) } catch { throw FileError.reading(path, error.code) }
        // Checked before the last bytes are sent, so that a body with a wrong end is never complete.
        guard let fileSize, count == 0 || offset + Int64(count) == end else { return count }
        var actual = file.status.map { Int64($0.st_size) } ?? fileSize
        // Some files of the kernel end before their size.
        if count == 0, actual == fileSize { actual = offset }
        guard actual == fileSize else {
            throw BodyLengthMismatch(actual < fileSize ? .fewer : .more, path: path, actual: actual, expected: fileSize)
        }
        return count
    }

    /// The number of bytes to read. The first read of a large file is slightly shorter, so that the following ones are page-aligned in the
    /// file and in memory alike.
    ///
    /// libcurl's buffer begins 16 bytes into a page, as all large glibc allocations do. Copying pages to such an address takes the kernel
    /// twice as long on some processors (AMD Zen 3), which is half the cost of an upload.
    private func readSize(for buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int {
        guard let end else { return buffer.count }
        let left = end - offset
        guard left > buffer.count, buffer.count >= 16 * Self.pageSize else { return Int(min(left, Int64(buffer.count))) }
        let wanted = Int(truncatingIfNeeded: offset) &+ buffer.count
        return buffer.count - (wanted &- Int(bitPattern: buffer.baseAddress)) & (Self.pageSize - 1)
    }

    /// Returns the SHA-256 digest of the body as it is in the file now. Blocks.
    func digest() throws -> [UInt8] {
        guard let file = Descriptor.open(path, O_RDONLY) else { throw FileError.reading(path, errno) }
        var digest = LargeDigest<UInt32>()
        var offset = start
        do throws(SystemError) {
            while case let count = Int(min(256 * 1024, end.map { $0 - offset } ?? .max)), count > 0 {
                let piece = try file.read(count, at: offset)
                if piece.isEmpty { break }
                piece.withUnsafeBytes { digest.update($0) }
                offset += Int64(piece.count)
            }
        } catch {
            throw FileError.reading(path, error.code)
        }
        return digest.finish()
    }

    /// Rewinds to the first byte; possible unless reading has failed.
    package func rewind() -> Bool {
        let (canRewind, isClosed) = state.withLock { state in
            state.offset = start
            return (state.failure == nil, state.isInUse && state.file == nil)
        }
        if canRewind, isClosed { openFile() }
        return canRewind
    }

    /// Closes the file.
    package func transferDidComplete() {
        state.withLock { state in
            state.file = nil
            state.isInUse = false
            state.onReadable = nil
        }
    }

    private func openFile() {
        DispatchQueue.global(qos: .utility).async { [self] in
            var file = Descriptor.open(path, O_RDONLY)
            let failure = file == nil ? FileError.reading(path, errno) : nil
            let onReadable = state.withLock { state in
                state.file = state.isInUse ? file : nil
                // Else this thread, were it held up, would keep a file open whose last byte was read meanwhile.
                file = nil
                state.failure = failure
                return state.onReadable
            }
            onReadable?()
        }
    }
}
