// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Dispatch

/// Reports whether the network, or a host, is reachable: whether this machine has a route to it over an interface that is up.
///
/// Reachable does not mean that the host responds: only a request finds that out. On Linux routes are looked up over netlink. Thread-safe.
open class NetworkReachabilityManager: @unchecked Sendable {  // the state is behind a lock
    /// The reachability of the network or host.
    public enum NetworkReachabilityStatus: Sendable, Hashable {
        /// The system does not report it.
        case unknown
        /// There is no route.
        case notReachable
        /// There is a route, over an interface of this type.
        case reachable(ConnectionType)
    }

    /// The type of the outgoing interface.
    public enum ConnectionType: Sendable, Hashable {
        /// Any but a cellular interface, including loopback.
        case ethernetOrWiFi
        /// A cellular interface.
        case wwan
    }

    /// A closure called with the status.
    public typealias Listener = @Sendable (NetworkReachabilityStatus) -> Void

    private struct State {
        var listener: Listener?
        var listenerQueue = DispatchQueue.main
        /// Counts starts and stops, so that the listener is not called after a stop.
        var listening = 0
        var task: Task<Void, Never>?
        var lastStatus: NetworkReachabilityStatus?
    }

    private let provider: any NetworkPathProvider
    /// The path is looked up here, as that may block.
    private let queue = DispatchQueue(label: "curlew.reachability", target: .global(qos: .utility))
    private let state = Lock(State())

    /// Creates a manager for the default route; `nil` if the system does not report paths.
    public convenience init?() {
        guard let provider = systemNetworkPathProvider(host: nil) else { return nil }
        self.init(provider: provider)
    }

    /// Creates a manager for a host, by name or address; `nil` for an empty name, and if the system does not report paths.
    ///
    /// The name is resolved each time the status is read, which may block. This machine itself is reachable.
    public convenience init?(host: String) {
        guard !host.isEmpty, let provider = systemNetworkPathProvider(host: host) else { return nil }
        self.init(provider: provider)
    }

    /// Creates a manager for the paths that a provider reports.
    public init(provider: any NetworkPathProvider) {
        self.provider = provider
    }

    deinit {
        stopListening()
    }

    // MARK: Status

    /// Whether there is a route, of either type.
    open var isReachable: Bool { isReachableOnWWAN || isReachableOnEthernetOrWiFi }

    /// Whether there is a route over a cellular interface.
    open var isReachableOnWWAN: Bool { networkReachabilityStatus == .reachable(.wwan) }

    /// Whether there is a route over another interface.
    open var isReachableOnEthernetOrWiFi: Bool { networkReachabilityStatus == .reachable(.ethernetOrWiFi) }

    /// The current status. Looked up at each call, which may block for as long as resolving the host's name takes.
    open var networkReachabilityStatus: NetworkReachabilityStatus {
        guard let path else { return .unknown }
        guard path.interface != nil else { return .notReachable }
        return .reachable(path.isCellular ? .wwan : .ethernetOrWiFi)
    }

    /// The current path, which names the interface; `nil` if the system does not report it. May block like
    /// ``networkReachabilityStatus``.
    open var path: NetworkPath? { provider.currentPath() }

    // MARK: Listening

    /// The queue on which ``listener`` is called; `.main` by default.
    open var listenerQueue: DispatchQueue {
        get { state.withLock { $0.listenerQueue } }
        set { state.withLock { $0.listenerQueue = newValue } }
    }

    /// Called with the status when listening starts, and with each change after that; `nil` by default.
    @preconcurrency open var listener: Listener? {
        get { state.withLock { $0.listener } }
        set { state.withLock { $0.listener = newValue } }
    }

    /// Starts listening, and calls the listener with the current status. Calling it while listening restarts.
    ///
    /// - Returns: `false` if the system does not report changes.
    @discardableResult
    open func startListening() -> Bool {
        stopListening()
        guard let changes = provider.changes() else { return false }
        let listening = state.withLock { $0.listening }
        let task = Task.detached { [weak self] in
            self?.reportLater(listening)
            for await _ in changes { self?.reportLater(listening) }
        }
        let isWanted = state.withLock { state in
            guard state.listening == listening else { return false }
            state.task = task
            return true
        }
        if !isWanted { task.cancel() }
        return true
    }

    /// Stops listening: the listener is not called again. Releasing the manager does the same.
    open func stopListening() {
        let task = state.withLock { state in
            state.listening += 1
            state.lastStatus = nil
            defer { state.task = nil }
            return state.task
        }
        task?.cancel()
    }

    private func reportLater(_ listening: Int) {
        queue.async { [weak self] in self?.report(listening) }
    }

    private func report(_ listening: Int) {
        let status = networkReachabilityStatus
        let queue = state.withLock { state -> DispatchQueue? in
            guard state.listening == listening, state.lastStatus != status else { return nil }
            state.lastStatus = status
            return state.listenerQueue
        }
        queue?.async { [weak self] in
            self?.state.withLock { $0.listening == listening ? $0.listener : nil }?(status)
        }
    }
}
