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

/// The directory of the user's caches; `nil` for a user without a home.
var userCacheDirectory: URL? {
    #if canImport(Darwin)
    FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first
    #else
    XDG.cacheDirectory(in: ProcessInfo.processInfo.environment)
    #endif
}

extension timespec {
    /// Nanoseconds since 1970. Wraps around for years that no clock shows.
    var nanoseconds: Int64 { Int64(tv_sec) &* 1_000_000_000 &+ Int64(tv_nsec) }
}
