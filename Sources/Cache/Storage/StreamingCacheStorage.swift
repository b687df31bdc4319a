// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A store that takes and gives bodies in pieces, so that no large one is in memory as a whole.
///
/// A ``ResponseCache`` uses it for bodies of more than 64 KiB, while they are received and delivered.
public protocol StreamingCacheStorage: CacheStorage {
    /// Begins to write an entry, which is not found before it is committed.
    ///
    /// - Throws: what ``CacheStorage/store(_:for:)`` throws.
    func makeWriter(for key: CacheKey, metadata: Data) throws -> any CacheEntryWriter
    /// Opens the body of the entry for a key and marks the entry as used; `nil` if there is none, or only a damaged one. What is opened
    /// stays readable and unchanged although the entry is replaced or removed.
    func openBody(for key: CacheKey) throws -> (any CacheBodyReader)?
}

/// Writes an entry in pieces. Used by one thread at a time; one that is released without a commit leaves nothing.
public protocol CacheEntryWriter: AnyObject, Sendable {
    /// Appends bytes to the body; may block on disk I/O.
    ///
    /// - Throws: file system errors, and ``CacheStorageError/entryTooLarge(size:capacity:)``; the entry can't be committed after that.
    func append(_ bytes: UnsafeRawBufferPointer) throws
    /// Puts the entry in the place of the previous one, atomically; called once, after the last piece.
    func commit() throws
}

/// Reads a body in pieces. Thread-safe.
public protocol CacheBodyReader: AnyObject, Sendable {
    /// The length of the body in bytes.
    var length: Int64 { get }
    /// Reads bytes of the body; fewer than wanted only at its end.
    func read(at offset: Int64, count: Int) throws -> Data
}

/// Reads a body that is in a file, from which it may be copied without passing through memory.
package protocol FileBodyReader: CacheBodyReader {
    /// Calls a closure with the open file, which it must not change, and the offset of the body in it.
    func withFile<Value>(_ body: (_ descriptor: Int32, _ offset: Int64) throws -> Value) rethrows -> Value
}
