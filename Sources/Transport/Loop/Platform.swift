// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// Socket calls that differ between systems. Polling and threads have their own files.
package enum SystemSocket {
    /// Opens a close-on-exec socket; negative on failure.
    package static func open(_ family: Int32, _ type: Int32, _ proto: Int32) -> Int32 {
        #if os(Linux)
        // Set atomically: another thread may fork between two calls.
        return socket(family, type | Int32(SOCK_CLOEXEC.rawValue), proto)
        #else
        let descriptor = socket(family, type, proto)
        if descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        return descriptor
        #endif
    }

    /// Ends both directions of a connection; the socket stays open.
    static func end(_ socket: Int32) {
        _ = shutdown(socket, Int32(SHUT_RDWR))
    }

    /// Whether the peer has closed its sending side, even if there are unread bytes.
    static func hasEnded(_ socket: Int32) -> Bool {
        #if os(Linux)
        let end = Int16(EPOLLRDHUP.rawValue)  // the value of POLLRDHUP, which Swift doesn't import
        #else
        let end = Int16(POLLHUP)
        #endif
        var entry = pollfd(fd: socket, events: end, revents: 0)
        return poll(&entry, 1, 0) > 0 && entry.revents & (end | Int16(POLLHUP) | Int16(POLLERR)) != 0
    }
}
