// SPDX-License-Identifier: Apache-2.0
import Curlew
import Dispatch

/// Stops the tool's work early, on a signal or a timeout, and records the reason.
final class Stopper: @unchecked Sendable {  // the state is guarded by a lock; the sources are set once, before any event
    /// How long cleanup may take: cancellation can't interrupt a write to a pipe that is not being read.
    private static let grace = DispatchTimeInterval.seconds(1)

    private let lock = NSLock()
    private var reason: Outcome?
    private var isDone = false
    private var cancel: (@Sendable () -> Void)?
    private var sources: [any DispatchSourceProtocol] = []
    private let queue = DispatchQueue(label: "curlew.stopper")

    /// Creates a stopper and starts handling the signals.
    init() {
        sources = [
            source(of: SIGINT, Outcome(status: .interrupted)),
            source(of: SIGTERM, Outcome(status: .terminated)),
        ]
    }

    /// Registers the work that `cancel` cancels; cancels it immediately if a signal has arrived before.
    func watch(timeout: Duration?, cancel: @escaping @Sendable () -> Void) {
        let isStopped = lock.withLock {
            self.cancel = cancel
            return reason != nil
        }
        if isStopped { cancel() }
        guard let timeout else { return }
        let seconds = Double(timeout.components.seconds) + Double(timeout.components.attoseconds) / 1e18
        queue.asyncAfter(deadline: .now() + seconds) { self.stop(Self.outcome(after: timeout)) }
    }

    /// What ends at `--deadline`.
    static func outcome(after timeout: Duration) -> Outcome {
        Outcome(status: .timeout, message: "timed out after \(number(timeout / .seconds(1))) s (--deadline)")
    }

    /// Ends the supervision when the work is complete. Returns why it was stopped; `nil` if it was not.
    func finish() -> Outcome? {
        lock.withLock {
            isDone = true
            return reason
        }
    }

    private func source(of number: Int32, _ outcome: Outcome) -> any DispatchSourceProtocol {
        signal(number, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
        source.setEventHandler { [weak self] in self?.stop(outcome) }
        source.resume()
        return source
    }

    private func stop(_ outcome: Outcome) {
        let (isFirst, cancel) = lock.withLock {
            defer { reason = reason ?? outcome }
            return (reason == nil, self.cancel)
        }
        guard isFirst else { return }
        cancel?()
        queue.asyncAfter(deadline: .now() + Self.grace) {
            guard self.lock.withLock({ !self.isDone }) else { return }
            Credentials.restoreTerminal()
            Tool.report(outcome)
            _exit(outcome.status.rawValue)
        }
    }

    /// The number without a fraction of zero.
    static func number(_ seconds: Double) -> String {
        seconds == seconds.rounded() && seconds < 1e9 ? "\(Int(seconds))" : "\(seconds)"
    }
}
