// SPDX-License-Identifier: Apache-2.0

/// A SOCKS4a proxy on 127.0.0.1 that connects to ports of 127.0.0.1 for any requested host, and records the hosts.
public final class SOCKS4Server: Sendable {
    private let listener: SocketListener
    private let asked: Monitor<[String]>

    /// Starts a proxy on a port chosen by the system. Throws a ``SocketError`` if the system refuses.
    public init() throws {
        let asked = Monitor<[String]>([])
        self.asked = asked
        listener = try SocketListener { socket, _ in try? Self.serve(socket, asked) }
    }

    deinit {
        listener.stop(timeout: .seconds(10))
    }

    /// The port on 127.0.0.1.
    public var port: Int { listener.port }

    /// The requested hosts: names that the proxy should resolve, or addresses.
    public var hosts: [String] { asked.read { $0 } }

    private static func serve(_ client: ConnectedSocket, _ asked: Monitor<[String]>) throws {
        let head = try (0..<8).map { _ in try readByte(client) }
        guard head[0] == 4, head[1] == 1 else { return }
        _ = try readText(client)  // the user
        // An invalid address announces that a host name follows.
        let isName = head[4...6].allSatisfy { $0 == 0 } && head[7] != 0
        let host = try isName ? readText(client) : head[4...7].map { "\($0)" }.joined(separator: ".")
        asked.update { $0.append(host) }
        guard let target = connect(to: UInt16(head[2]) << 8 | UInt16(head[3])) else {
            return try client.send(Data([0, 91, 0, 0, 0, 0, 0, 0]))
        }
        try client.send(Data([0, 90, 0, 0, 0, 0, 0, 0]))
        let back = WorkerThread(name: "socks4") { pump(target, client) }
        pump(client, target)
        back?.join()
    }

    private static func connect(to port: UInt16) -> ConnectedSocket? {
        let descriptor = Platform.makeStreamSocket()
        var address = Platform.loopbackAddress(port: port)
        let status = withGenericAddress(&address) { Platform.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        guard status == 0 else {
            closeDescriptor(descriptor)
            return nil
        }
        return ConnectedSocket(descriptor)
    }

    private static func pump(_ source: ConnectedSocket, _ sink: ConnectedSocket) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 << 10, alignment: 16)
        defer { buffer.deallocate() }
        while let count = try? source.receive(into: buffer), count > 0 {
            guard (try? sink.send(UnsafeRawBufferPointer(rebasing: buffer[..<count]))) != nil else { break }
        }
        sink.shutDownWriting()
    }

    private static func readByte(_ socket: ConnectedSocket) throws -> UInt8 {
        try withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { buffer in
            guard try socket.receive(into: buffer) == 1 else { throw SocketError("recv", code: ECONNRESET) }
            return buffer[0]
        }
    }

    /// Reads up to a zero byte.
    private static func readText(_ socket: ConnectedSocket) throws -> String {
        var bytes: [UInt8] = []
        while case let byte = try readByte(socket), byte != 0 { bytes.append(byte) }
        return String(decoding: bytes, as: UTF8.self)
    }
}
