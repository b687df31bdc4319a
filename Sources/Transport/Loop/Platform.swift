// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// Calls about sockets that systems spell differently. Waiting for sockets and making threads have files of their own.
package enum SystemSocket {
    /// A new socket that no child process inherits; negative when there is none.
    package static func open(_ family: Int32, _ type: Int32, _ proto: Int32) -> Int32 {
        #if os(Linux)
        // At once: between two calls another thread may fork.
        return socket(family, type | Int32(SOCK_CLOEXEC.rawValue), proto)
        #else
        let descriptor = socket(family, type, proto)
        if descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        return descriptor
        #endif
    }

    /// Whether the peer has closed its sending side, whatever else is there to be read.
    static func hasEnded(_ socket: Int32) -> Bool {
        #if os(Linux)
        let end = Int16(EPOLLRDHUP.rawValue)  // POLLRDHUP by another name, which Swift can see
        #else
        let end = Int16(POLLHUP)
        #endif
        var entry = pollfd(fd: socket, events: end, revents: 0)
        return poll(&entry, 1, 0) > 0 && entry.revents & (end | Int16(POLLHUP) | Int16(POLLERR)) != 0
    }
}
