// SPDX-License-Identifier: Apache-2.0
import CurlewCaching
import CurlewEncoding
import CurlewHTTP
import Dispatch

/// The stores of the cache directories, one per directory in the process.
enum ResponseCaches {
    static let directoryName = "LazyRequestCache"
    /// The serial background queue for asynchronous cache writes.
    static let writingQueue = DispatchQueue(label: "curlew.requests.cache", qos: .background)

    /// By the bytes of their paths: texts are equal if they are canonically equivalent, and directories are not.
    private static let storages = Lock<[[UInt8]: DiskCacheStorage]>([:])
    /// The number of stores remembered; bounds memory if the path varies, for example by user.
    private static let limit = 32

    /// Returns the store of a directory. A file in the directory's place is removed.
    static func storage(at path: String) -> DiskCacheStorage {
        let key = Array(path.utf8)
        if let storage = storages.withLock({ $0[key] }) { return storage }
        removeFile(at: path)
        let storage = DiskCacheStorage(directory: URL(fileURLWithPath: path, isDirectory: true))
        return storages.withLock { storages in
            if let other = storages[key] { return other }
            if storages.count >= limit { storages = [:] }
            storages[key] = storage
            return storage
        }
    }

    private static func removeFile(at path: String) {
        let type = try? FileManager.default.attributesOfItem(atPath: path)[.type] as? FileAttributeType
        // `unlink`, unlike `FileManager`, fails on a directory that another thread has created in the meantime.
        if type == .typeRegular { unlink(path) }
    }
}
