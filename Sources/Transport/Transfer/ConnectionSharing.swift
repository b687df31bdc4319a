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
    func isPossible(for transfer: Transfer) -> Bool {
        guard isEnabled, !transfer.request.mayPause, transfer.request.authentication == nil else { return false }
        return switch transfer.request.prepared.options.httpVersion {
        case .automatic, .http3, .http3Only: transfer.isSecure && !hostsWithoutSharing.contains(transfer.hostKey)
        case .http1: false
        case .http2PriorKnowledge: true
        }
    }

    /// Remembers the host of a transfer that was to share its connection and did not.
    mutating func completed(_ transfer: Transfer) {
        guard !transfer.isQueuedByLoop, transfer.state.hasHead, !transfer.handle.isMultiplexed else { return }
        if hostsWithoutSharing.count >= Self.largestMemory { hostsWithoutSharing.removeAll(keepingCapacity: true) }
        hostsWithoutSharing.insert(transfer.hostKey)
    }
}
