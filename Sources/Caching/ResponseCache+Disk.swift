// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension ResponseCache {
    /// A cache of HTTP responses on disk, which other processes may use at the same time; see ``DiskCacheStorage``.
    ///
    /// Needs `import CurlewCaching`.
    ///
    /// Nothing is read or written before the first request.
    ///
    /// - Parameters:
    ///   - directory: need not exist yet; by default `http` in the program's caches directory
    ///     (``DiskCacheStorage/defaultDirectory(named:program:)``).
    ///   - capacity: in bytes; 256 MiB by default.
    public static func disk(
        directory: URL = DiskCacheStorage.defaultDirectory(named: "http"), capacity: Int64 = 256 << 20
    ) -> ResponseCache {
        ResponseCache(storage: DiskCacheStorage(directory: directory, capacity: capacity))
    }
}
