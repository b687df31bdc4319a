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
        var options: StartOptions?
        /// Of the newest start, until accessories are notified of its end.
        var events: RunEvents?
        var waiters: [@Sendable (RequestEnding) -> Void] = []

        /// Whether the newest start has neither begun its callbacks nor been stopped completely.
        var isInFlight: Bool { stage == .running || stage == .stopping }

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
    /// Stops the requests in flight of the start with this number, if it is the newest.
    func stopRequests(_ run: Int) {}
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

    /// The accessories, in the order in which they are notified; `nil` until one is added. A run notifies those that it was started with.
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
    /// `nil`, the default, for the session's. A request or step that is already running when its turn comes, and was not started by this
    /// group, is started again with them afterwards.
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

    private func isDelivering(_ run: Int) -> Bool { group.withLock { $0.run == run && $0.stage == .delivering } }

    // MARK: Control

    /// Notifies the accessories and begins. Has no effect on a running group; a finished group starts again.
    public func start() {
        let (options, events) = (StartOptions(requestOptions), RunEvents(accessories))
        let run = group.withLock { state -> Int? in
            guard !state.isInFlight else { return nil }
            state.run += 1
            state.stage = .running
            state.isStopped = false
            state.options = options
            state.events = events
            return state.run
        }
        guard let run else { return agent.configuration.log("start ignored, already running: \(type(of: self))") }
        RequestGroupAgent.shared.add(self, run)
        events.begin(self)
        // A stop so far may have come before the group was added.
        guard isRunning(run) else { return RequestGroupAgent.shared.remove(self, run) }
        begin(run)
    }

    /// The deadline of the newest start; `nil` for none.
    var deadline: Deadline? { group.withLock { $0.options?.deadline } }

    /// Starts a request or a step of the start with this number, with its options and deadline, and calls `completion` on the callback
    /// queue when it has ended, unless the group has by then.
    ///
    /// If it is already running without these options, it is started again after that.
    func perform(_ member: any WaitableRequest, _ run: Int, _ completion: @escaping @Sendable (RequestEnding) -> Void) {
        let options = group.withLock { $0.run == run ? $0.options : nil }
        guard let options else { return }
        let hasEnded = Lock(false)
        options.apply {
            member.start { ending in
                hasEnded.withLock { $0 = true }
                self.onQueue(run) { completion(ending) }
            } other: { _ in
                hasEnded.withLock { $0 = true }
                self.onQueue(run) { self.perform(member, run, completion) }
            }
        }
        // A stop or end meanwhile may have come before it was started.
        let isOver = group.withLock { $0.run == run && $0.stage != .running }
        if isOver, !hasEnded.withLock({ $0 }) { member.stop() }
    }

    /// Stops the group and its requests: no callback follows. Accessories that were notified of the start are notified of the stop.
    ///
    /// Calling this in a callback of the group suppresses those that have not run yet; the group then counts as stopped.
    public func stop() {
        let (old, run, events) = group.withLock { state in
            defer {
                switch state.stage {
                case .idle, .running: state.stage = .stopping
                case .delivering: state.isStopped = true
                case .stopping, .ended: break
                }
            }
            return (state.stage, state.run, state.events.take())
        }
        // Already being stopped, by another thread or by an accessory that is being notified of the stop.
        if old == .stopping { return }
        events?.post(.willStop, self)
        clearDelegate()
        guard old == .idle || old == .running else { return clearCompletionBlock() }
        let (waiters, blocks) = group.withLock { state -> ([@Sendable (RequestEnding) -> Void], [Block?]) in
            (state.stage, state.isStopped) = (.ended, true)
            defer { state.waiters = [] }
            return (state.waiters, state.takeBlocks())
        }
        // Released outside the lock, because releasing the captures may run arbitrary `deinit` code.
        withExtendedLifetime(blocks) {}
        RequestGroupAgent.shared.remove(self, run)
        stopRequests(run)
        events?.post(.didStop, self)
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

    func start(_ waiter: @escaping @Sendable (RequestEnding) -> Void, other: @escaping @Sendable (RequestEnding) -> Void) {
        let isInFlight = group.withLock { state in
            let isShared = !state.isInFlight || state.options?.isShared ?? true
            state.waiters.append(isShared ? waiter : other)
            return state.isInFlight
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
        let (isCurrent, events) = group.withLock { state -> (Bool, RunEvents?) in
            guard state.run == run, state.stage == .running else { return (false, nil) }
            state.stage = .delivering
            return (true, state.events.take())
        }
        guard isCurrent else { return }
        events?.post(.willStop, self)
        stopRequests(run)
        // Started again by its own callback, or an accessory: delegate and blocks belong to the new start.
        if isDelivering(run) { notifyDelegate(ending) }
        // A stop by the delegate has released the block.
        if isDelivering(run) { group.withLock { ending == .succeeded ? $0.successBlock : $0.failureBlock }?(self) }
        events?.post(.didStop, self)
        let (waiters, blocks, isStopped) = group.withLock { state -> ([@Sendable (RequestEnding) -> Void], [Block?], Bool) in
            // Started again by its own callback: the waiters belong to the new start as well.
            guard state.run == run else { return ([], [], false) }
            state.stage = .ended
            defer { state.waiters = [] }
            return (state.waiters, state.takeBlocks(), state.isStopped)
        }
        // Released outside the lock, because releasing the captures may run arbitrary `deinit` code.
        withExtendedLifetime(blocks) {}
        RequestGroupAgent.shared.remove(self, run)
        for waiter in waiters { waiter(isStopped ? .stopped : ending) }
    }
}
