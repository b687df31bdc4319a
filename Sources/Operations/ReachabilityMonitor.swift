// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// Tells whether the network, or a host, can be reached, with AFNetworking's states: unknown until it is started.
///
/// On the core's ``NetworkReachabilityManager``, which says what that means. All members may be used from any thread.
public final class ReachabilityMonitor: Sendable {
    /// What is known.
    public enum Status: Int, Sendable, Hashable {
        /// Not yet anything.
        case unknown = -1
        /// No way leads there.
        case notReachable = 0
        /// A way over a mobile network leads there.
        case reachableViaWWAN = 1
        /// A way over another network leads there.
        case reachableViaWiFi = 2
    }

    private struct State {
        var status = Status.unknown
        var closure: (@Sendable (Status) -> Void)?
    }

    /// Watches the network as a whole; `nil` when the system does not tell.
    public static let shared = ReachabilityMonitor()
    /// Posted at each change; the object is the monitor, and `userInfo` has the ``Status`` under ``statusKey``. On the callback queue.
    public static let didChangeNotification = Notification.Name("com.alamofire.networking.reachability.change")
    /// The key of the status in the notification's `userInfo`.
    public static let statusKey = "AFNetworkingReachabilityNotificationStatusItem"

    private let manager: NetworkReachabilityManager
    private let state = Lock(State())

    /// Watches the network as a whole; `nil` when the system does not tell.
    public convenience init?(queue: DispatchQueue = .main) {
        guard let manager = NetworkReachabilityManager() else { return nil }
        self.init(manager, queue: queue)
    }

    /// Watches the way to a host, by name or by address; `nil` when the system does not tell.
    public convenience init?(domain: String, queue: DispatchQueue = .main) {
        guard let manager = NetworkReachabilityManager(host: domain) else { return nil }
        self.init(manager, queue: queue)
    }

    /// Watches what a provider knows.
    ///
    /// - Parameter queue: where closure and notification come.
    public convenience init(provider: any NetworkPathProvider, queue: DispatchQueue = .main) {
        self.init(NetworkReachabilityManager(provider: provider), queue: queue)
    }

    private init(_ manager: NetworkReachabilityManager, queue: DispatchQueue) {
        self.manager = manager
        manager.listenerQueue = queue
        manager.listener = { [weak self] in self?.changed(to: $0) }
    }

    /// The status as it was told last; `unknown` before the first time.
    public var status: Status { state.withLock { $0.status } }

    /// Whether there is a way, of either kind.
    public var isReachable: Bool { status.rawValue > 0 }

    /// Whether there is one over a mobile network.
    public var isReachableViaWWAN: Bool { status == .reachableViaWWAN }

    /// Whether there is one over another network.
    public var isReachableViaWiFi: Bool { status == .reachableViaWiFi }

    /// Has `closure` told the status when monitoring starts, and each change after that.
    public func setReachabilityStatusChangeBlock(_ closure: (@Sendable (Status) -> Void)?) {
        state.withLock { $0.closure = closure }
    }

    /// Starts to tell; the current status first.
    public func startMonitoring() {
        manager.startListening()
    }

    /// Tells nothing any more. So does letting go of the monitor.
    public func stopMonitoring() {
        manager.stopListening()
    }

    private func changed(to status: NetworkReachabilityManager.NetworkReachabilityStatus) {
        let status: Status =
            switch status {
            case .unknown: .unknown
            case .notReachable: .notReachable
            case .reachable(.wwan): .reachableViaWWAN
            case .reachable(.ethernetOrWiFi): .reachableViaWiFi
            }
        let closure = state.withLock { state in
            state.status = status
            return state.closure
        }
        closure?(status)
        NotificationCenter.default.post(name: Self.didChangeNotification, object: self, userInfo: [Self.statusKey: status])
    }
}
