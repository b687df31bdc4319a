// SPDX-License-Identifier: Apache-2.0

// What differs between platforms is imported here, once.
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

/// In place of a time that is not to be set (POSIX, futimens). A macro that Swift can't see.
let omittedTime: Int = {
    #if canImport(Darwin)
    -2
    #else
    (1 << 30) - 2
    #endif
}()

/// Where a user's caches are; `nil` for a user without a home.
var userCacheDirectory: URL? {
    #if canImport(Darwin)
    FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first
    #else
    XDG.cacheDirectory(in: ProcessInfo.processInfo.environment)
    #endif
}

extension stat {
    /// When the file was changed last.
    var modified: timespec {
        #if canImport(Darwin)
        st_mtimespec
        #else
        st_mtim
        #endif
    }
}
