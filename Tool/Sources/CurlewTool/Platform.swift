// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Platform differences.
enum Platform {
    /// Limits malloc to two arenas shared by all threads: glibc reserves 64 MiB of address space for each thread's own arena, which soon
    /// exhausts a process whose address space is limited (`ulimit -v`).
    static func shareHeaps() {
        #if canImport(Glibc)
        // malloc.h, which declares mallopt and M_ARENA_MAX, is not in the C library's module.
        guard let address = dlsym(nil, "mallopt") else { return }
        typealias SetOption = @convention(c) (_ name: Int32, _ value: Int32) -> Int32
        _ = unsafeBitCast(address, to: SetOption.self)(-8, 2)
        #endif
    }
}
