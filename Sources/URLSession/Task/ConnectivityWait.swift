// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading

/// Waits for a route to a host.
final class ConnectivityWait: Sendable {
    private let reachability: NetworkReachabilityManager

    /// `nil` if the system does not tell.
    init?(host: String) {
        guard let reachability = NetworkReachabilityManager(host: host) else { return nil }
        self.reachability = reachability
    }

    func run(
        _ waits: @escaping @Sendable () -> Void, isWanted: @escaping @Sendable () -> Bool, then: @escaping @Sendable () -> Void
    ) { then() }
}
