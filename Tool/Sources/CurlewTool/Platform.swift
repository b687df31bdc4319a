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

    /// Begins, on a thread of its own, what libcurl does before its first transfer, also for one without TLS: it has OpenSSL read its
    /// settings and list its algorithms, which takes a tenth of a start. Meanwhile the command line is parsed.
    ///
    /// OpenSSL does this once, and its function may be called by several threads (OPENSSL_init_ssl(3)): libcurl waits for what has begun.
    /// Does nothing where libcurl has another library for TLS, or there can be no more threads.
    static func beginTLS() {
        #if canImport(Glibc)
        guard let function = dlsym(nil, "OPENSSL_init_ssl") else { return }
        var attributes = pthread_attr_t()
        guard pthread_attr_init(&attributes) == 0 else { return }
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        pthread_attr_setstacksize(&attributes, 512 << 10)
        var thread = pthread_t()
        _ = pthread_create(
            &thread, &attributes,
            { function in
                typealias Initialize = @convention(c) (_ options: UInt64, _ settings: UnsafeRawPointer?) -> Int32
                _ = unsafeBitCast(function, to: Initialize.self)(0, nil)
                return nil
            }, function)
        #endif
    }
}
