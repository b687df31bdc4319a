// SPDX-License-Identifier: Apache-2.0
import Curlew

/// What differs between platforms.
enum Platform {
    /// Has all threads share two heaps: glibc reserves 64 MiB of addresses for each thread's own, which a process with a limit of
    /// addresses (`ulimit -v`) soon has not.
    static func shareHeaps() {
        #if canImport(Glibc)
        // malloc.h, with mallopt and M_ARENA_MAX, is not in the module of the C library.
        guard let address = dlsym(nil, "mallopt") else { return }
        typealias SetOption = @convention(c) (_ name: Int32, _ value: Int32) -> Int32
        _ = unsafeBitCast(address, to: SetOption.self)(-8, 2)
        #endif
    }
}
