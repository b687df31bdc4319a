// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Identifies the time since the system has started; `nil` if the system does not report it. What was written before a crash of the system
/// need not have reached the disk.
var systemStart: String? {
    #if os(Linux)
    FileManager.default.contents(atPath: "/proc/sys/kernel/random/boot_id").map {
        String(decoding: $0, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }
    #else
    nil
    #endif
}
