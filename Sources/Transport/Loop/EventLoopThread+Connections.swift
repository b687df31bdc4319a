// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

// A look at the pooled connections, and their closing.

extension EventLoopThread {
    /// The connections of a group at this moment.
    func connectionStatistics(ofGroup number: Int) -> ConnectionStatistics {
        var statistics = ConnectionStatistics()
        guard let group = group(number) else { return statistics }
        let busy = busySockets
        for connection in connections.open(ofGroup: number) {
            statistics.count(connection.origin, isBusy: busy.contains(connection.socket))
        }
        for stream in streams.values where stream.socket >= 0 && stream.group === group {
            statistics.count(HTTPOrigin(url: stream.request.url), isBusy: true)
        }
        statistics.opened = group.openedCount
        statistics.reused = group.reusedCount
        return statistics
    }

    private var busySockets: Set<Int32> {
        Set(transfers.values.filter { $0.multi != nil }.map(\.connection.socket))
    }

    /// Closes the idle connections of a group; returns their number.
    ///
    /// libcurl closes connections with their multi handle only. Where others are in use, the idle ones are ended under libcurl, which
    /// notices when it looks for a connection to the host, or makes another one.
    func closeIdleConnections(ofGroup number: Int) -> Int {
        guard let group = group(number) else { return 0 }
        collectCompleted()
        let count = connections.open(ofGroup: number).count
        group.pools?.closeIdle()
        group.poolsForPausing?.closeIdle()
        endIdleConnections(ofGroup: number)
        return count - connections.open(ofGroup: number).count
    }

    /// Ends the idle connections of a group under libcurl.
    func endIdleConnections(ofGroup number: Int) {
        let busy = busySockets
        for connection in connections.open(ofGroup: number) where !busy.contains(connection.socket) {
            SystemSocket.end(connection.socket)
            didEnd(connection.socket)
        }
    }

    // MARK: Connections with the same addresses

    /// The sockets of idle connections with these addresses, if several have them.
    func idleSockets(amongConnections key: Int) -> [Int32] {
        let group = connections.group(key)
        guard !group.isEmpty else { return [] }
        let busy = busySockets
        return group.filter { !busy.contains($0) }
    }

    /// Ends those of idle connections that are stale, or have been idle for too long; `false` if none is.
    func endStale(_ sockets: [Int32], isSecure: Bool) -> Bool {
        let stale = sockets.filter { connections.hasExpired($0, at: now) || PooledConnections.isStale($0, isSecure: isSecure) }
        for socket in stale where connections.isOpen(socket) {
            SystemSocket.end(socket)
            didEnd(socket)
        }
        return !stale.isEmpty
    }

    /// A transfer is about to use one of several connections with the same addresses: libcurl reveals which one when it waits for events
    /// of its socket, unless that is shared and waited for already.
    func identifyLater(_ transfer: Transfer) {
        if !unidentified.contains(where: { $0 === transfer }) { unidentified.append(transfer) }
    }

    /// libcurl waits for events of a socket on behalf of an easy handle.
    func identify(_ socket: Int32, _ handle: UnsafeMutableRawPointer?) {
        guard let index = unidentified.firstIndex(where: { $0.handle.raw == handle }), let connection = connections.open(socket) else {
            return
        }
        let transfer = unidentified.remove(at: index)
        transfer.connection.socket = socket
        transfer.connection.info = connection.info
        connectionReporter?.uses(transfer.number, socket, url: transfer.request.url, info: connection.info, isReused: true)
    }
}
