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

#if canImport(Darwin)
/// Decodes bytes; `nil` if they are invalid in the encoding. Foundation knows all of them here, by the same numbers.
func decoded(_ bytes: Data, in encoding: String.Encoding, named name: String) -> String? {
    String(data: bytes, encoding: encoding)
}
#else
/// Decodes bytes with the system's converter of a name, or with Foundation's where the system lacks it; `nil` if they are invalid in the
/// encoding.
func decoded(_ bytes: Data, in encoding: String.Encoding, named name: String) -> String? {
    let converter = iconv_open("UTF-8", name)
    guard converter != iconv_t(bitPattern: -1) else { return String(data: bytes, encoding: encoding) }
    defer { _ = iconv_close(converter) }
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count + bytes.count / 2)
    let isComplete = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer in
        bytes.withUnsafeBytes { source in
            var input = UnsafeMutablePointer(mutating: source.bindMemory(to: CChar.self).baseAddress)
            var inputLeft = source.count
            var isFlushing = false
            while true {
                var (output, outputLeft) = (buffer.baseAddress, buffer.count)
                // The last call, without input, writes what a stateful converter has kept.
                let result =
                    isFlushing
                    ? iconv(converter, nil, nil, &output, &outputLeft) : iconv(converter, &input, &inputLeft, &output, &outputLeft)
                let error = result == -1 ? errno : 0
                text.append(contentsOf: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer).dropLast(outputLeft)))
                // With a full buffer of output there was progress. Otherwise a sequence is invalid (EILSEQ) or incomplete (EINVAL).
                guard error == 0 || error == E2BIG && outputLeft < buffer.count else { return false }
                if error == 0, isFlushing { return true }
                isFlushing = isFlushing || error == 0
            }
        }
    }
    return isComplete ? String(validating: text, as: UTF8.self) : nil
}
#endif

/// Writes a file's bytes to the disk, without what of its status they don't need.
func fsyncData(_ descriptor: Int32) -> Int32 {
    #if os(Linux)
    fdatasync(descriptor)
    #else
    fsync(descriptor)
    #endif
}

/// The value of `UTIME_OMIT` (POSIX, futimens), a macro that is not imported.
let omittedTime: Int = {
    #if canImport(Darwin)
    -2
    #else
    (1 << 30) - 2
    #endif
}()

extension stat {
    /// The time of the last change of the file's contents.
    package var modificationTime: timespec {
        #if canImport(Darwin)
        st_mtimespec
        #else
        st_mtim
        #endif
    }

    /// The time of the last change of the file's contents or attributes, which no program can set.
    package var changeTime: timespec {
        #if canImport(Darwin)
        st_ctimespec
        #else
        st_ctim
        #endif
    }
}
