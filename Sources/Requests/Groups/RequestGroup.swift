// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import Dispatch

/// The common part of batches and chains: they are started, stopped and observed like a request.
///
/// ``RequestGroupAgent/shared`` retains a running group. All members are thread-safe.
public class RequestGroup: RunnableRequest, WaitableRequest, @unchecked Sendable {  // the state is behind a lock
    typealias Block = @Sendable (RequestGroup) -> Void

    enum Stage {
        case idle
        case running
        /// Accessories are being notified of the stop; no further callback begins.
        case stopping
        /// Callbacks are running.
        case delivering
        case ended
    }

    private struct State {
        var tag = 0
        var accessories: [any RequestAccessory]?
        var agent: RequestAgent?
        var requestOptions: RequestOptions?
        var successBlock: Block?
        var failureBlock: Block?
        var stage = Stage.idle
        /// The number of the newest start, by which outdated starts are recognized.
        var run = 0
        var isStopped = false
        var bounds = GroupOptions()
        var waiters: [@Sendable (RequestEnding) -> Void] = []

        mutating func takeBlocks() -> [Block?] {
            defer { (successBlock, failureBlock) = (nil, nil) }
            return [successBlock, failureBlock]
        }
    }

    private let group = Lock(State())

    init() {}

    // MARK: Overridden by subclasses

    /// Begins sending the requests; `run` is the number of this start.
    func begin(_ run: Int) {}
    /// Stops the requests in flight.
    func stopRequests() {}
    /// Notifies the delegate.
    func notifyDelegate(_ ending: RequestEnding) {}
    /// Releases the delegate.
    func clearDelegate() {}
    /// The agent of the first request.
    var firstAgent: RequestAgent? { nil }
    /// The error the group failed with.
    var endingError: (any Error)? { nil }

    // MARK: Settings

    /// A number for the caller's use, 0 by default.
    public var tag: Int {
        get { group.withLock { $0.tag } }
        set { group.withLock { $0.tag = newValue } }
    }

    /// The accessories, in the order in which they are notified; `nil` until one is added.
    public var requestAccessories: [any RequestAccessory]? {
        get { group.withLock { $0.accessories } }
        set { group.withLock { $0.accessories = newValue } }
    }

    /// Appends an accessory.
    public func addAccessory(_ accessory: any RequestAccessory) {
        group.withLock { $0.accessories = ($0.accessories ?? []) + [accessory] }
    }

    var addedAccessories: [any RequestAccessory] { requestAccessories ?? [] }

    /// The agent whose callback queue runs the group's callbacks; by default that of the first request, otherwise ``RequestAgent/shared``.
    public var agent: RequestAgent {
        get { group.withLock { $0.agent } ?? firstAgent ?? .shared }
        set { group.withLock { $0.agent = newValue } }
    }

    /// The settings of its requests, as far as they have none of their own (``BaseRequest/requestOptions``), read when the group is started;
    /// `nil`, the default, for the session's.
    ///
    /// The deadline is that of the whole group, from its start, with all attempts and delays; so is that of
    /// ``withDeadline(_:isolation:_:)-(Duration,_,_)`` around the start. The request that is running then fails with
    /// ``TransferFailure/Kind/deadline``, and so do those that would be started later.
    public var requestOptions: RequestOptions? {
        get { group.withLock { $0.requestOptions } }
        set { group.withLock { $0.requestOptions = newValue } }
    }

    // MARK: State

    /// Whether the group was started and has not finished.
    public var isExecuting: Bool { stage == .running }
    /// Whether the group was stopped; reset when it is started again.
    public var isCancelled: Bool { group.withLock { $0.isStopped } }

    private var stage: Stage { group.withLock { $0.stage } }

    /// Whether the start with this number is the newest and still running.
    func isRunning(_ run: Int) -> Bool { group.withLock { $0.run == run && $0.stage == .running } }

    // MARK: Control

    /// Notifies the accessories and begins. Has no effect on a running group; a finished group starts again.
    public func start() {
        let run = group.withLock { state -> Int? in
            guard state.stage != .running, state.stage != .stopping else { return nil }
            state.run += 1
            state.stage = .running
            state.isStopped = false
            return state.run
        }
        guard let run else { return agent.configuration.log("start ignored, already running: \(type(of: self))") }
        RequestGroupAgent.shared.add(self, run)
        let bounds = group.withLock { state in
            state.bounds = GroupOptions(state.requestOptions)
            return state.bounds
        }
        toggleAccessoriesWillStart()
        bounds.apply { begin(run) }
    }

    /// The deadline of the newest start; `nil` for none.
    var deadline: Deadline? { group.withLock { $0.bounds.deadline } }

    /// Starts requests with the options and the deadline of the group's newest start, which is on another thread.
    func inBounds(_ body: () -> Void) {
        group.withLock { $0.bounds }.apply(body)
    }

    /// Stops the group and its requests: no callback follows. The accessories are notified, unless the group has finished.
    public func stop() {
        let old = group.withLock { state in
            defer { if state.stage == .idle || state.stage == .running { state.stage = .stopping } }
            return state.stage
        }
        // Already being stopped, by another thread or by an accessory that is being notified of the stop.
        if old == .stopping { return }
        let isComplete = old == .delivering || old == .ended
        if !isComplete { toggleAccessoriesWillStop() }
        clearDelegate()
        let (run, waiters, blocks) = group.withLock { state -> (Int, [@Sendable (RequestEnding) -> Void], [Block?]) in
            if state.stage != .ended { state.isStopped = true }
            guard !isComplete else { return (state.run, [], state.takeBlocks()) }
            state.stage = .ended
            defer { state.waiters = [] }
            return (state.run, state.waiters, state.takeBlocks())
        }
        // Released outside the lock, because releasing the captures may run arbitrary `deinit` code.
        withExtendedLifetime(blocks) {}
        RequestGroupAgent.shared.remove(self, run)
        stopRequests()
        if !isComplete { toggleAccessoriesDidStop() }
        for waiter in waiters { waiter(.stopped) }
    }

    /// Releases both completion blocks. Called automatically when the group finishes.
    public func clearCompletionBlock() {
        // Released outside the lock, because releasing the captures may run arbitrary `deinit` code.
        withExtendedLifetime(group.withLock { $0.takeBlocks() }) {}
    }

    var successBlock: Block? {
        get { group.withLock { $0.successBlock } }
        set { replace(\.successBlock, with: newValue) }
    }

    var failureBlock: Block? {
        get { group.withLock { $0.failureBlock } }
        set { replace(\.failureBlock, with: newValue) }
    }

    private func replace(_ path: WritableKeyPath<State, Block?>, with block: Block?) {
        let old = group.withLock { state in
            defer { state[keyPath: path] = block }
            return state[keyPath: path]
        }
        withExtendedLifetime(old) {}
    }

    /// The block of a subclass as one of any group.
    static func erase<Group: RequestGroup>(_ block: (@Sendable (Group) -> Void)?) -> Block? {
        guard let block else { return nil }
        return { group in
            if let group = group as? Group { block(group) }
        }
    }

    func start(_ waiter: @escaping @Sendable (RequestEnding) -> Void) {
        let isInFlight = group.withLock { state in
            state.waiters.append(waiter)
            return state.stage == .running || state.stage == .stopping
        }
        // Decided under the lock: a group that ends in the meantime must not be started again.
        if !isInFlight { start() }
    }

    // MARK: Completion

    /// Runs `work` on the callback queue, unless the start with this number is no longer running by then.
    func onQueue(_ run: Int, _ work: @escaping @Sendable () -> Void) {
        agent.configuration.callbackQueue.async {
            if self.isRunning(run) { work() }
        }
    }

    /// Finishes a start: calls accessories, delegate, block and waiters; on the callback queue.
    func finish(_ run: Int, _ ending: RequestEnding) {
        let isCurrent = group.withLock { state in
            guard state.run == run, state.stage == .running else { return false }
            state.stage = .delivering
            return true
        }
        guard isCurrent else { return }
        toggleAccessoriesWillStop()
        stopRequests()
        notifyDelegate(ending)
        // A stop by the delegate has released the block.
        group.withLock { ending == .succeeded ? $0.successBlock : $0.failureBlock }?(self)
        toggleAccessoriesDidStop()
        let (waiters, blocks) = group.withLock { state -> ([@Sendable (RequestEnding) -> Void], [Block?]) in
            // Started again by its own callback: blocks and waiters belong to the new start.
            guard state.run == run else { return ([], []) }
            state.stage = .ended
            defer { state.waiters = [] }
            return (state.waiters, state.takeBlocks())
        }
        // Released outside the lock, because releasing the captures may run arbitrary `deinit` code.
        withExtendedLifetime(blocks) {}
        RequestGroupAgent.shared.remove(self, run)
        for waiter in waiters { waiter(ending) }
    }
}

/// What the start of a group sets for the requests that it starts, which may be on another thread and much later.
struct GroupOptions: Sendable {
    /// The options of the group that is starting a request; `nil` without one.
    @TaskLocal static var current: RequestOptions?

    private var options: RequestOptions?
    private(set) var deadline: Deadline?

    init() {}

    /// On the thread of the call that starts the group.
    init(_ options: RequestOptions?) {
        self.options = options?.filled(from: Self.current) ?? Self.current
        self.options?.deadline = nil
        deadline = Deadline.earliest(options?.deadline)
    }

    func apply(_ body: () -> Void) {
        guard options != nil || deadline != nil else { return body() }
        Deadline.with(deadline) { Self.$current.withValue(options, operation: body) }
    }
}
