// SPDX-License-Identifier: Apache-2.0

// Differences between systems, in one place.
#if Redis
import CurlewCore
import CurlewEncoding
import CurlewHTTP

#if canImport(Glibc)
let streamSocketType = Int32(SOCK_STREAM.rawValue)
let tcpProtocol = Int32(IPPROTO_TCP)
#else
let streamSocketType = SOCK_STREAM
let tcpProtocol = Int32(IPPROTO_TCP)
#endif

/// Names the calling thread, for debuggers.
func nameThisThread(_ name: String) {
    #if canImport(Darwin)
    pthread_setname_np(name)
    #else
    // Foundation's Thread ignores a name while the call that starts the thread has not returned. The kernel keeps 15 bytes.
    let file = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { return }
    _ = write(file, name, min(name.utf8.count, 15))
    _ = close(file)
    #endif
}
#endif
