// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Makes one request of equal ones that miss at the same time (RFC 9111, section 4: "collapsed requests").
///
/// The first of them leads: it loads the response. The others wait until it is stored, and look it up; they are woken, too, as soon as it
/// is known that it won't be. Thread-safe.
package final class MissCoalescer: Sendable {
    /// What makes requests equal: the URL, and all header fields in any order.
    package struct Key: Sendable, Hashable {
        private let url: [UInt8]
        private let partition: String
        private let fields: [[UInt8]]

        /// Creates the key of a request.
        package init(url: String, headers: HTTPHeaders, partition: String = "") {
            self.url = Array(url.utf8)
            self.partition = partition
            fields = headers.map { "\($0.name.lowercased()):\($0.value)" }.sorted().map { Array($0.utf8) }
        }
    }

    /// How a leader's request has ended, as far as the others need to know.
    package enum Outcome: Sendable {
        /// What it has stored can be looked up.
        case stored
        /// It has stored nothing, and another one would not either: each of the others sends a request of its own.
        case notStored
        /// It was cancelled or suspended: another one may lead.
        case abandoned
    }

    /// A request that leads. Compared by identity.
    package final class Flight: Sendable {
        fileprivate let key: Key
        fileprivate init(_ key: Key) { self.key = key }
    }

    private struct Waiting {
        let flight: Flight
        var waiters: [@Sendable (Outcome) -> Void] = []
    }

    private let flights = Lock([Key: Waiting]())

    /// Creates a coalescer without requests.
    package init() {}

    /// Joins the requests with a key.
    ///
    /// - Parameter wake: called once if another request leads, on the thread that ends its flight.
    /// - Returns: the flight of this request, to be ended, if it leads; otherwise `nil`.
    package func join(_ key: Key, wake: @escaping @Sendable (Outcome) -> Void) -> Flight? {
        flights.withLock { flights in
            guard flights[key] == nil else {
                flights[key]?.waiters.append(wake)
                return nil
            }
            let flight = Flight(key)
            flights[key] = Waiting(flight: flight)
            return flight
        }
    }

    /// Ends the flight of a request that leads, and wakes the others. Has an effect only once.
    package func end(_ flight: Flight, _ outcome: Outcome) {
        let waiters = flights.withLock { flights -> [@Sendable (Outcome) -> Void] in
            guard let waiting = flights[flight.key], waiting.flight === flight else { return [] }
            flights[flight.key] = nil
            return waiting.waiters
        }
        for wake in waiters { wake(outcome) }
    }

    /// The number of requests that wait for others.
    package var waitingCount: Int { flights.withLock { $0.values.reduce(0) { $0 + $1.waiters.count } } }
}
