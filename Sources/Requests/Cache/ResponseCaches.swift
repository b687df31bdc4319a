// SPDX-License-Identifier: Apache-2.0
import CurlewCaching
import CurlewEncoding
import CurlewHTTP
import Dispatch

/// The stores of the directories in which answers are cached, one for each in the whole process.
enum ResponseCaches {
    static let directoryName = "LazyRequestCache"
    /// Where answers are written behind everybody's back, one after the other.
    static let writingQueue = DispatchQueue(label: "curlew.requests.cache", qos: .background)

    private static let storages = Lock<[String: DiskCacheStorage]>([:])
    /// So many directories are remembered: with a path for each user, there may be any number.
    private static let limit = 32

    /// The store of a directory. A file in the directory's place is removed.
    static func storage(at path: String) -> DiskCacheStorage {
        if let storage = storages.withLock({ $0[path] }) { return storage }
        removeFile(at: path)
        let storage = DiskCacheStorage(directory: URL(fileURLWithPath: path, isDirectory: true))
        return storages.withLock { storages in
            if let other = storages[path] { return other }
            if storages.count >= limit { storages = [:] }
            storages[path] = storage
            return storage
        }
    }

    private static func removeFile(at path: String) {
        let type = try? FileManager.default.attributesOfItem(atPath: path)[.type] as? FileAttributeType
        // Unlike Foundation's way this leaves a directory that another thread has put there in the meantime.
        if type == .typeRegular { unlink(path) }
    }
}
