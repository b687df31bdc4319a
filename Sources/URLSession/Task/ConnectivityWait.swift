// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading
import Dispatch

/// Waits for a route to a host, before the first exchange of a task. Thread-safe.
///
/// What is asked is the kernel's routing table; nothing is sent but, for a name, the lookup of its addresses.
final class ConnectivityWait: Sendable {
    enum Event {
        /// There is no route now. Reported at most once, and before the other events.
        case waits
        /// There is a route, after a time in seconds.
        case found(after: TimeInterval)
        /// There was none in time.
        case timedOut
    }

    private struct State {
        var isOver = false
        var timer: (any DispatchSourceTimer)?
        /// Released at the end, as they retain the task, which retains the wait.
        var notify: (@Sendable (Event) -> Void)?
        var isWanted: (@Sendable () -> Bool)?
    }

    /// In place of the system's, for tests.
    @TaskLocal static var provider: (any NetworkPathProvider)?

    private let host: NetworkReachabilityManager
    /// The default route. A name that can't be resolved has no route, but where there is a network, waiting would not help.
    private let network: NetworkReachabilityManager?
    private let start = ContinuousClock.now
    private let state = Lock(State())
    /// Routes are looked up here, as that may block.
    private let queue = DispatchQueue(label: "curlew.urlsession.connectivity", target: .global(qos: .utility))

    /// `nil` if the system does not report routes, and for a URL without a host on the network.
    convenience init?(for url: URL, _ options: TransferOptions) {
        if let provider = Self.provider {
            self.init(NetworkReachabilityManager(provider: provider), network: nil)
        } else {
            // By the scheme that a proxy is chosen by, for WebSockets too.
            guard let name = options.connectedHost(for: url.absoluteString.withHTTPScheme),
                let host = NetworkReachabilityManager(host: name), let network = NetworkReachabilityManager()
            else { return nil }
            let isAddress = name.utf8.contains(UInt8(ascii: ":")) || name.utf8.allSatisfy { $0 == 0x2E || $0.isASCIIDigit }
            self.init(host, network: isAddress ? nil : network)
        }
    }

    private init(_ host: NetworkReachabilityManager, network: NetworkReachabilityManager?) {
        self.host = host
        self.network = network
    }

    // MARK: Waiting

    /// Looks for a route, and waits for one if there is none.
    ///
    /// - Parameters:
    ///   - limit: how long it waits, in seconds; infinity for no limit.
    ///   - tell: receives what happens, on a queue of the wait.
    ///   - isWanted: asked before each step; `false` ends the wait.
    func run(atMost limit: TimeInterval, _ notify: @escaping @Sendable (Event) -> Void, isWanted: @escaping @Sendable () -> Bool) {
        state.withLock { state in
            guard !state.isOver else { return }
            state.notify = notify
            state.isWanted = isWanted
        }
        queue.async { [self] in
            guard state.withLock({ $0.isWanted })?() ?? false else { return stop() }
            guard hasNoRoute else { return end(.found(after: 0)) }
            state.withLock { $0.notify }?(.waits)
            // Listens before it looks again, so that no change is missed.
            guard listen(to: host), network.map({ listen(to: $0) }) ?? true else { return end(.found(after: waited)) }
            startTimer(limit)
        }
    }

    /// Ends the wait, without another call.
    func stop() { over() }

    private var hasNoRoute: Bool {
        guard host.networkReachabilityStatus == .notReachable else { return false }
        return network.map { $0.networkReachabilityStatus == .notReachable } ?? true
    }

    private var waited: TimeInterval { start.duration(to: .now).seconds }

    /// Listens to a manager, which first reports its status; `false` if the system does not report changes.
    private func listen(to manager: NetworkReachabilityManager) -> Bool {
        manager.listenerQueue = queue
        manager.listener = { [weak self] status in
            guard let self, status != .notReachable else { return }
            end(.found(after: waited))
        }
        guard manager.startListening() else { return false }
        // A stop in the meantime has found nothing to stop.
        if state.withLock({ $0.isOver }) { manager.stopListening() }
        return true
    }

    private func startTimer(_ limit: TimeInterval) {
        guard limit < 1e9 else { return }
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now() + max(limit - waited, 0))
        timer.setEventHandler { [weak self] in self?.end(.timedOut) }
        timer.activate()
        let isOver = state.withLock { state in
            if !state.isOver { state.timer = timer }
            return state.isOver
        }
        if isOver { timer.cancel() }
    }

    private func end(_ event: Event) {
        guard let (notify, isWanted) = over() else { return }
        if isWanted() { notify(event) }
    }

    /// Ends the wait; returns its closures, once.
    @discardableResult
    private func over() -> (notify: @Sendable (Event) -> Void, isWanted: @Sendable () -> Bool)? {
        let (timer, notify, isWanted) = state.withLock { state in
            state.isOver = true
            return (state.timer.take(), state.notify.take(), state.isWanted.take())
        }
        timer?.cancel()
        host.stopListening()
        network?.stopListening()
        guard let notify, let isWanted else { return nil }
        return (notify, isWanted)
    }
}
