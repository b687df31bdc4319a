// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

// A look at the pooled connections, and their closing.

extension EventLoopThread {
    /// The connections at this moment.
    var connectionStatistics: ConnectionStatistics {
        var statistics = ConnectionStatistics()
        let busy = busySockets
        for connection in connections.open { statistics.count(connection.origin, isBusy: busy.contains(connection.socket)) }
        for stream in streams.values where stream.socket >= 0 { statistics.count(HTTPOrigin(url: stream.request.url), isBusy: true) }
        statistics.opened = connections.openedCount
        statistics.reused = connections.reusedCount
        return statistics
    }

    private var busySockets: Set<Int32> {
        Set(transfers.values.filter { $0.multi != nil }.map(\.connection.socket))
    }

    /// Closes the idle connections; returns their number.
    ///
    /// libcurl closes connections with their multi handle only. Where others are in use, the idle ones are ended under libcurl, which
    /// notices when it looks for a connection to the host, or makes another one.
    func closeIdleConnections() -> Int {
        collectCompleted()
        let count = connections.open.count
        pools?.closeUnused()
        poolsForPausing?.closeUnused()
        let busy = busySockets
        for connection in connections.open where !busy.contains(connection.socket) {
            SystemSocket.end(connection.socket)
            didEnd(connection.socket)
        }
        return count - connections.open.count
    }
}
