// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The bytes of a socket's address.
struct SocketAddress: Sendable {
    let family: Int32
    let bytes: [UInt8]

    /// The address of a Unix socket; `nil` for a path that is too long.
    init?(path: String) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let capacity = MemoryLayout.size(ofValue: address.sun_path)
        guard !path.isEmpty, path.utf8.count < capacity else { return nil }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        family = AF_UNIX
        bytes = withUnsafeBytes(of: &address) { Array($0) }
    }

    private init(family: Int32, bytes: [UInt8]) {
        self.family = family
        self.bytes = bytes
    }

    /// Resolves a host, which blocks unless only an address in digits is taken; the system's message if that fails.
    static func resolve(_ host: String, port: Int, onlyDigits: Bool = false) -> Result<[SocketAddress], Unresolvable> {
        var hints = addrinfo()
        hints.ai_flags = onlyDigits ? AI_NUMERICHOST : 0
        hints.ai_socktype = streamSocketType
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, "\(port)", &hints, &list)
        guard code == 0 else { return .failure(Unresolvable(message: String(cString: gai_strerror(code)))) }
        defer { freeaddrinfo(list) }
        var found: [SocketAddress] = []
        var next = list
        while let entry = next?.pointee {
            let bytes = UnsafeRawBufferPointer(start: entry.ai_addr, count: Int(entry.ai_addrlen))
            found.append(SocketAddress(family: entry.ai_family, bytes: Array(bytes)))
            next = entry.ai_next
        }
        return .success(found)
    }

    struct Unresolvable: Error {
        let message: String
    }
}

/// A non-blocking socket. Confined to the client's thread, which blocks SIGPIPE.
struct RedisSocket {
    let descriptor: Int32

    /// Begins to connect; throws the system's error number.
    init(connectingTo address: SocketAddress) throws(SystemError) {
        let descriptor = socket(address.family, streamSocketType, 0)
        guard descriptor >= 0 else { throw SystemError(number: errno) }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        if address.family != AF_UNIX {
            var one: Int32 = 1
            setsockopt(descriptor, tcpProtocol, TCP_NODELAY, &one, 4)
        }
        let status = address.bytes.withUnsafeBytes { bytes -> Int32 in
            let pointer = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self)
            return connect(descriptor, pointer, socklen_t(bytes.count)) == 0 ? 0 : errno
        }
        // EAGAIN: a Unix socket whose backlog is full, on Linux; it never becomes writable.
        guard status == 0 || status == EINPROGRESS else {
            _ = close(descriptor)
            throw SystemError(number: status)
        }
        self.descriptor = descriptor
    }

    struct SystemError: Error {
        let number: Int32
    }

    /// The pending error; 0 for none.
    var error: Int32 {
        var (value, length) = (Int32(0), socklen_t(4))
        getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &value, &length)
        return value
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> SocketProgress {
        while true {
            let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
            if count > 0 { return .count(count) }
            if count == 0 { return .failed(.closedByServer) }
            if errno == EINTR { continue }
            return errno == EAGAIN || errno == EWOULDBLOCK ? .wouldBlock : .failed(.system(errno))
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> SocketProgress {
        while true {
            let count = send(descriptor, bytes.baseAddress, bytes.count, 0)
            if count >= 0 { return .count(count) }
            if errno == EINTR { continue }
            return errno == EAGAIN || errno == EWOULDBLOCK ? .wouldBlock : .failed(.system(errno))
        }
    }

    func end() { _ = close(descriptor) }
}

/// The result of reading or writing.
enum SocketProgress {
    case count(Int)
    case wouldBlock
    case failed(RedisError.Reason)
}

/// The bytes of a connection to the server. Confined to the client's thread.
enum RedisLink {
    /// A socket, which the thread polls.
    case socket(RedisSocket)
    /// TLS, by libcurl, which notifies the thread of changes.
    case secure(SecureStream)

    /// What the thread polls; `nil` for none.
    var descriptor: Int32? {
        switch self {
        case .socket(let socket): socket.descriptor
        case .secure: nil
        }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> SocketProgress {
        switch self {
        case .socket(let socket): socket.read(into: buffer)
        case .secure(let stream): stream.read(into: buffer)
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> SocketProgress {
        switch self {
        case .socket(let socket): return socket.write(bytes)
        case .secure(let stream):
            stream.write(bytes)
            return .count(bytes.count)
        }
    }

    func end() {
        switch self {
        case .socket(let socket): socket.end()
        case .secure(let stream): stream.close()
        }
    }
}
#endif
