// SPDX-License-Identifier: Apache-2.0

// The protocol of the stores, and the store in memory.
@_exported import CurlewCache

// Platform differences are isolated in this file.
#if canImport(FoundationEssentials)
@_exported import FoundationEssentials
#else
@_exported import Foundation
#endif

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The value of `UTIME_OMIT` (POSIX, futimens), a macro that is not imported.
let omittedTime: Int = {
    #if canImport(Darwin)
    -2
    #else
    (1 << 30) - 2
    #endif
}()

/// The directory of the user's caches; `nil` for a user without a home.
var userCacheDirectory: URL? {
    #if canImport(Darwin)
    FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first
    #else
    XDG.cacheDirectory(in: ProcessInfo.processInfo.environment)
    #endif
}

extension stat {
    /// The time of the last modification.
    var modified: timespec {
        #if canImport(Darwin)
        st_mtimespec
        #else
        st_mtim
        #endif
    }
}
