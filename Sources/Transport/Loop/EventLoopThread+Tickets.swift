// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

// Connections over TLS that are opened ahead. A server sends the session tickets of TLS 1.3 behind the handshake (RFC 8446, section 4.6.1),
// which nothing reads until there is a response. Some libcurls take a connection with unread bytes for dead.

extension EventLoopThread {
    /// The shortest and the longest wait for tickets: 5 milliseconds and a second.
    private static let ticketWait: ClosedRange<Nanoseconds> = 5_000_000...1_000_000_000

    /// Whether a transfer that may pause gets connections of its own.
    func isApart(_ transfer: Transfer) -> Bool {
        // What is known of a host is about TCP: over its HTTP/3 transfers share a connection all the same.
        if transfer.exchange.alternative != nil { return transfer.group.sharing.isEnabled && transfer.request.mayPause }
        return transfer.group.sharing.isApart(transfer.request, isSecure: transfer.isSecure, host: transfer.hostKey)
    }

    /// Notes that a transfer has opened a connection for HTTP/1.1, and keeps it until tickets should have come if libcurl has to read them:
    /// they need one round trip, and the handshake has taken at least one. Returns whether it is kept.
    func awaitsTickets(_ transfer: Transfer, _ decision: TransferState.Decision) -> Bool {
        guard decision == .success, transfer.isSecure, transfer.connection.info?.values.isMultiplexed == false else { return false }
        transfer.exchange.hasOpenedHTTP1 = true
        guard CurlInfo.current.dropsConnectionsWithInput else { return false }
        awaitingTickets.append(transfer)
        let wait = min(max(3 * transfer.handle.handshakeTime, Self.ticketWait.lowerBound), Self.ticketWait.upperBound)
        timers.set(transfer, to: now + wait)
        return true
    }

    /// Reads the tickets and completes the transfer.
    func endAwaitingTickets(of transfer: Transfer) {
        awaitingTickets.removeAll { $0 === transfer }
        // A transfer that waited in libcurl for a connection may have taken it.
        let socket = transfer.connection.socket
        let isTaken = transfers.values.contains { $0 !== transfer && $0.multi != nil && $0.connection.socket == socket }
        if !isTaken, socket >= 0 { transfer.handle.readTickets() }
        complete(transfer, error: nil)
    }

    /// The same for all of them, before another transfer is given one of their connections.
    func endAwaitingTickets() {
        let waiting = awaitingTickets
        awaitingTickets = []
        // Those that were cancelled meanwhile have ended.
        for transfer in waiting where transfer.exchange.hasOpenedHTTP1 { endAwaitingTickets(of: transfer) }
    }
}
