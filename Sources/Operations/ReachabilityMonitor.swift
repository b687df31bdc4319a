// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// Monitors whether the network, or a host, is reachable, with AFNetworking's states; `unknown` until it is started.
///
/// Built on Core's ``NetworkReachabilityManager``, which defines what reachable means. All members are thread-safe.
public final class ReachabilityMonitor: Sendable {
    /// The reachability status.
    public enum Status: Int, Sendable, Hashable {
        /// Not known yet.
        case unknown = -1
        /// There is no route.
        case notReachable = 0
        /// Reachable over a mobile network.
        case reachableViaWWAN = 1
        /// Reachable over another network.
        case reachableViaWiFi = 2
    }

    private struct State {
        var status = Status.unknown
        var closure: (@Sendable (Status) -> Void)?
    }

    /// Monitors the network as a whole; `nil` if the system does not report paths.
    public static let shared = ReachabilityMonitor()
    /// Posted at each change, on the callback queue; the object is the monitor, and `userInfo` has the ``Status`` under ``statusKey``.
    /// Foundation of Swift 6.2 finds no observers of such an object on Linux: observe all (`object: nil`), and compare the object.
    public static let didChangeNotification = Notification.Name("com.alamofire.networking.reachability.change")
    /// The key of the status in the notification's `userInfo`.
    public static let statusKey = "AFNetworkingReachabilityNotificationStatusItem"

    private let manager: NetworkReachabilityManager
    private let state = Lock(State())

    /// Creates a monitor of the network as a whole; `nil` if the system does not report paths.
    public convenience init?(queue: DispatchQueue = .main) {
        guard let manager = NetworkReachabilityManager() else { return nil }
        self.init(manager, queue: queue)
    }

    /// Creates a monitor of a host, given by name or address; `nil` if the system does not report paths.
    public convenience init?(domain: String, queue: DispatchQueue = .main) {
        guard let manager = NetworkReachabilityManager(host: domain) else { return nil }
        self.init(manager, queue: queue)
    }

    /// Creates a monitor of a provider's paths.
    ///
    /// - Parameters:
    ///   - provider: reports the paths.
    ///   - queue: the queue for the closure and the notification.
    public convenience init(provider: any NetworkPathProvider, queue: DispatchQueue = .main) {
        self.init(NetworkReachabilityManager(provider: provider), queue: queue)
    }

    private init(_ manager: NetworkReachabilityManager, queue: DispatchQueue) {
        self.manager = manager
        manager.listenerQueue = queue
        manager.listener = { [weak self] in self?.changed(to: $0) }
    }

    /// The last reported status; `unknown` before the first report.
    public var status: Status { state.withLock { $0.status } }

    /// Whether the network or host is reachable, over either kind of network.
    public var isReachable: Bool { status.rawValue > 0 }

    /// Whether it is reachable over a mobile network.
    public var isReachableViaWWAN: Bool { status == .reachableViaWWAN }

    /// Whether it is reachable over another network.
    public var isReachableViaWiFi: Bool { status == .reachableViaWiFi }

    /// Sets the closure that receives the status when monitoring starts, and each change after that.
    public func setReachabilityStatusChangeBlock(_ closure: (@Sendable (Status) -> Void)?) {
        state.withLock { $0.closure = closure }
    }

    /// Starts monitoring; the current status is reported first.
    public func startMonitoring() {
        manager.startListening()
    }

    /// Stops monitoring. Releasing the monitor does the same.
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
