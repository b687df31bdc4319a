// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

// How long connections may be idle before they are not used again: by the configuration, and by what their servers say.
//
// libcurl has one limit for all connections, in whole seconds. Those of servers are noted here, and checked when a request is about to be
// sent, by `Transfer+ConnectionCheck`. `ConnectionPools` closes pools that are not used.

/// The limit that servers set for idle connections of HTTP/1.1, in `Keep-Alive: timeout=5, max=100` (RFC 2068, section 19.7.1). HTTP/2
/// forbids the field (RFC 9113, section 8.2.2).
enum KeepAlive {
    /// The server's time began earlier, when it sent the response, and ends when the next request arrives: by so much less it counts here.
    private static let margin: Nanoseconds = 1_000_000_000

    /// The longest time for which a connection may be idle; `nil` if the fields don't say.
    static func idleTime(_ fields: [String]) -> Nanoseconds? {
        for member in fields.flatMap({ FieldParser.members(of: $0) }) {
            var parser = FieldParser(member)
            let (name, seconds) = parser.takeLooseParameter { _ in false }
            guard name.equalsIgnoringASCIICase("timeout"), let seconds, seconds.isAllDigits, parser.isAtEnd else { continue }
            let limit = Nanoseconds(min(Int(seconds) ?? .max, 1_000_000_000)) * 1_000_000_000
            return limit - min(margin, limit / 2)
        }
        return nil
    }
}

extension TransportConfiguration {
    /// The limit in nanoseconds; `nil` for none, or if it is libcurl's.
    var ownIdleTime: Nanoseconds? { maximumIdleTime == Self.defaultIdleTime ? nil : maximumIdleTime?.nanoseconds }

    /// The limit for libcurl, which compares whole seconds; `nil` if it is the default.
    var idleSeconds: Int? {
        guard maximumIdleTime != Self.defaultIdleTime else { return nil }
        // Larger numbers overflow in some versions.
        let largest = Int(Int32.max) / 1_000
        return maximumIdleTime.map { Int(min(max($0, .zero), .seconds(largest)).components.seconds) } ?? largest
    }
}

extension Transfer {
    /// Notes how long the connection may be idle after the response.
    func noteKeepAlive(in head: ResponseHead) {
        guard head.hasLine(beginningWith: "keep-alive:") else { return }
        connection.idleTime = KeepAlive.idleTime(head.headers.values(for: "Keep-Alive"))
    }
}

extension EventLoopThread {
    /// A transfer has left its connection: notes how long that may be idle, if it is pooled and there is a limit.
    func becameIdle(after transfer: Transfer) {
        let ownIdleTime = transfer.group.ownIdleTime
        guard ownIdleTime != nil || transfer.connection.idleTime != nil || connections.hasLimits else { return }
        connections.becameIdle(transfer.connection.socket, at: now, limit: ownIdleTime, ofServer: transfer.connection.idleTime)
    }
}
