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

    #if os(Linux)
    /// Whether Unix domain sockets can have names outside of the file system.
    static let hasAbstractNames = true
    #else
    static let hasAbstractNames = false
    #endif

    /// Sets the options of a socket that is about to connect. Returns the name of the first one that the system rejects, with the reason.
    static func configure(_ socket: Int32, family: Int32, isStream: Bool, _ options: SocketOptions) -> String? {
        var rejection: String?
        func set(_ level: Int32, _ option: Int32, _ value: Int, _ name: String) {
            var number = Int32(truncatingIfNeeded: value)
            guard rejection == nil, setsockopt(socket, level, option, &number, socklen_t(MemoryLayout<Int32>.size)) != 0 else { return }
            rejection = "\(name) \(value): \(String(cString: strerror(errno)))"
        }
        func unavailable(_ name: String) { rejection = rejection ?? "\(name): the system has no such option" }
        if let size = options.sendBufferSize { set(SOL_SOCKET, SO_SNDBUF, size, "SO_SNDBUF") }
        if let size = options.receiveBufferSize { set(SOL_SOCKET, SO_RCVBUF, size, "SO_RCVBUF") }
        #if os(Linux)
        if let mark = options.mark { set(SOL_SOCKET, SO_MARK, Int(mark), "SO_MARK") }
        let (tcp, keepIdle) = (Int32(IPPROTO_TCP), TCP_KEEPIDLE)
        let (ip, ipv6) = (Int32(IPPROTO_IP), Int32(IPPROTO_IPV6))
        #else
        if options.priority != nil { unavailable("SO_PRIORITY") }
        if options.mark != nil { unavailable("SO_MARK") }
        let (tcp, keepIdle) = (IPPROTO_TCP, TCP_KEEPALIVE)
        let (ip, ipv6) = (IPPROTO_IP, IPPROTO_IPV6)
        #endif
        let isInternet = family == AF_INET || family == AF_INET6
        if isInternet, let dscp = options.dscp {
            family == AF_INET6 ? set(ipv6, IPV6_TCLASS, dscp << 2, "IPV6_TCLASS") : set(ip, IP_TOS, dscp << 2, "IP_TOS")
        }
        #if os(Linux)
        // After the code point, by which Linux changes it.
        if let priority = options.priority { set(SOL_SOCKET, SO_PRIORITY, priority, "SO_PRIORITY") }
        #endif
        if isInternet, isStream, let keepAlive = options.keepAlive {
            set(SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE")
            set(tcp, keepIdle, Int(keepAlive.idle.components.seconds), "TCP_KEEPIDLE")
            set(tcp, TCP_KEEPINTVL, Int(keepAlive.interval.components.seconds), "TCP_KEEPINTVL")
            if let count = keepAlive.count { set(tcp, TCP_KEEPCNT, count, "TCP_KEEPCNT") }
        }
        return rejection
    }

    /// Whether a socket is one of datagrams, which QUIC uses.
    static func isDatagram(_ socket: Int32) -> Bool {
        var type: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == datagrams
    }

    /// The type of QUIC's sockets.
    static let datagrams: Int32 = 2

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
