// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// Gives work time to end when the process is asked to end: at SIGTERM and SIGINT.
///
/// As long as something is registered these signals do not end the process at once. When one comes, the process ends as soon as all that is
/// registered has ended; at the latest when ``gracePeriod`` is over and the handlers have run. A second signal ends the period. The process
/// ends by the signal, or as its own handler, which was there before, has it. A signal that the program ignores stays ignored. The service
/// manager is told how long it takes, if there is one (`NOTIFY_SOCKET`, sd_notify).
public final class BackgroundActivity: Sendable {
    /// Work that goes on when the process is asked to end.
    public final class Registration: Sendable {
        fileprivate let expiration: Lock<(@Sendable () -> Void)?>
        private let owner: BackgroundActivity

        fileprivate init(owner: BackgroundActivity, expiration: @escaping @Sendable () -> Void) {
            self.owner = owner
            self.expiration = Lock(expiration)
        }

        /// The work is over. Again does nothing. Letting go of the registration does not end it.
        public func end() {
            expiration.withLock { $0 = nil }
            owner.end(self)
        }
    }

    private struct State {
        var registrations: [ObjectIdentifier: Registration] = [:]
        var previous: [Int32: SignalDisposition] = [:]
        var gracePeriod = Duration.seconds(10)
        /// The signal that came, and what ends the period.
        var ending: (signal: Int32, isExpired: Bool)?
    }

    /// The process's own.
    public static let shared = BackgroundActivity()

    /// For handlers that do not return, and work that does not end though it was cancelled.
    private static let limitAfterExpiry = Duration.seconds(2)
    private static let signals = [SIGTERM, SIGINT]

    private let queue = DispatchQueue(label: "curlew.background-activity")
    private let state = Lock(State())

    private init() {}

    /// How long work may go on after the process was asked to end; 10 seconds by default.
    public var gracePeriod: Duration {
        get { state.withLock { $0.gracePeriod } }
        set { state.withLock { $0.gracePeriod = newValue } }
    }

    /// Registers work.
    ///
    /// - Parameters:
    ///   - queue: where `expirationHandler` runs.
    ///   - expirationHandler: runs once, just before the time is up; it has about two seconds to have the work end.
    public func begin(queue: DispatchQueue = .main, expirationHandler: @escaping @Sendable () -> Void) -> Registration {
        let registration = Registration(owner: self) { queue.async(execute: expirationHandler) }
        state.withLock { state in
            state.registrations[ObjectIdentifier(registration)] = registration
            if state.registrations.count == 1, state.ending == nil { watch(&state) }
        }
        return registration
    }

    private func end(_ registration: Registration) {
        let isLast = state.withLock { state in
            guard state.registrations.removeValue(forKey: ObjectIdentifier(registration)) != nil,
                state.registrations.isEmpty
            else { return false }
            if state.ending == nil { unwatch(&state) }
            return state.ending != nil
        }
        if isLast { queue.async { self.endProcess() } }
    }

    // MARK: Signals

    private func watch(_ state: inout State) {
        guard SignalPipe.open(on: queue, { [weak self] in self?.received($0) }) else { return }
        for signal in Self.signals {
            guard let previous = SignalDisposition.current(signal) else { continue }
            state.previous[signal] = previous
            SignalPipe.take(signal)
        }
    }

    private func unwatch(_ state: inout State) {
        for (signal, previous) in state.previous { previous.restore(for: signal) }
        state.previous = [:]
    }

    private func received(_ signal: Int32) {
        let (isFirst, period, isIdle) = state.withLock { state in
            let isFirst = state.ending == nil
            // What has ended in between has given the signals back too late for this one.
            if isFirst { state.ending = (signal, false) }
            return (isFirst, state.gracePeriod, state.registrations.isEmpty)
        }
        guard isFirst else { return expire() }
        ServiceManager.extendTimeout(by: period + Self.limitAfterExpiry)
        if isIdle { return endProcess() }
        queue.asyncAfter(deadline: .now() + period.timeInterval) { self.expire() }
    }

    /// The time is up.
    private func expire() {
        let registrations = state.withLock { state -> [Registration] in
            guard state.ending?.isExpired == false else { return [] }
            state.ending?.isExpired = true
            return Array(state.registrations.values)
        }
        guard !registrations.isEmpty else { return }
        for registration in registrations {
            let handler = registration.expiration.withLock { handler in
                defer { handler = nil }
                return handler
            }
            handler?()
        }
        queue.asyncAfter(deadline: .now() + Self.limitAfterExpiry.timeInterval) { self.endProcess() }
    }

    private func endProcess() {
        let signal = state.withLock { state -> Int32? in
            defer { unwatch(&state) }
            return state.ending?.signal
        }
        if let signal { SignalDisposition.raise(signal) }
    }
}

extension Duration {
    var timeInterval: TimeInterval {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
