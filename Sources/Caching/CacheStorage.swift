// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// What lies in a cache under one key: a body, and what its owner has to know about it.
public struct CacheEntry: Sendable, Hashable {
    /// What is known about the body, in a form that the store does not look into.
    public var metadata: Data
    /// The body.
    public var body: Data

    /// Makes an entry.
    public init(metadata: Data = Data(), body: Data) {
        self.metadata = metadata
        self.body = body
    }
}

/// Keeps entries under keys, up to a size; what was not used for the longest time goes first.
///
/// A store knows nothing of HTTP, of age or of validity: that is up to who uses it. All members may be called from any thread, and may
/// block while a disk does.
public protocol CacheStorage: Sendable {
    /// The largest size of all entries together, in bytes.
    var capacity: Int64 { get }
    /// The size of all entries together, in bytes, with what the store itself adds to each.
    var size: Int64 { get throws }

    /// The entry under a key, which counts as a use of it; `nil` if there is none, or none that is whole.
    ///
    /// - Throws: when it can't be known, as for want of permission or of descriptors.
    func entry(for key: CacheKey) throws -> CacheEntry?
    /// The metadata under a key, without the body, which is neither read nor checked; no use of the entry.
    func metadata(for key: CacheKey) throws -> Data?
    /// Puts an entry under a key, in place of what is there: others see the old one or the new one, never a part.
    ///
    /// - Throws: ``CacheStorageError/entryTooLarge(size:capacity:)``, when nothing stays under the key; what the file system says, when
    ///   the old entry stays.
    func store(_ entry: CacheEntry, for key: CacheKey) throws
    /// Removes what is under a key, if anything is.
    func removeEntry(for key: CacheKey) throws
    /// Removes all entries.
    func removeAll() throws
}

/// Why a store did not take an entry.
public enum CacheStorageError: Error, Sendable, Hashable {
    /// The entry alone is larger than the store may be; both in bytes.
    case entryTooLarge(size: Int64, capacity: Int64)
}

extension CacheStorageError: CustomStringConvertible {
    /// What is wrong, in a sentence.
    public var description: String {
        switch self {
        case .entryTooLarge(let size, let capacity): "An entry of \(size) bytes does not fit into a cache of \(capacity)."
        }
    }
}
