// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// Maps connections to their sockets, as far as libcurl reveals them, and to the information in metrics.
///
/// Needed for connection checks: libcurl takes unsolicited bytes on an idle connection for the response to the next request, and sends
/// requests on connections that the host has closed: before 8.0 always, since then on those used a moment ago (seen with 8.23). When a
/// request is about to be sent, libcurl reveals the connection's addresses but not its socket.
struct PooledConnections {
    /// A pooled connection.
    struct Connection {
        let socket: Int32
        /// Created once, rather than for each request's metrics.
        let info: ConnectionInfo
    }

    private var connections = NumberMap<Connection>()
    private var keys: [Int32: Int] = [:]

    /// Returns a pooled connection; `nil` if it is unknown.
    func connection(_ key: Int) -> Connection? {
        connections[key]
    }

    /// Records a new connection. Returns its socket, one of those just opened; −1 if none matches.
    ///
    /// Connections over one Unix domain socket have the same addresses. Of several, libcurl does not reveal which one it reuses: their
    /// sockets are unknown then, and libcurl's own check for closed connections has to do.
    mutating func opened(_ key: Int, _ info: ConnectionInfo, among justOpened: [Int32]) -> Int32 {
        guard let socket = justOpened.last(where: { Self.localPort(of: $0) == info.values.localPort }) else { return -1 }
        connections[key] = Connection(socket: connections[key] == nil ? socket : -1, info: info)
        keys[socket] = key
        return socket
    }

    /// Whether an idle connection is stale: it has unsolicited bytes, or was closed.
    ///
    /// Over TLS, bytes may be session tickets: only closing counts.
    static func isStale(_ socket: Int32, isSecure: Bool) -> Bool {
        guard socket >= 0 else { return false }
        guard !isSecure else { return SystemSocket.hasEnded(socket) }
        var byte: UInt8 = 0
        return recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) >= 0 || (errno != EAGAIN && errno != EINTR)
    }

    mutating func forget(_ socket: Int32) {
        guard let key = keys.removeValue(forKey: socket) else { return }
        if connections[key]?.socket == socket { connections[key] = nil }
    }

    /// The key of a connection, a hash of its addresses.
    static func key(_ localPort: Int32, _ remotePort: Int32, _ address: UnsafePointer<CChar>?) -> Int {
        var hash: UInt64 = 14_695_981_039_346_656_037
        var byte = address
        while let current = byte, current.pointee != 0 {
            hash = (hash ^ UInt64(UInt8(bitPattern: current.pointee))) &* 1_099_511_628_211
            byte = current + 1
        }
        return Int(bitPattern: UInt((hash << 32) ^ UInt64(UInt32(bitPattern: localPort)) << 16 ^ UInt64(UInt32(bitPattern: remotePort))))
    }

    private static func localPort(of socket: Int32) -> Int? {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &address) { bytes -> Int? in
            guard let base = bytes.baseAddress, getsockname(socket, base.assumingMemoryBound(to: sockaddr.self), &length) == 0 else {
                return nil
            }
            // The port has the same offset in IPv4 and IPv6 addresses, in network order.
            return Int(bytes.load(fromByteOffset: 2, as: UInt16.self).bigEndian)
        }
    }
}
