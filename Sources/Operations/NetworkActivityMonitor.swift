// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// Reports whether operations are in flight, for an activity indicator: visible at once, and hidden 0.17 seconds after the last operation,
/// so that it does not flicker.
///
/// Counts the notifications of operations; a program may count other work with it. Thread-safe.
public final class NetworkActivityMonitor: Sendable {
    private struct State {
        var count = 0
        var isVisible = false
        var isEnabled = false
        /// Counts changes, so that an outdated delay has no effect.
        var change = 0
        var block: VisibilityBlock?
        var streams: [AsyncStream<Bool>.Continuation] = []
        /// Those of the block, which they do not retain: of one that was replaced, none is made.
        var calls = OrderedCalls()

        /// Notes whether the indicator should be visible, and reports a change.
        mutating func show(_ isVisible: Bool) {
            guard self.isVisible != isVisible else { return }
            self.isVisible = isVisible
            for stream in streams { stream.yield(isVisible) }
            if let block { calls.add { [weak block] in block?.body(isVisible) } }
        }
    }

    /// Runs work after a delay in seconds.
    typealias Schedule = @Sendable (TimeInterval, @escaping @Sendable () -> Void) -> Void

    /// The monitor shared by the whole program; disabled by default.
    public static let shared = NetworkActivityMonitor()
    /// How long the indicator stays visible after the last operation, in seconds.
    static let invisibilityDelay: TimeInterval = 0.17

    private let state = Lock(State())
    private let observers = Lock<ObserverTokens>(ObserverTokens())
    private let schedule: Schedule

    /// Creates a monitor, which counts nothing until it is enabled.
    public convenience init() {
        let queue = DispatchQueue(label: "curlew.activity")
        self.init { delay, work in queue.asyncAfter(deadline: .now() + delay, execute: work) }
    }

    init(schedule: @escaping Schedule) {
        self.schedule = schedule
    }

    deinit {
        isEnabled = false
        for stream in state.withLock({ $0.streams }) { stream.finish() }
    }

    /// Whether operations are counted; `false` by default.
    public var isEnabled: Bool {
        get { state.withLock { $0.isEnabled } }
        set {
            let isChanged = state.withLock { state in
                defer { state.isEnabled = newValue }
                return state.isEnabled != newValue
            }
            guard isChanged else { return }
            observers.withLock { observers in
                observers.remove()
                guard newValue else { return }
                observers.observe(URLConnectionOperation.didStartNotification) { [weak self] in self?.incrementActivityCount() }
                observers.observe(URLConnectionOperation.didFinishNotification) { [weak self] in self?.decrementActivityCount() }
            }
        }
    }

    /// Whether an indicator should be visible.
    public var isNetworkActivityIndicatorVisible: Bool { state.withLock { $0.isVisible } }

    /// Sets the closure that is called with each change, in the order of the changes: on the thread that caused the change, or on that of
    /// another change, if the closure was being called with that.
    ///
    /// The closure before is not called any more, also not with changes that were due; but one of its calls that has begun on another
    /// thread may still be running when this returns. Changes that were due are not reported to the new closure either. `nil` for none.
    public func setVisibilityChangeBlock(_ closure: (@Sendable (Bool) -> Void)?) {
        let last = state.withLock { state in
            defer { state.block = closure.map { VisibilityBlock($0) } }
            return state.block
        }
        // Released after unlocking.
        withExtendedLifetime(last) {}
    }

    /// The changes from now on.
    public var visibility: AsyncStream<Bool> {
        let (stream, continuation) = AsyncStream.makeStream(of: Bool.self)
        state.withLock { $0.streams.append(continuation) }
        return stream
    }

    /// Increments the count.
    public func incrementActivityCount() {
        change { $0 += 1 }
    }

    /// Decrements the count; never below zero.
    public func decrementActivityCount() {
        change { $0 = max(0, $0 - 1) }
    }

    private func change(_ body: (inout Int) -> Void) {
        let (isActive, number) = state.withLock { state in
            body(&state.count)
            state.change += 1
            let isActive = state.count > 0
            if isActive { state.show(true) }
            return (isActive, state.change)
        }
        guard !isActive else { return makeCalls() }
        schedule(Self.invisibilityDelay) { [weak self] in self?.hide(after: number) }
    }

    /// Hides the indicator, unless something has changed since the change with this number.
    private func hide(after number: Int) {
        state.withLock { state in
            if state.change == number, state.count == 0 { state.show(false) }
        }
        makeCalls()
    }

    private func makeCalls() {
        OrderedCalls.make { isCalling in state.withLock { $0.calls.take(isCalling) } }
    }
}

/// The closure of a monitor.
private final class VisibilityBlock: Sendable {
    let body: @Sendable (Bool) -> Void

    init(_ body: @escaping @Sendable (Bool) -> Void) {
        self.body = body
    }
}

/// Observers of the notification center, which are removed together.
private struct ObserverTokens: @unchecked Sendable {  // the center is thread-safe, and tokens are only passed back to it
    private var tokens: [any NSObjectProtocol] = []

    mutating func observe(_ name: Notification.Name, _ body: @escaping @Sendable () -> Void) {
        tokens.append(NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { _ in body() })
    }

    mutating func remove() {
        for token in tokens { NotificationCenter.default.removeObserver(token) }
        tokens = []
    }
}
