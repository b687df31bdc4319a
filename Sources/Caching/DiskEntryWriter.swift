// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP

extension DiskCacheStorage: StreamingCacheStorage {
    /// Begins to write an entry into a temporary file, which is removed if the writer is released without a commit.
    public func makeWriter(for key: CacheKey, metadata: Data) throws -> any CacheEntryWriter {
        try DiskEntryWriter(self, key, metadata)
    }

    /// Opens the body of the entry for a key, after its checksum has been verified, and marks the entry as used.
    ///
    /// - Throws: `CocoaError` if the file can't be read.
    public func openBody(for key: CacheKey) throws -> (any CacheBodyReader)? {
        try read(key) { file, head, _ throws(SystemError) in
            let offset = head.fileSize - Int64(head.bodyLength)
            let reader = DiskBodyReader(file, path: files.path(of: key), offset: offset, length: Int64(head.bodyLength))
            guard try reader.hash() == head.bodyHash else { return nil }
            file.setUsed(at: now())
            return reader
        }
    }
}

/// Writes an entry of unknown length: the head, which has that and the checksum, last.
final class DiskEntryWriter: CacheEntryWriter, @unchecked Sendable {  // used by one thread at a time, as the protocol demands
    private let storage: DiskCacheStorage
    private let key: CacheKey
    private let metadata: Data
    private let file: Descriptor
    private let path: String
    private var hash = XXHash64()
    private var length = 0
    private var error: (any Error)?

    fileprivate init(_ storage: DiskCacheStorage, _ key: CacheKey, _ metadata: Data) throws {
        self.storage = storage
        self.key = key
        self.metadata = metadata
        (file, path) = try storage.files.makeTemporaryFile()
        do {
            for part in [Data(count: EntryHead.size), key.bytes, metadata] { try file.write(part) }
        } catch {
            unlink(path)
            throw FileError.writing(path, error.code)
        }
    }

    deinit { unlink(path) }

    func append(_ bytes: UnsafeRawBufferPointer) throws {
        if let error { throw error }
        do {
            length += bytes.count
            let size = Int64(EntryHead.size + key.bytes.count + metadata.count + length)
            guard size <= storage.capacity else { throw CacheStorageError.entryTooLarge(size: size, capacity: storage.capacity) }
            hash.update(bytes)
            do throws(SystemError) { try file.write(bytes) } catch { throw FileError.writing(path, error.code) }
        } catch {
            self.error = error
            throw error
        }
    }

    func commit() throws {
        if let error { throw error }
        guard let head = EntryHead(key, metadata, bodyLength: length, bodyHash: hash.value) else {
            throw CacheStorageError.entryTooLarge(size: Int64(metadata.count), capacity: storage.capacity)
        }
        file.seek(to: 0)
        do throws(SystemError) { try file.write(head.bytes) } catch { throw FileError.writing(path, error.code) }
        file.setUsed(at: storage.now())
        guard try storage.place(path, at: storage.files.path(of: key), size: head.fileSize) else { throw FileError.writing(path, ENOENT) }
    }
}

/// Reads a body from an open file: a replaced or removed entry's file has no name any more, and is unchanged.
final class DiskBodyReader: CacheBodyReader, @unchecked Sendable {  // the descriptor's only mutable state, its position, is not used
    private static let piece = 256 << 10

    let length: Int64
    private let file: Descriptor
    private let path: String
    private let offset: Int64

    fileprivate init(_ file: Descriptor, path: String, offset: Int64, length: Int64) {
        self.file = file
        self.path = path
        self.offset = offset
        self.length = length
    }

    func read(at position: Int64, count: Int) throws -> Data {
        let count = Int(min(Int64(count), max(length - position, 0)))
        do throws(SystemError) {
            let data = try file.read(count, at: offset + position)
            guard data.count == count else { throw SystemError(code: EIO) }
            return data
        } catch {
            throw FileError.reading(path, error.code)
        }
    }

    fileprivate func hash() throws(SystemError) -> UInt64 {
        var hash = XXHash64()
        var position: Int64 = 0
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.piece, alignment: 16)
        defer { buffer.deallocate() }
        while position < length {
            let wanted = Int(min(Int64(Self.piece), length - position))
            let count = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: offset + position)
            guard count > 0 else { break }
            hash.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            position += Int64(count)
        }
        return hash.value
    }
}
