// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP

extension DiskCacheStorage: StreamingCacheStorage {
    /// Begins to write an entry into a temporary file, which is removed if the writer is released without a commit.
    public func makeWriter(for key: CacheKey, metadata: Data) throws -> any CacheEntryWriter {
        try DiskEntryWriter(self, key, metadata)
    }

    /// Opens the body of the entry for a key, and marks the entry as used. Its checksum is verified when
    /// this store opens it for the first time, and again if the file was changed since.
    ///
    /// - Throws: `CocoaError` if the file can't be read.
    public func openBody(for key: CacheKey) throws -> (any CacheBodyReader)? {
        try read(key) { opened throws(SystemError) in
            let reader = DiskBodyReader(
                opened.file, path: opened.path, offset: opened.head.bodyOffset, length: Int64(opened.head.bodyLength))
            return try isVerified(opened) { () throws(SystemError) in try reader.hash() } ? reader : nil
        }
    }
}

/// Writes an entry of unknown length: the head, which has that and the checksum, last.
final class DiskEntryWriter: CacheEntryWriter, @unchecked Sendable {  // used by one thread at a time, as the protocol demands
    /// The length of a first piece from which on the body is aligned, in bytes.
    private static let alignedFrom = 64 << 10

    private let storage: DiskCacheStorage
    private let key: CacheKey
    private let metadata: Data
    private let file: Descriptor
    private let path: String
    private var hash = XXHash64()
    private var length = 0
    /// Whether the body is aligned: if its first piece is large.
    private var isAligned = false
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
            if length == 0, bytes.count >= Self.alignedFrom { try align() }
            length += bytes.count
            let size = offset(isAligned: isAligned) + Int64(length)
            guard size <= storage.capacity else { throw CacheStorageError.entryTooLarge(size: size, capacity: storage.capacity) }
            hash.update(bytes)
            do throws(SystemError) { try file.write(bytes) } catch { throw FileError.writing(path, error.code) }
        } catch {
            self.error = error
            throw error
        }
    }

    private func align() throws {
        isAligned = true
        let (end, start) = (offset(isAligned: false), offset(isAligned: true))
        do throws(SystemError) { try file.write(Data(count: Int(start - end))) } catch { throw FileError.writing(path, error.code) }
    }

    private func offset(isAligned: Bool) -> Int64 { EntryHead.bodyOffset(key.bytes.count, metadata.count, isAligned: isAligned) }

    func commit() throws {
        if let error { throw error }
        guard let head = EntryHead(key, metadata, bodyLength: length, bodyHash: hash.value, isAligned: isAligned) else {
            throw CacheStorageError.entryTooLarge(size: Int64(metadata.count), capacity: storage.capacity)
        }
        file.seek(to: 0)
        do throws(SystemError) { try file.write(head.bytes) } catch { throw FileError.writing(path, error.code) }
        file.setModified(at: storage.now())
        guard try storage.place(path, for: key, size: head.fileSize) else { throw FileError.writing(path, ENOENT) }
    }
}

/// Reads a body from an open file: a replaced or removed entry's file has no name any more, and is unchanged.
final class DiskBodyReader: FileBodyReader {
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

    func withFile<Value>(_ body: (_ descriptor: Int32, _ offset: Int64) throws -> Value) rethrows -> Value {
        try withExtendedLifetime(file) { try body(file.number, offset) }
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
