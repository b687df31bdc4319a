// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// The file of an upload as it was when the upload began.
struct UploadedFile: Sendable {
    /// What distinguishes a version of a file.
    struct Identity: Codable, Equatable, Sendable {
        let length: Int64
        let modifiedSeconds: Int64
        let modifiedNanoseconds: Int64
        let inode: UInt64
        /// Hexadecimal; `nil` unless it was asked for.
        var sha256: String?

        /// Whether this is the version of a record: by the content where both have a digest.
        func isSame(as recorded: Identity) -> Bool {
            guard let sha256 else { return withoutDigest == recorded.withoutDigest }
            return length == recorded.length && sha256 == recorded.sha256
        }

        var withoutDigest: Identity {
            var identity = self
            identity.sha256 = nil
            return identity
        }
    }

    let url: URL
    let identity: Identity
    /// The digest of all of it; `nil` unless it was asked for.
    let digest: ContentDigest?
    var length: Int64 { identity.length }

    /// Reads the status of a file.
    ///
    /// - Throws: ``ResumableUploadError/Kind/notAFile``, `CocoaError`.
    init(_ url: URL) throws {
        self.url = url
        identity = try Self.identity(of: url)
        digest = nil
    }

    /// Creates a file as it is known, without reading anything of it.
    init(_ url: URL, _ identity: Identity, _ digest: ContentDigest? = nil) {
        (self.url, self.identity, self.digest) = (url, identity, digest)
    }

    private static func identity(of url: URL) throws -> Identity {
        var status = stat()
        guard stat(url.path, &status) == 0 else { throw FileError.reading(url.path, errno) }
        guard status.isRegularFile else { throw ResumableUploadError.file(.notAFile, url, "only a regular file can be uploaded") }
        let modified = status.modificationTime
        return Identity(
            length: Int64(status.st_size), modifiedSeconds: Int64(modified.tv_sec), modifiedNanoseconds: Int64(modified.tv_nsec),
            inode: UInt64(status.st_ino))
    }

    /// Throws if the file is not what it was.
    func check() throws {
        guard try Self.identity(of: url) == identity.withoutDigest else {
            throw ResumableUploadError.file(.fileChanged, url, "the file changed while it was uploaded")
        }
    }

    /// Returns the file with its digest, for which it is read.
    func withDigest() async throws -> UploadedFile {
        let bytes = try await digest(.sha256, 0..<length)
        var identity = identity
        identity.sha256 = bytes.hexDigits
        return UploadedFile(url, identity, ContentDigest(sha256: bytes))
    }

    /// The digest algorithms of tus's `Upload-Checksum` that are supported, the preferred one first.
    enum Algorithm: String, CaseIterable, Sendable {
        case sha256, sha1
    }

    /// Returns the digest of a range, read in pieces.
    func digest(_ algorithm: Algorithm, _ range: Range<Int64>) async throws -> [UInt8] {
        let path = url.path
        return try await onBlockingQueue { isCancelled in
            guard let file = Descriptor.open(path, O_RDONLY | O_NONBLOCK) else { throw FileError.reading(path, errno) }
            var sha1 = SHA1()
            var sha256 = LargeDigest<UInt32>()
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
            defer { buffer.deallocate() }
            var position = range.lowerBound
            while position < range.upperBound {
                guard !isCancelled() else { throw CancellationError() }
                let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(min(Int64(buffer.count), range.upperBound - position))])
                let count: Int
                do throws(SystemError) { count = try file.read(into: piece, at: position) } catch {
                    throw FileError.reading(path, error.code)
                }
                guard count > 0 else { throw FileError.reading(path, ENODATA) }
                let bytes = UnsafeRawBufferPointer(rebasing: piece[..<count])
                if algorithm == .sha1 { sha1.update(bytes) } else { sha256.update(bytes) }
                position += Int64(count)
            }
            return algorithm == .sha1 ? sha1.digest() : sha256.finish()
        }
    }
}
