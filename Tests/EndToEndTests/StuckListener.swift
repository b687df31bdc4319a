// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport

/// A port on 127.0.0.1 that never responds.
final class StuckListener: Sendable {
    enum Kind {
        /// The kernel completes connections, which are never accepted or read.
        case silent
        /// Connections do not complete, because the accept queue is full.
        case full
        /// Connections are refused.
        case refusing
    }

    let port: Int
    private let descriptors: [Int32]

    init(_ kind: Kind) throws {
        let listener = try Self.makeSocket()
        var address = Self.loopback(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        guard isBound else { throw TestError("bind: \(errno)") }
        port = Int(UInt16(bigEndian: address.sin_port))
        // A bound socket that does not listen refuses connections and keeps its port from being reused.
        if kind != .refusing { listen(listener, kind == .full ? 0 : 4_096) }
        descriptors = [listener] + (kind == .full ? try Self.fill(port: port) : [])
    }

    deinit {
        for descriptor in descriptors { close(descriptor) }
    }

    /// Accepts connections from now on; the first one's bytes are read to their end.
    func serve() -> Task<Data, Never> {
        listen(descriptors[0], 16)
        let listener = descriptors[0]
        return Task.detached {
            let connection = accept(listener, nil, nil)
            defer { close(connection) }
            var received = Data()
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while case let count = read(connection, &buffer, buffer.count), count > 0 { received += buffer.prefix(count) }
            return received
        }
    }

    /// Connects until no more connections complete.
    private static func fill(port: Int) throws -> [Int32] {
        try (0..<4).map { _ in
            let descriptor = try makeSocket()
            _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
            var address = loopback(port: port)
            withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    _ = connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            return descriptor
        }
    }

    private static func makeSocket() throws -> Int32 {
        #if canImport(Glibc)
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
        let descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        guard descriptor >= 0 else { throw TestError("socket: \(errno)") }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        return descriptor
    }

    private static func loopback(port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }
}
