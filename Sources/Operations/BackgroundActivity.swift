// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Dispatch

/// Delays the end of the process on SIGTERM and SIGINT until registered work has completed.
///
/// While work is registered, these signals do not end the process at once. After a signal, the process ends as soon as all registered work
/// has ended, at the latest when ``gracePeriod`` has passed and the expiration handlers have run. A second signal ends the grace period.
/// The process is ended by the same signal, or by the handler that the program had installed for it. A signal that the program ignores
/// stays ignored. The service manager, if there is one, is informed how long shutdown may take (`NOTIFY_SOCKET`, sd_notify).
public final class BackgroundActivity: Sendable {
    /// Work that may continue after the process was asked to end.
    public final class Registration: Sendable {
        fileprivate let expiration: Lock<(@Sendable () -> Void)?>
        private let owner: BackgroundActivity

        fileprivate init(owner: BackgroundActivity, expiration: @escaping @Sendable () -> Void) {
            self.owner = owner
            self.expiration = Lock(expiration)
        }

        /// Ends the work. Ending it again does nothing. Releasing the registration does not end it.
        public func end() {
            expiration.withLock { $0 = nil }
            owner.end(self)
        }
    }

    private struct State {
        var registrations: [ObjectIdentifier: Registration] = [:]
        var previous: [Int32: SignalDisposition] = [:]
        var gracePeriod = Duration.seconds(10)
        /// The signal received, and whether the grace period has expired.
        var termination: (signal: Int32, isExpired: Bool)?
    }

    /// The instance shared by the whole process.
    public static let shared = BackgroundActivity()

    /// The time after the expiration handlers, for handlers that do not return and work that does not end although it was cancelled.
    private static let limitAfterExpiry = Duration.seconds(2)
    private static let signals = [SIGTERM, SIGINT]

    private let queue = DispatchQueue(label: "curlew.background-activity")
    private let state = Lock(State())

    private init() {}

    /// How long work may continue after the process was asked to end; 10 seconds by default.
    public var gracePeriod: Duration {
        get { state.withLock { $0.gracePeriod } }
        set { state.withLock { $0.gracePeriod = newValue } }
    }

    /// Registers work.
    ///
    /// - Parameters:
    ///   - queue: the queue on which `expirationHandler` runs.
    ///   - expirationHandler: runs once, just before the process ends; the work has about two seconds to end after it.
    public func begin(queue: DispatchQueue = .main, expirationHandler: @escaping @Sendable () -> Void) -> Registration {
        let registration = Registration(owner: self) { queue.async(execute: expirationHandler) }
        state.withLock { state in
            state.registrations[ObjectIdentifier(registration)] = registration
            if state.registrations.count == 1, state.termination == nil { watch(&state) }
        }
        return registration
    }

    private func end(_ registration: Registration) {
        let isLast = state.withLock { state in
            guard state.registrations.removeValue(forKey: ObjectIdentifier(registration)) != nil,
                state.registrations.isEmpty
            else { return false }
            if state.termination == nil { unwatch(&state) }
            return state.termination != nil
        }
        if isLast { queue.async { self.terminateProcess() } }
    }

    // MARK: Signals

    private func watch(_ state: inout State) {
        guard SignalPipe.open(on: queue, { [weak self] in self?.received($0) }) else { return }
        for signal in Self.signals {
            guard let previous = SignalDisposition.current(signal) else { continue }
            state.previous[signal] = previous
            SignalPipe.install(signal)
        }
    }

    private func unwatch(_ state: inout State) {
        for (signal, previous) in state.previous { previous.restore(for: signal) }
        state.previous = [:]
    }

    private func received(_ signal: Int32) {
        let (isFirst, period, isIdle) = state.withLock { state in
            let isFirst = state.termination == nil
            // Work that ended in the meantime has restored the signal handlers, too late for this signal.
            if isFirst { state.termination = (signal, false) }
            return (isFirst, state.gracePeriod, state.registrations.isEmpty)
        }
        guard isFirst else { return expire() }
        ServiceManager.extendTimeout(by: period + Self.limitAfterExpiry)
        if isIdle { return terminateProcess() }
        queue.asyncAfter(deadline: .now() + period.seconds) { self.expire() }
    }

    /// Runs the expiration handlers: the grace period is over, or a second signal has arrived.
    private func expire() {
        let registrations = state.withLock { state -> [Registration] in
            guard state.termination?.isExpired == false else { return [] }
            state.termination?.isExpired = true
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
        queue.asyncAfter(deadline: .now() + Self.limitAfterExpiry.seconds) { self.terminateProcess() }
    }

    private func terminateProcess() {
        let signal = state.withLock { state -> Int32? in
            defer { unwatch(&state) }
            return state.termination?.signal
        }
        if let signal { SignalDisposition.raise(signal) }
    }
}
