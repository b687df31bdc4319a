// SPDX-License-Identifier: Apache-2.0

// Platform-specific imports, in one place. The layers below Core need only FoundationEssentials and the C library: FoundationNetworking,
// which costs a process 18 MiB, is first imported in Sources/Encoding/Platform.swift.
#if canImport(FoundationEssentials)
@_exported import FoundationEssentials
#else
@_exported import Foundation
#endif

#if canImport(Glibc)
@_exported import Glibc
#elseif canImport(Musl)
@_exported import Musl
#elseif canImport(Darwin)
@_exported import Darwin
#endif

/// The operating system's name for `User-Agent`.
package var systemName: String {
    #if os(Linux)
    "Linux"
    #elseif os(macOS)
    "macOS"
    #else
    "Unknown"
    #endif
}

extension stat {
    /// The time of the last change of the file's contents.
    package var modificationTime: timespec {
        #if canImport(Darwin)
        st_mtimespec
        #else
        st_mtim
        #endif
    }
}
