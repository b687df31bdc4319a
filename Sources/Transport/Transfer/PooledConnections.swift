// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// What is known of the connections in libcurl's pools, none of which it chooses: their sockets, as far as libcurl reveals them, and the
/// information in metrics.
///
/// Needed for connection checks: libcurl takes unsolicited bytes on an idle connection for the response to the next request, and sends
/// requests on connections that the host has closed: before 8.0 always, since then on those used a moment ago (seen with 8.23). When a
/// request is about to be sent, libcurl reveals the connection's addresses but not its socket.
///
/// A class: of a value in the loop each look would copy the maps. Only for the loop's thread.
final class PooledConnections {
    /// A pooled connection. A class, because each request looks one up, and copying a value costs more than finding it.
    final class Connection {
        let socket: Int32
        /// The key of its addresses.
        let addresses: Int
        /// Created once, rather than for each request's metrics.
        let info: ConnectionInfo
        /// The origin of the request for which it was opened.
        let origin: HTTPOrigin?
        /// The number of the group that it belongs to.
        let group: Int
        /// Whether the loop has ended it, and libcurl has yet to notice.
        var hasEnded = false
        /// The longest time for which it may be idle, by its server; `nil` if that did not say.
        var idleTime: Nanoseconds?
        /// When it has been idle for too long.
        var expiresAt = Nanoseconds.max

        init(socket: Int32, addresses: Int, info: ConnectionInfo, origin: HTTPOrigin?, group: Int) {
            (self.socket, self.addresses, self.info, self.origin, self.group) = (socket, addresses, info, origin, group)
        }
    }

    @exclusivity(unchecked) private var connections = NumberMap<Connection>()
    @exclusivity(unchecked) private var keys: [Int32: Int] = [:]
    /// The sockets of connections with the same addresses, by the key of these: those over one Unix domain socket.
    @exclusivity(unchecked) private var groups: [Int: [Int32]] = [:]
    /// Whether any connection has ever had a limit for being idle.
    @exclusivity(unchecked) private(set) var hasLimits = false

    /// The connections of a group that are open.
    func open(ofGroup group: Int) -> [Connection] { connections.values.filter { !$0.hasEnded && $0.group == group } }

    /// The connection of a socket; `nil` if it is not that of an open connection.
    func open(_ socket: Int32) -> Connection? {
        guard let key = keys[socket], let connection = connections[key], !connection.hasEnded else { return nil }
        return connection
    }

    /// Whether a socket is that of an open connection.
    func isOpen(_ socket: Int32) -> Bool { open(socket) != nil }

    /// The sockets of the connections with these addresses if there are several, those included that the loop has ended; otherwise none.
    func group(_ key: Int) -> [Int32] {
        guard let group = groups[key], group.count > 1 else { return [] }
        return group
    }

    /// Marks a connection as ended, but keeps it for the check of a request that libcurl may still put on it.
    func ended(_ socket: Int32) {
        if let key = keys[socket] { connections[key]?.hasEnded = true }
    }

    /// Returns a pooled connection that a request is about to use; `nil` if it is unknown.
    ///
    /// Connections over one Unix domain socket have the same addresses. Of several, libcurl does not reveal which one it is about to reuse:
    /// the socket is −1.
    func reused(_ key: Int) -> (socket: Int32, info: ConnectionInfo)? {
        guard !groups.isEmpty, let group = groups[key] else { return connections[key].map { ($0.socket, $0.info) } }
        guard let first = group.first.flatMap({ keys[$0] }).flatMap({ connections[$0] }) else { return nil }
        return (group.count == 1 ? first.socket : -1, first.info)
    }

    /// Records a new connection with the socket that libcurl has opened for it.
    func opened(_ socket: Int32, _ key: Int, _ info: ConnectionInfo, for url: String, group: Int = 0) {
        var place = key
        if let first = connections[key]?.socket ?? groups[key]?.first {
            groups[key, default: [first]].append(socket)
            // No key of addresses: the upper half of these is a hash.
            place = ~Int(socket)
        }
        connections[place] = Connection(socket: socket, addresses: key, info: info, origin: HTTPOrigin(url: url), group: group)
        keys[socket] = place
    }

    /// Notes that a connection of HTTP/1.1 is idle: others may have more users.
    func becameIdle(_ socket: Int32, at now: Nanoseconds, limit: Nanoseconds?, ofServer serverLimit: Nanoseconds?) {
        guard let connection = open(socket), !connection.info.values.isMultiplexed else { return }
        if let serverLimit { connection.idleTime = serverLimit }
        let idleTime = min(limit ?? .max, connection.idleTime ?? .max)
        connection.expiresAt = idleTime < .max - now ? now + idleTime : .max
        hasLimits = true
    }

    /// Whether a connection has been idle for too long.
    func hasExpired(_ socket: Int32, at now: Nanoseconds) -> Bool {
        guard hasLimits, let connection = open(socket) else { return false }
        return connection.expiresAt <= now
    }

    /// The socket of a new connection among those just opened; −1 if none matches.
    static func socket(among justOpened: [Int32], localPort: Int?) -> Int32 {
        justOpened.last { Self.localPort(of: $0) == localPort } ?? -1
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

    /// A socket is about to be closed. Returns the number of its connection's group; `nil` if it is not that of a pooled connection.
    @discardableResult
    func forget(_ socket: Int32) -> Int? {
        guard let place = keys.removeValue(forKey: socket) else { return nil }
        if !groups.isEmpty, let key = connections[place]?.addresses, let group = groups[key]?.filter({ $0 != socket }) {
            groups[key] = group.isEmpty ? nil : group
        }
        defer { connections[place] = nil }
        return connections[place]?.group
    }

    /// The key of a connection, a hash of its addresses and its group: those of different groups are not confused, though several may have
    /// the same addresses.
    static func key(_ localPort: Int32, _ remotePort: Int32, _ address: UnsafePointer<CChar>?, group: Int) -> Int {
        var hash: UInt64 = 14_695_981_039_346_656_037 ^ UInt64(truncatingIfNeeded: group)
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
