// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewHTTP
import CurlewRedis
import CurlewTestSupport

/// Accepts connections, and sends the same bytes on each after the first command.
final class FakeServer: Sendable {
    private let listener: Int32
    private let isEnded = Lock(false)
    private let directory: TemporaryDirectory?
    let configuration: RedisConfiguration
    let port: Int

    init(response: String, path: String? = nil, isTCP: Bool = false) throws {
        let listener = socket(isTCP ? AF_INET : AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        self.listener = listener
        directory = path == nil ? try TemporaryDirectory() : nil
        let path = path ?? directory?.file("fake.sock").path ?? ""
        var port = 0
        if isTCP {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    _ = bind(listener, address, length)
                    getsockname(listener, address, &length)
                }
            }
            port = Int(UInt16(bigEndian: address.sin_port))
        } else {
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(100)) }
            let length = socklen_t(MemoryLayout<sockaddr_un>.size)
            let status = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, length) }
            }
            guard status == 0 else { throw TestError("bind: \(String(cString: strerror(errno)))") }
        }
        self.port = port
        guard listen(listener, 16) == 0 else { throw TestError("listen: \(String(cString: strerror(errno)))") }
        var configuration = RedisConfiguration(.unix(path: path))
        configuration.commandTimeout = .seconds(5)
        configuration.connectTimeout = .seconds(10)
        self.configuration = configuration
        Thread.detachNewThread {
            var connections: [Int32] = []
            while case let connection = accept(listener, nil, nil), connection >= 0 {
                connections.append(connection)
                var buffer = [UInt8](repeating: 0, count: 4_096)
                guard recv(connection, &buffer, buffer.count, 0) > 0 else { continue }
                let bytes = Array(response.utf8)
                send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
            }
            for connection in connections { close(connection) }
            // Not before: this thread would accept the connections of another listener that has got the descriptor.
            close(listener)
        }
    }

    /// Ends the server with its connections.
    func end() {
        let isFirst = isEnded.withLock { isEnded in
            defer { isEnded = true }
            return !isEnded
        }
        guard isFirst else { return }
        shutdown(listener, Int32(SHUT_RDWR))
    }

    deinit { end() }
}
#endif
