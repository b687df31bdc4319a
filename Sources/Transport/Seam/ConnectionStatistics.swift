// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The connections of a transport at one moment, and how many there were.
public struct ConnectionStatistics: Sendable, Hashable {
    /// The connections to one origin, or to all.
    public struct Counts: Sendable, Hashable {
        /// Those in the pool, waiting for a request.
        public var idle = 0
        /// Those with transfers on them, and raw streams such as WebSockets.
        public var busy = 0
        /// All of them.
        public var open: Int { idle + busy }

        /// Creates counts; zero by default.
        public init(idle: Int = 0, busy: Int = 0) {
            self.idle = idle
            self.busy = busy
        }
    }

    /// The open connections by the origin of the request for which they were opened: the host's, also through a proxy.
    public var origins: [HTTPOrigin: Counts] = [:]
    /// All open connections, also those whose origin is unknown.
    public var connections = Counts()
    /// The connections opened so far.
    public var opened = 0
    /// How often a request was sent on a connection that another request had used, or that was opened ahead.
    public var reused = 0
    /// The connections closed so far, by either side, as far as that has been noticed.
    public var closed: Int { opened - connections.open }

    /// Creates statistics without connections.
    public init() {}

    /// Adds those of another loop.
    mutating func add(_ other: ConnectionStatistics) {
        for (origin, counts) in other.origins {
            origins[origin, default: Counts()].idle += counts.idle
            origins[origin, default: Counts()].busy += counts.busy
        }
        connections.idle += other.connections.idle
        connections.busy += other.connections.busy
        opened += other.opened
        reused += other.reused
    }

    /// Counts one connection.
    mutating func count(_ origin: HTTPOrigin?, isBusy: Bool) {
        let counter = isBusy ? \Counts.busy : \Counts.idle
        connections[keyPath: counter] += 1
        if let origin { origins[origin, default: Counts()][keyPath: counter] += 1 }
    }
}
