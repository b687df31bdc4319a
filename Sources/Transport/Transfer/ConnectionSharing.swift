// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Decides which transfers may share an HTTP/2 connection, and remembers the hosts that do not share.
struct ConnectionSharing {
    /// The number of hosts remembered; forgotten ones are tried again.
    private static let largestMemory = 1_024

    /// Whether transfers share connections at all.
    let isEnabled: Bool
    /// Hosts that spoke HTTP/1 although HTTP/2 was offered.
    private var hostsWithoutSharing: Set<UInt64> = []

    init(isEnabled: Bool) {
        self.isEnabled = isEnabled
    }

    /// Whether a transfer may share its connection. One that may pause could block the others on it, and one that authenticates its
    /// connection needs it for itself.
    func isPossible(for request: TransferRequest, isSecure: Bool, host: UInt64) -> Bool {
        guard isEnabled, !request.mayPause, request.authentication == nil else { return false }
        return switch request.prepared.options.httpVersion {
        case .automatic, .http3, .http3Only: isSecure && !hostsWithoutSharing.contains(host)
        case .http1: false
        case .http2PriorKnowledge: true
        }
    }

    /// Whether a transfer that may pause must have connections of its own: not where a connection is used by one transfer at a time.
    func isApart(_ request: TransferRequest, isSecure: Bool, host: UInt64) -> Bool {
        guard isEnabled, request.mayPause else { return false }
        return switch request.prepared.options.httpVersion {
        case .automatic: isSecure && !hostsWithoutSharing.contains(host)
        case .http3, .http3Only: isSecure
        case .http1: false
        case .http2PriorKnowledge: true
        }
    }

    /// Whether connections to a host may be shared, as far as is known.
    func mayShare(_ host: UInt64) -> Bool { isEnabled && !hostsWithoutSharing.contains(host) }

    /// Remembers the host of a transfer that was to share its connection and did not; returns whether that is so.
    mutating func completed(_ transfer: Transfer) -> Bool {
        guard !transfer.exchange.isQueuedByLoop, transfer.state.hasHead || transfer.exchange.hasOpenedHTTP1, !transfer.handle.isMultiplexed
        else {
            return false
        }
        failed(transfer.hostKey)
        return true
    }

    /// Remembers a host that does not share connections.
    mutating func failed(_ host: UInt64) {
        if hostsWithoutSharing.count >= Self.largestMemory { hostsWithoutSharing.removeAll(keepingCapacity: true) }
        hostsWithoutSharing.insert(host)
    }
}
