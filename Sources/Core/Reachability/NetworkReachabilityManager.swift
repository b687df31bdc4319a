// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Dispatch

/// Tells whether the network, or a host, can be reached as far as this machine knows: whether a route leads there, over an interface that
/// is up. That anybody answers at its end is not sure; a request finds out.
///
/// On Linux the kernel is asked by netlink. All members may be used from any thread.
open class NetworkReachabilityManager: @unchecked Sendable {  // the state is behind a lock
    /// What is known.
    public enum NetworkReachabilityStatus: Sendable, Hashable {
        /// The system does not tell.
        case unknown
        /// No way leads there.
        case notReachable
        /// A way leads there.
        case reachable(ConnectionType)
    }

    /// What kind of network a way begins with.
    public enum ConnectionType: Sendable, Hashable {
        /// Any but a mobile one; the loopback interface, too.
        case ethernetOrWiFi
        /// A mobile one.
        case wwan
    }

    /// Is told of the status.
    public typealias Listener = @Sendable (NetworkReachabilityStatus) -> Void

    private struct State {
        var listener: Listener?
        var listenerQueue = DispatchQueue.main
        /// Counts starts and stops, so that nothing is told after a stop.
        var listening = 0
        var task: Task<Void, Never>?
        var lastStatus: NetworkReachabilityStatus?
    }

    private let provider: any NetworkPathProvider
    /// Where the path is found out: that may block.
    private let queue = DispatchQueue(label: "curlew.reachability", target: .global(qos: .utility))
    private let state = Lock(State())

    /// Watches the network as a whole; `nil` when the system does not tell.
    public convenience init?() {
        guard let provider = systemNetworkPathProvider(host: nil) else { return nil }
        self.init(provider: provider)
    }

    /// Watches the way to a host, by name or address; `nil` for an empty name, and when the system does not tell.
    ///
    /// The name is resolved whenever the status is wanted, which may block. A host on this machine can be reached.
    public convenience init?(host: String) {
        guard !host.isEmpty, let provider = systemNetworkPathProvider(host: host) else { return nil }
        self.init(provider: provider)
    }

    /// Watches what a provider knows.
    public init(provider: any NetworkPathProvider) {
        self.provider = provider
    }

    deinit {
        stopListening()
    }

    // MARK: Status

    /// Whether there is a way, of either kind.
    open var isReachable: Bool { isReachableOnWWAN || isReachableOnEthernetOrWiFi }

    /// Whether there is one over a mobile network.
    open var isReachableOnWWAN: Bool { networkReachabilityStatus == .reachable(.wwan) }

    /// Whether there is one over another network.
    open var isReachableOnEthernetOrWiFi: Bool { networkReachabilityStatus == .reachable(.ethernetOrWiFi) }

    /// The status now. Asks the system each time, which may block for as long as resolving the host's name takes.
    open var networkReachabilityStatus: NetworkReachabilityStatus {
        guard let path else { return .unknown }
        guard path.interface != nil else { return .notReachable }
        return .reachable(path.isCellular ? .wwan : .ethernetOrWiFi)
    }

    /// The path now, with what the status leaves out; `nil` when the system does not tell. May block as the status may.
    open var path: NetworkPath? { provider.currentPath() }

    // MARK: Listening

    /// Where ``listener`` is called; `.main` by default.
    open var listenerQueue: DispatchQueue {
        get { state.withLock { $0.listenerQueue } }
        set { state.withLock { $0.listenerQueue = newValue } }
    }

    /// Is told of the status when listening starts, and of each change after that.
    @preconcurrency open var listener: Listener? {
        get { state.withLock { $0.listener } }
        set { state.withLock { $0.listener = newValue } }
    }

    /// Starts to tell the listener, of the current status first; again after ``stopListening()``, and when it is called again.
    ///
    /// - Returns: `false` when the system does not tell of changes.
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

    /// Tells the listener nothing any more. So does letting go of the manager.
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
