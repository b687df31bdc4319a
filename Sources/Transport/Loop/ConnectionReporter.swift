// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Follows the connections of an event loop, and reports what happens to them.
///
/// Created only if there is an observer. libcurl does not report why it closes a connection, and does it before it reports the end of the
/// transfer on it, so that the closing of a connection in use is reported with the end of its last transfer. For the event loop's thread
/// only.
final class ConnectionReporter {
    /// Why a transfer no longer uses its connection.
    enum End {
        /// It has completed, with an error or without.
        case completed((any Error)?)
        /// The connection was stale.
        case stale
    }

    private final class Connection {
        let number: Int
        let socket: Int32
        let origin: HTTPOrigin?
        let info: ConnectionInfo
        let openedAt: Nanoseconds
        /// The number of transfers on it.
        var users = 1
        var isClosed = false

        init(_ number: Int, _ socket: Int32, _ origin: HTTPOrigin?, _ info: ConnectionInfo, at time: Nanoseconds) {
            self.number = number
            self.socket = socket
            self.origin = origin
            self.info = info
            openedAt = time
        }
    }

    private let observer: @Sendable (ConnectionEvent) -> Void
    /// The open connections, by their sockets.
    private var connections: [Int32: Connection] = [:]
    /// The connections in use, by their transfers and streams.
    private var used: [Int: Connection] = [:]
    private var nextNumber: Int
    private let numberStep: Int

    /// Numbers are unique among several loops, of which this is one.
    init(loop: Int, of count: Int, _ observer: @escaping @Sendable (ConnectionEvent) -> Void) {
        self.observer = observer
        nextNumber = loop + 1
        numberStep = count
    }

    /// A transfer or stream is about to use a connection. `socket` is −1 if it is unknown; such a connection is not followed.
    func uses(_ id: Int, _ socket: Int32, url: String, info: ConnectionInfo?, isReused: Bool) {
        if let last = used[id] {
            // libcurl sends the request again, to authenticate the connection or because that was stale.
            guard last.isClosed || last.socket != socket else { return }
            ended(id, .stale)
        }
        guard socket >= 0, let info else { return }
        if isReused {
            guard let connection = connections[socket] else { return }
            used[id] = connection
            connection.users += 1
            report(.reused, connection, wasIdle: connection.users == 1)
        } else {
            defer { nextNumber += numberStep }
            let connection = Connection(nextNumber, socket, HTTPOrigin(url: url), info, at: MonotonicTime.now())
            connections[socket] = connection
            used[id] = connection
            report(.opened, connection)
        }
    }

    /// A transfer no longer uses its connection, which libcurl may have closed before.
    func ended(_ id: Int, _ end: End) {
        guard let connection = used.removeValue(forKey: id) else { return }
        connection.users -= 1
        // With the end of the last one: libcurl may give a connection to a transfer before it reports the end of the one before, and the
        // streams of a shared connection end one after the other.
        guard connection.users == 0 else { return }
        report(connection.isClosed ? .closed(Self.reason(end)) : .becameIdle, connection)
    }

    /// A stream has ended, and with it its connection, which libcurl closes later.
    func streamEnded(_ id: Int, _ error: (any Error)?) {
        guard let connection = used.removeValue(forKey: id) else { return }
        connection.users = 0
        connections[connection.socket] = nil
        report(.closed(Self.reason(.completed(error))), connection)
    }

    /// A socket is about to be closed.
    func closes(_ socket: Int32, isStopping: Bool, byLoop: Bool = false) {
        guard let connection = connections.removeValue(forKey: socket) else { return }
        connection.isClosed = true
        guard connection.users == 0 else { return }
        let reason: ConnectionEvent.CloseReason =
            isStopping ? .sessionEnded : !byLoop && SystemSocket.hasEnded(socket) ? .closedByPeer : .unused
        report(.closed(reason), connection, wasIdle: true)
    }

    private static func reason(_ end: End) -> ConnectionEvent.CloseReason {
        switch end {
        case .stale: .closedByPeer
        case .completed(nil): .finished
        case .completed(CurlewError.cancelled?): .cancelled
        case .completed(CurlewError.sessionInvalidated?): .sessionEnded
        case .completed: .failed
        }
    }

    private func report(_ kind: ConnectionEvent.Kind, _ connection: Connection, wasIdle: Bool = false) {
        let age = Duration.nanoseconds(Int64(MonotonicTime.now() - connection.openedAt))
        observer(
            ConnectionEvent(
                kind: kind, connection: connection.number, origin: connection.origin, transferCount: connection.users, wasIdle: wasIdle,
                age: age,
                info: connection.info))
    }
}
