// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// The queue of commands for the thread, and the thread's sleep state.
final class Mailbox: Sendable {
    private enum PostResult {
        case accepted
        /// The first command: the caller has to start the thread.
        case needsThread
        case refused
    }

    fileprivate struct State {
        var commands: [CurlTransport.Command] = []
        var hasThread = false
        var isClosed = false
        var isSleeping = false
        var wakeUp: WakeUp?
    }

    private let configuration: TransportConfiguration
    private let makePoller: @Sendable () throws -> any Poller
    private let state = Lock(State())

    init(configuration: TransportConfiguration, makePoller: @escaping @Sendable () throws -> any Poller) {
        self.configuration = configuration
        self.makePoller = makePoller
    }

    /// Enqueues a command, then wakes the thread if it sleeps, or starts it. After the mailbox was closed, the command is refused.
    func post(_ command: CurlTransport.Command) {
        switch put(command) {
        case .accepted: break
        case .refused: command.refuse(CurlewError.sessionInvalidated, by: self)
        case .needsThread: startThread()
        }
    }

    private func startThread() {
        let start = ThreadStart(configuration: configuration, mailbox: self, makePoller: makePoller)
        if let code = Thread.start({ start.run() }) {
            threadFailed("The event loop's thread could not be started: \(String(cString: strerror(code)))")
        }
    }

    private func put(_ command: CurlTransport.Command) -> PostResult {
        let (result, wakeUp) = state.withLock { state -> (PostResult, WakeUp?) in
            guard !state.isClosed else { return (.refused, nil) }
            guard state.hasThread || command.startsSomething else { return (.accepted, nil) }
            state.commands.append(command)
            guard state.hasThread else {
                state.hasThread = true
                return (.needsThread, nil)
            }
            return (.accepted, state.takeWakeUp())
        }
        wakeUp?.signal()
        return result
    }

    /// Refuses further commands, and stops the thread.
    func close() {
        let wakeUp = state.withLock { state -> WakeUp? in
            guard !state.isClosed else { return nil }
            state.isClosed = true
            if state.hasThread { state.commands.append(.stop) }
            return state.takeWakeUp()
        }
        wakeUp?.signal()
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
        let commands = state.withLock { state -> [CurlTransport.Command] in
            state.hasThread = false
            defer { state.commands = [] }
            return state.commands
        }
        for command in commands {
            command.refuse(
                .transferFailed(TransferFailure(kind: .configuration, url: command.url, phase: .queued, message: reason)), by: self)
        }
    }

    /// The thread has ended, and its wake-up descriptor is closed: request bodies may retain this mailbox longer.
    func threadEnded() {
        state.withLock { $0.wakeUp = nil }
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

extension Mailbox.State {
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

    func run() {
        // libcurl and OpenSSL may write to sockets closed by the peer. The process's own signal disposition is left unchanged.
        Thread.blockPipeSignal()
        let curl = CurlInfo.current
        if let rejection = CurlInfo.rejection(ofVersion: curl.versionNumber, named: curl.version) { return mailbox.threadFailed(rejection) }
        do {
            let poller = try makePoller()
            guard ccurlew_global_init() == CURLE_OK else { return mailbox.threadFailed("libcurl could not be initialized") }
            LiveThreads.started(mailbox)
            runLoop(with: poller)
            ccurlew_thread_stop()
            LiveThreads.ended(mailbox)
        } catch {
            mailbox.threadFailed("The event loop's poller could not be created: \(error)")
        }
    }

    /// Creates the loop and runs it; the loop is released when this returns.
    private func runLoop(with poller: any Poller) {
        guard let thread = EventLoopThread(configuration: configuration, mailbox: mailbox, poller: poller) else {
            return mailbox.threadFailed("libcurl ran out of memory for a connection pool")
        }
        thread.run()
    }
}
