// SPDX-License-Identifier: Apache-2.0

// All differences between Linux and Darwin in this target are isolated in this file.
@_exported import Foundation

#if canImport(Glibc)
@_exported import Glibc
#elseif canImport(Musl)
@_exported import Musl
#elseif canImport(Darwin)
@_exported import Darwin
#endif

package enum Platform {
    #if canImport(Darwin)
    package typealias ThreadID = pthread_t?
    package static let lingerOption = SO_LINGER_SEC
    /// `poll` always reports POLLHUP, and Darwin has no POLLRDHUP.
    package static let hangUpEvents: Int16 = 0
    #else
    package typealias ThreadID = pthread_t
    package static let lingerOption = SO_LINGER
    package static let hangUpEvents: Int16 = 0x2000  // POLLRDHUP, a macro under _GNU_SOURCE that is not imported
    #endif

    package static let anyHangUp = hangUpEvents | Int16(POLLHUP) | Int16(POLLERR) | Int16(POLLNVAL)

    /// Creates a TCP socket that child processes do not inherit.
    package static func makeStreamSocket() -> Int32 {
        #if canImport(Glibc)
        return closedOnExec(socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
        #else
        return closedOnExec(socket(AF_INET, SOCK_STREAM, 0))
        #endif
    }

    /// Creates a stream socket of the Unix domain that child processes do not inherit.
    package static func makeUnixSocket() -> Int32 {
        #if canImport(Glibc)
        return closedOnExec(socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0))
        #else
        return closedOnExec(socket(AF_UNIX, SOCK_STREAM, 0))
        #endif
    }

    /// Calls `listen(2)`, under a name that is usable in a type with a function `listen`.
    package static func listen(_ descriptor: Int32, backlog: Int32) -> Int32 {
        #if canImport(Darwin)
        Darwin.listen(descriptor, backlog)
        #elseif canImport(Musl)
        Musl.listen(descriptor, backlog)
        #else
        Glibc.listen(descriptor, backlog)
        #endif
    }

    /// Calls `connect(2)`, under a name that is usable in a type with a function `connect`.
    package static func connect(_ descriptor: Int32, _ address: UnsafePointer<sockaddr>, _ size: socklen_t) -> Int32 {
        #if canImport(Darwin)
        Darwin.connect(descriptor, address, size)
        #elseif canImport(Musl)
        Musl.connect(descriptor, address, size)
        #else
        Glibc.connect(descriptor, address, size)
        #endif
    }

    /// Calls `send(2)` without raising SIGPIPE.
    package static func send(_ descriptor: Int32, _ bytes: UnsafeRawPointer, _ count: Int) -> Int {
        #if canImport(Darwin)
        Darwin.send(descriptor, bytes, count, 0)
        #elseif canImport(Musl)
        Musl.send(descriptor, bytes, count, Int32(MSG_NOSIGNAL))
        #else
        Glibc.send(descriptor, bytes, count, Int32(MSG_NOSIGNAL))
        #endif
    }

    /// Accepts a connection whose socket child processes do not inherit; -1 with `errno` set if there is none.
    package static func acceptConnection(_ listener: Int32) -> Int32 {
        closedOnExec(accept(listener, nil, nil))
    }

    /// Raises the limit of open descriptors to the hard limit and returns it.
    package static func raiseDescriptorLimit() -> Int {
        #if canImport(Glibc)
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let resource = RLIMIT_NOFILE
        #endif
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return 0 }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(resource, &limit)
        return Int(clamping: limit.rlim_cur)
    }

    /// Creates a pipe that child processes do not inherit: its read end and its write end.
    package static func makePipe() -> (reading: Int32, writing: Int32)? {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        return (closedOnExec(ends[0]), closedOnExec(ends[1]))
    }

    /// Suppresses SIGPIPE on sending after the peer has closed, where `send` has no flag for that.
    package static func makeSocketQuiet(_ descriptor: Int32) {
        #if canImport(Darwin)
        var on: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, socklen_t(MemoryLayout<Int32>.size))
        #endif
    }

    /// Makes writes fail that would extend a file beyond a length, without a signal.
    package static func limitFileSizes(to bytes: Int) {
        signal(SIGXFSZ, SIG_IGN)
        var limit = rlimit()
        limit.rlim_cur = rlim_t(bytes)
        limit.rlim_max = rlim_t(bytes)
        #if canImport(Glibc)
        setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
        #else
        setrlimit(RLIMIT_FSIZE, &limit)
        #endif
    }

    package static func setNoDelay(_ descriptor: Int32) {
        var on: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Returns the address 127.0.0.1 with `port`.
    package static func loopbackAddress(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        #if canImport(Darwin)
        address.sin_len = UInt8(MemoryLayout<sockaddr_in>.size)
        #endif
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    /// Starts a thread that runs `start` with `argument`.
    package static func startThread(
        attributes: inout pthread_attr_t, argument: UnsafeMutableRawPointer
    ) -> ThreadID? {
        #if canImport(Darwin)
        var thread: pthread_t?
        let status = pthread_create(&thread, &attributes, { runThreadBody($0) }, argument)
        return status == 0 ? .some(thread) : nil
        #else
        var thread = pthread_t()
        let status = pthread_create(&thread, &attributes, { runThreadBody($0) }, argument)
        return status == 0 ? thread : nil
        #endif
    }

    /// Names the calling thread, for debuggers.
    package static func nameThisThread(_ name: String) {
        #if canImport(Darwin)
        pthread_setname_np(name)
        #else
        // glibc declares pthread_setname_np under _GNU_SOURCE, so it is not imported. The kernel keeps 15 bytes.
        let file = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { return }
        _ = write(file, name, min(name.utf8.count, 15))
        closeDescriptor(file)
        #endif
    }

    package static func isThisThread(_ thread: ThreadID) -> Bool {
        pthread_equal(pthread_self(), thread) != 0
    }

    package static func join(_ thread: ThreadID) {
        #if canImport(Darwin)
        guard let thread else { return }
        #endif
        pthread_join(thread, nil)
    }

    package static func detach(_ thread: ThreadID) {
        #if canImport(Darwin)
        guard let thread else { return }
        #endif
        pthread_detach(thread)
    }

    // Setting the flag atomically requires `accept4` and `pipe2`, which are not in Swift's Glibc module.
    private static func closedOnExec(_ descriptor: Int32) -> Int32 {
        if descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        return descriptor
    }
}

private func runThreadBody(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument else { return nil }
    let body = Unmanaged<ThreadBody>.fromOpaque(argument).takeRetainedValue()
    Platform.nameThisThread(body.name)
    body.run()
    return nil
}
