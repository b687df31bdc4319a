// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP
import Dispatch

/// The queue of commands for the thread, and the thread's sleep state.
final class Mailbox: Sendable {
    /// What is left to do once a command was queued, or was not.
    enum Posted: Sendable {
        /// The thread to wake, if it sleeps.
        case accepted(WakeUp?)
        /// The first command: the caller has to start the thread.
        case needsThread
        /// The mailbox is closed, or has no thread to visit.
        case refused(CurlTransport.Command)
    }

    fileprivate struct State {
        var commands: [CurlTransport.Command] = []
        var hasThread = false
        var isClosed = false
        var isSleeping = false
        var wakeUp: WakeUp?
        var connectionObserver: (@Sendable (ConnectionEvent) -> Void)?
        /// The tasks that wait for the end of the closed mailbox's thread.
        var waiters: [CheckedContinuation<Void, Never>] = []
        /// In front of several loops.
        weak var dispatcher: LoopDispatcher?
    }

    /// The number of the loop among those of its transport.
    let index: Int
    /// The number of loops.
    let count: Int

    let configuration: TransportConfiguration
    private let makePoller: @Sendable () throws -> any Poller
    private let state = Lock(State())

    init(
        configuration: TransportConfiguration, makePoller: @escaping @Sendable () throws -> any Poller, index: Int = 0, count: Int = 1
    ) {
        self.index = index
        self.count = count
        self.configuration = configuration
        self.makePoller = makePoller
    }

    /// The observer of the connections; read once, when the thread starts.
    var connectionObserver: (@Sendable (ConnectionEvent) -> Void)? {
        get { state.withLock { $0.connectionObserver } }
        set { state.withLock { $0.connectionObserver = newValue } }
    }

    /// Returns the observer of the connections, and releases it.
    func takeConnectionObserver() -> (@Sendable (ConnectionEvent) -> Void)? {
        state.withLock { state in
            defer { state.connectionObserver = nil }
            return state.connectionObserver
        }
    }

    /// Sets the dispatcher in front of the mailbox.
    func setDispatcher(_ dispatcher: LoopDispatcher) {
        state.withLock { $0.dispatcher = dispatcher }
    }

    /// The dispatcher in front of several loops; `nil` once it has ended, and for a single loop.
    var dispatcher: LoopDispatcher? { state.withLock { $0.dispatcher } }

    /// Enqueues a command, then wakes the thread if it sleeps, or starts it. After the mailbox was closed, the command is refused.
    func post(_ command: CurlTransport.Command) {
        finish(put(command))
    }

    /// Does what is left after ``put(_:)``, which users' code may follow: not while a lock is held.
    func finish(_ posted: Posted) {
        switch posted {
        case .accepted(let wakeUp): wakeUp?.signal()
        case .refused(let command): command.refuse(CurlewError.sessionInvalidated, by: self)
        case .needsThread: startThread()
        }
    }

    /// Queues a command for a transfer, on its loop: this one, unless there are several. `nil` if no loop has the transfer.
    func put(_ command: CurlTransport.Command, for number: Int) -> QueuedCommand? {
        guard count > 1 else { return QueuedCommand(self, put(command)) }
        return dispatcher?.put(command, for: number)
    }

    /// Queues a transfer for its loop.
    func put(_ transfer: CurlTransfer) -> QueuedCommand {
        if count > 1, let dispatcher { return dispatcher.put(transfer) }
        return QueuedCommand(self, put(.start(transfer)))
    }

    /// Queues a stream for its loop.
    func put(_ stream: CurlStream) -> QueuedCommand {
        if count > 1, let dispatcher { return dispatcher.put(stream) }
        return QueuedCommand(self, put(.openStream(stream)))
    }

    private func startThread() {
        let start = ThreadStart(configuration: configuration, mailbox: self, makePoller: makePoller)
        if let code = Thread.start({ start.run() }) {
            threadFailed("The event loop's thread could not be started: \(String(cString: strerror(code)))")
        }
    }

    /// Queues a command; ``finish(_:)`` has to follow.
    func put(_ command: CurlTransport.Command) -> Posted {
        state.withLock { state in
            guard !state.isClosed else { return .refused(command) }
            guard state.hasThread || command.startsSomething else { return command.isVisit ? .refused(command) : .accepted(nil) }
            state.commands.append(command)
            guard state.hasThread else {
                state.hasThread = true
                return .needsThread
            }
            return .accepted(state.takeWakeUp())
        }
    }

    /// Refuses further commands, and stops the thread.
    func close() {
        let (wakeUp, waiters) = state.withLock { state -> (WakeUp?, [CheckedContinuation<Void, Never>]) in
            guard !state.isClosed else { return (nil, []) }
            state.isClosed = true
            if state.hasThread { state.commands.append(.stop) }
            return (state.takeWakeUp(), state.takeWaiters())
        }
        wakeUp?.signal()
        for waiter in waiters { waiter.resume() }
    }

    /// Whether it was closed: its thread has ended, or is ending.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Returns when the mailbox is closed and its thread has ended.
    func waitUntilEnded() async {
        await withCheckedContinuation { continuation in
            let waiters = state.withLock { state in
                state.waiters.append(continuation)
                return state.takeWaiters()
            }
            for waiter in waiters { waiter.resume() }
        }
    }

    /// Parks the thread because the process is exiting; a thread that is stopping ends by itself.
    func parkAtExit() {
        let wakeUp = state.withLock { state -> WakeUp? in
            guard !state.isClosed else { return nil }
            state.commands.append(.park)
            return state.takeWakeUp()
        }
        wakeUp?.signal()
    }

    /// The thread has started and can be woken.
    func threadStarted(_ wakeUp: WakeUp) {
        state.withLock { $0.wakeUp = wakeUp }
    }

    /// The thread could not start: all queued commands fail. The next command tries again.
    func threadFailed(_ reason: String) {
        let (commands, waiters) = state.withLock { state -> ([CurlTransport.Command], [CheckedContinuation<Void, Never>]) in
            state.hasThread = false
            defer { state.commands = [] }
            return (state.commands, state.takeWaiters())
        }
        for command in commands {
            command.refuse(
                .transferFailed(TransferFailure(kind: .configuration, url: command.url, phase: .queued, message: reason)), by: self)
        }
        for waiter in waiters { waiter.resume() }
    }

    /// The thread has ended, and its wake-up descriptor is closed: request bodies may retain this mailbox longer.
    func threadEnded() {
        state.withLock { $0.wakeUp = nil }
    }

    /// The closed mailbox's thread has released everything and is about to return; it has to be joinable. The tasks that wait for its end
    /// are resumed when it has returned.
    func threadReturns() {
        let thread = Thread.current
        // On another thread, because none can join itself.
        DispatchQueue.global().async {
            thread.join()
            let waiters = self.state.withLock { state in
                state.hasThread = false
                return state.takeWaiters()
            }
            for waiter in waiters { waiter.resume() }
        }
    }

    /// Swaps all commands, in order, for an empty array, whose storage is reused; `false` if there are none.
    func take(_ commands: inout [CurlTransport.Command]) -> Bool {
        state.withLock { swap(&$0.commands, &commands) }
        return !commands.isEmpty
    }

    /// The thread is awake: no wake-up is needed from here on, least of all by the thread itself.
    func awoke() {
        state.withLock { $0.isSleeping = false }
    }

    /// Whether the thread may sleep: only if there are no commands.
    func prepareToSleep() -> Bool {
        state.withLock { state in
            state.isSleeping = state.commands.isEmpty
            return state.isSleeping
        }
    }
}

/// A command that was queued, or was not, and what is left to do then.
struct QueuedCommand: Sendable {
    private let mailbox: Mailbox
    private let posted: Mailbox.Posted

    init(_ mailbox: Mailbox, _ posted: Mailbox.Posted) {
        self.mailbox = mailbox
        self.posted = posted
    }

    /// Wakes the thread, or starts it. Users' code may follow: not while a lock is held.
    func finish() { mailbox.finish(posted) }
}

extension Mailbox.State {
    /// Takes the waiting tasks if there is no thread, nor will be one.
    fileprivate mutating func takeWaiters() -> [CheckedContinuation<Void, Never>] {
        guard isClosed, !hasThread else { return [] }
        defer { waiters = [] }
        return waiters
    }

    /// The wake-up to signal; `nil` if the thread is awake or another caller is about to signal it.
    fileprivate mutating func takeWakeUp() -> WakeUp? {
        guard isSleeping else { return nil }
        isSleeping = false
        return wakeUp
    }
}

/// The parameters of a new thread.
private struct ThreadStart: Sendable {
    let configuration: TransportConfiguration
    let mailbox: Mailbox
    let makePoller: @Sendable () throws -> any Poller

    /// - Returns: whether the thread is joined.
    func run() -> Bool {
        // libcurl and OpenSSL may write to sockets closed by the peer. The process's own signal disposition is left unchanged.
        Thread.blockPipeSignal()
        let curl = CurlInfo.current
        if let rejection = CurlInfo.rejection(ofVersion: curl.versionNumber, named: curl.version) { return fail(rejection) }
        do {
            let poller = try makePoller()
            guard ccurlew_global_init() == CURLE_OK else { return fail("libcurl could not be initialized") }
            LiveThreads.started(mailbox)
            let hasRun = runLoop(with: poller)
            ccurlew_thread_stop()
            LiveThreads.ended(mailbox)
            guard hasRun else { return fail("libcurl ran out of memory for a connection pool") }
            mailbox.threadReturns()
            return true
        } catch {
            return fail("The event loop's poller could not be created: \(error)")
        }
    }

    private func fail(_ reason: String) -> Bool {
        mailbox.threadFailed(reason)
        return false
    }

    /// Creates the loop and runs it; the loop is released when this returns. `false` if libcurl is out of memory.
    private func runLoop(with poller: any Poller) -> Bool {
        guard let thread = EventLoopThread(configuration: configuration, mailbox: mailbox, poller: poller) else { return false }
        thread.run()
        return true
    }
}
