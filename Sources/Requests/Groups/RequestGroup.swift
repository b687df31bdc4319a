// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import Dispatch

/// What batches and chains have in common: they are started, stopped and told of like a request.
///
/// A running group is kept alive by ``RequestGroupAgent/shared``. All members may be used from any thread.
public class RequestGroup: RunnableRequest, WaitableRequest, @unchecked Sendable {  // the state is behind a lock
    typealias Block = @Sendable (RequestGroup) -> Void

    enum Stage {
        case idle
        case running
        /// Accessories are told that it is stopped; no callback begins any more.
        case stopping
        /// Callbacks run.
        case delivering
        case ended
    }

    private struct State {
        var tag = 0
        var accessories: [any RequestAccessory]?
        var agent: RequestAgent?
        var successBlock: Block?
        var failureBlock: Block?
        var stage = Stage.idle
        /// The number of the newest start; others know by theirs that they are over.
        var run = 0
        var isStopped = false
        var waiters: [@Sendable (RequestEnding) -> Void] = []

        mutating func takeBlocks() -> [Block?] {
            defer { (successBlock, failureBlock) = (nil, nil) }
            return [successBlock, failureBlock]
        }
    }

    private let group = Lock(State())

    init() {}

    // MARK: For subclasses

    /// Begins with the requests; `run` is the number of this start.
    func begin(_ run: Int) {}
    /// Stops the requests that are on their way.
    func stopRequests() {}
    /// Tells the delegate.
    func tellDelegate(_ ending: RequestEnding) {}
    /// Lets go of the delegate.
    func clearDelegate() {}
    /// The agent of the first request.
    var firstAgent: RequestAgent? { nil }
    /// Why it failed.
    var endingError: (any Error)? { nil }

    // MARK: What the user sets

    /// A number of the user's, 0 by default.
    public var tag: Int {
        get { group.withLock { $0.tag } }
        set { group.withLock { $0.tag = newValue } }
    }

    /// The accessories, in the order in which they are told; `nil` as long as none was added.
    public var requestAccessories: [any RequestAccessory]? {
        get { group.withLock { $0.accessories } }
        set { group.withLock { $0.accessories = newValue } }
    }

    /// Adds an accessory behind those that are there.
    public func addAccessory(_ accessory: any RequestAccessory) {
        group.withLock { $0.accessories = ($0.accessories ?? []) + [accessory] }
    }

    var addedAccessories: [any RequestAccessory] { requestAccessories ?? [] }

    /// Whose callback queue the group's callbacks run on; by default that of the first request, else ``RequestAgent/shared``.
    public var agent: RequestAgent {
        get { group.withLock { $0.agent } ?? firstAgent ?? .shared }
        set { group.withLock { $0.agent = newValue } }
    }

    // MARK: What it is

    /// Whether it was started and is not over.
    public var isExecuting: Bool { stage == .running }
    /// Whether it was stopped; until it is started again.
    public var isCancelled: Bool { group.withLock { $0.isStopped } }

    private var stage: Stage { group.withLock { $0.stage } }

    /// Whether the start with a number is the newest, and not over.
    func isRunning(_ run: Int) -> Bool { group.withLock { $0.run == run && $0.stage == .running } }

    // MARK: Control

    /// Tells the accessories, and begins. A group that runs is left alone; one that is over begins anew.
    public func start() {
        let run = group.withLock { state -> Int? in
            guard state.stage != .running, state.stage != .stopping else { return nil }
            state.run += 1
            state.stage = .running
            state.isStopped = false
            return state.run
        }
        guard let run else { return agent.configuration.log("already started: \(type(of: self))") }
        RequestGroupAgent.shared.add(self, run)
        toggleAccessoriesWillStart()
        begin(run)
    }

    /// Ends the group and its requests: no callback follows. The accessories are told, unless it is over.
    public func stop() {
        let old = group.withLock { state in
            defer { if state.stage == .idle || state.stage == .running { state.stage = .stopping } }
            return state.stage
        }
        // By another thread, or the accessory that is told of it.
        if old == .stopping { return }
        let isOver = old == .delivering || old == .ended
        if !isOver { toggleAccessoriesWillStop() }
        clearDelegate()
        let (run, waiters, blocks) = group.withLock { state -> (Int, [@Sendable (RequestEnding) -> Void], [Block?]) in
            if state.stage != .ended { state.isStopped = true }
            guard !isOver else { return (state.run, [], state.takeBlocks()) }
            state.stage = .ended
            defer { state.waiters = [] }
            return (state.run, state.waiters, state.takeBlocks())
        }
        // What they hold is released outside of the lock.
        withExtendedLifetime(blocks) {}
        RequestGroupAgent.shared.remove(self, run)
        stopRequests()
        if !isOver { toggleAccessoriesDidStop() }
        for waiter in waiters { waiter(.stopped) }
    }

    /// Releases both blocks. Done by itself when the group is over.
    public func clearCompletionBlock() {
        setBlocks(success: nil, failure: nil)
    }

    func setBlocks(success: Block?, failure: Block?) {
        let old = group.withLock { state in
            defer { (state.successBlock, state.failureBlock) = (success, failure) }
            return state.takeBlocks()
        }
        withExtendedLifetime(old) {}
    }

    var successBlock: Block? {
        get { group.withLock { $0.successBlock } }
        set {
            let old = group.withLock { state in
                defer { state.successBlock = newValue }
                return state.successBlock
            }
            withExtendedLifetime(old) {}
        }
    }

    var failureBlock: Block? {
        get { group.withLock { $0.failureBlock } }
        set {
            let old = group.withLock { state in
                defer { state.failureBlock = newValue }
                return state.failureBlock
            }
            withExtendedLifetime(old) {}
        }
    }

    func start(_ waiter: @escaping @Sendable (RequestEnding) -> Void) {
        let isUnderWay = group.withLock { state in
            state.waiters.append(waiter)
            return state.stage == .running || state.stage == .stopping
        }
        // One that ends in the meantime is not to be started again.
        if !isUnderWay { start() }
    }

    // MARK: The end

    /// Has something done on the callback queue, unless the start with the number is over by then.
    func onQueue(_ run: Int, _ work: @escaping @Sendable () -> Void) {
        agent.configuration.callbackQueue.async {
            if self.isRunning(run) { work() }
        }
    }

    /// Tells everybody how it ended; on the callback queue.
    func conclude(_ run: Int, _ ending: RequestEnding) {
        let isMine = group.withLock { state in
            guard state.run == run, state.stage == .running else { return false }
            state.stage = .delivering
            return true
        }
        guard isMine else { return }
        toggleAccessoriesWillStop()
        stopRequests()
        tellDelegate(ending)
        // A stop by the delegate lets go of the block.
        group.withLock { ending == .succeeded ? $0.successBlock : $0.failureBlock }?(self)
        toggleAccessoriesDidStop()
        let (waiters, blocks) = group.withLock { state -> ([@Sendable (RequestEnding) -> Void], [Block?]) in
            // Started anew by its own callback: the blocks and who waits are the new start's.
            guard state.run == run else { return ([], []) }
            state.stage = .ended
            defer { state.waiters = [] }
            return (state.waiters, state.takeBlocks())
        }
        // What they hold is released outside of the lock.
        withExtendedLifetime(blocks) {}
        RequestGroupAgent.shared.remove(self, run)
        for waiter in waiters { waiter(ending) }
    }
}

// MARK: - Started in other ways

extension RequestGroup {
    /// Has the three called as by an accessory, each once.
    func addEventAccessory(
        _ willStart: RequestEventAccessory.Block?, _ willStop: RequestEventAccessory.Block?, _ didStop: RequestEventAccessory.Block?
    ) {
        addAccessory(RequestEventAccessory(willStart: willStart, willStop: willStop, didStop: didStop))
    }

    /// Starts when all that were started like this before are over.
    func startInTurn(_ filter: (@Sendable () -> Bool)?, success: Block?, failure: Block?) {
        StartQueue.shared.add { [self] done in
            guard filter?() ?? true else { return done() }
            setBlocks(success: success, failure: failure)
            start { _ in done() }
        }
    }

    /// Starts, and waits for the end; cancelling the waiting task stops the group.
    func ending() async -> RequestEnding {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                start { continuation.resume(returning: $0) }
                // The handler may have run before there was anything to be stopped.
                if Task.isCancelled { stop() }
            }
        } onCancel: {
            stop()
        }
    }

    /// The same; throws why it has failed.
    func successfulEnding() async throws {
        try Task.checkCancellation()
        switch await ending() {
        case .succeeded: return
        case .stopped: throw CancellationError()
        case .failed: throw endingError ?? CancellationError()
        }
    }
}

/// What says when it is over.
protocol WaitableRequest: RunnableRequest {
    /// Starts; `waiter` is told of the end, after all callbacks. Of what runs already, of that end.
    func start(_ waiter: @escaping @Sendable (RequestEnding) -> Void)
    /// Why it has failed, if it has.
    var endingError: (any Error)? { get }
    var agent: RequestAgent { get }
    /// The accessories that were set and added, whatever a subclass names.
    var addedAccessories: [any RequestAccessory] { get }
}

extension BaseRequest: WaitableRequest {
    var endingError: (any Error)? { error }
    var addedAccessories: [any RequestAccessory] { state.withLock { $0.accessories } ?? [] }
}
