// SPDX-License-Identifier: Apache-2.0

// Differences between systems, in one place.
import CurlewEncoding
import CurlewHTTP

#if canImport(Glibc)
let streamSocketType = Int32(SOCK_STREAM.rawValue)
#else
let streamSocketType = SOCK_STREAM
#endif

/// Sends bytes without a signal if the peer has closed the connection (send(2)).
func sendQuietly(_ socket: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    #if canImport(Darwin)
    var on: Int32 = 1
    setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &on, socklen_t(MemoryLayout<Int32>.size))
    return send(socket, bytes.baseAddress, bytes.count, 0)
    #else
    return send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
    #endif
}

/// Creates a socket (socket(2)), where a property has the same name.
func systemSocket(_ domain: Int32, _ type: Int32, _ number: Int32) -> Int32 { socket(domain, type, number) }
