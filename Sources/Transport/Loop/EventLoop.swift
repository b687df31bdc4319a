// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP
import Dispatch

/// The transport over libcurl: a handle on one thread that runs its multi interface.
///
/// Sessions make one of their own. It is public for transports that stand between it and a session: that record, reroute or count.
///
/// Requests go in as messages; with a message goes the ownership of what is in it, and nobody but the thread touches a transfer. The
/// thread is made with the first request and ends with ``shutDown()``, which letting go of this object calls too. What the thread does
/// stands in `EventLoopThread`: read that first.
public final class EventLoop: Transport {
    /// A request to be started. An object, since it goes from hand to hand.
    final class Start: Sendable {
        let request: TransferRequest
        let id: Int
        let observer: any TransferObserver
        let time: Nanoseconds

        init(request: TransferRequest, id: Int, observer: any TransferObserver, time: Nanoseconds) {
            self.request = request
            self.id = id
            self.observer = observer
            self.time = time
        }
    }

    /// What can be asked of the thread.
    enum Command: Sendable {
        case start(Start)
        // Rare and large: it would make every command as large.
        indirect case openStream(StreamTransferRequest, id: Int, observer: any StreamTransferObserver)
        case cancel(Int)
        case setSuspended(Bool, Int)
        case resumeReceiving(Int)
        case resumeSending(Int)
        case send(Data, endOfStream: Bool, Int)
        /// Somebody has judged a host's certificates.
        case judged(TrustQuestion, isTrusted: Bool)
        /// A piece of a task that prefers this thread.
        case run(UnownedJob)
        case stop
        /// The process ends: touch nothing any more.
        case rest
    }

    let mailbox: Mailbox

    /// Makes a loop, but not yet its thread.
    public convenience init(configuration: TransportConfiguration = TransportConfiguration()) {
        self.init(configuration: configuration, makePoller: { try SystemPoller() })
    }

    /// Makes a loop that waits in another way.
    package init(
        configuration: TransportConfiguration = TransportConfiguration(), makePoller: @escaping @Sendable () throws -> any Poller
    ) {
        mailbox = Mailbox(configuration: configuration, makePoller: makePoller)
    }

    deinit {
        shutDown()
    }

    /// Starts a transfer; see ``Transport/start(_:id:observer:)``.
    public func start(_ request: TransferRequest, id: Int, observer: any TransferObserver) {
        mailbox.post(.start(Start(request: request, id: id, observer: observer, time: MonotonicTime.now())))
    }

    /// Opens a stream; see ``Transport/openStream(_:id:observer:)``.
    public func openStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) {
        mailbox.post(.openStream(request, id: id, observer: observer))
    }

    /// Ends a transfer or stream; see ``Transport/cancel(_:)``.
    public func cancel(_ id: Int) {
        mailbox.post(.cancel(id))
    }

    /// Stops a transfer or lets it go on; see ``Transport/setSuspended(_:of:)``.
    public func setSuspended(_ suspended: Bool, of id: Int) {
        mailbox.post(.setSuspended(suspended, id))
    }

    /// Takes back an observer's pause; see ``Transport/resumeReceiving(_:)``.
    public func resumeReceiving(_ id: Int) {
        mailbox.post(.resumeReceiving(id))
    }

    /// Sends on a stream; see ``Transport/send(_:endOfStream:on:)``.
    public func send(_ bytes: Data, endOfStream: Bool, on id: Int) {
        mailbox.post(.send(bytes, endOfStream: endOfStream, id))
    }

    /// Ends everything; see ``Transport/shutDown()``.
    public func shutDown() {
        mailbox.close()
    }
}

extension EventLoop.Command {
    /// Completes what would have been started, and has somebody else run what has to run. The other commands need no answer.
    func refuse(_ error: CurlewError, by mailbox: Mailbox) {
        let outcome = TransferOutcome(error: error, metrics: TransferMetrics())
        switch self {
        case .start(let start): start.observer.transfer(start.id, didComplete: outcome)
        case .openStream(_, let id, let observer): observer.stream(id, didComplete: outcome)
        case .run(let job): DispatchQueue.global().async { Self.perform(job, of: mailbox) }
        default: break
        }
    }

    /// Whether it starts a transfer.
    var isStart: Bool {
        if case .start = self { true } else { false }
    }

    /// Whether it is worth a thread; the others are about what was started before.
    var startsSomething: Bool {
        switch self {
        case .start, .openStream, .run: true
        default: false
        }
    }

    /// The URL of what would have been started.
    var url: String {
        switch self {
        case .start(let start): start.request.url
        case .openStream(let request, _, _): request.url
        default: ""
        }
    }
}

/// What a new thread begins with.
private struct ThreadStart: Sendable {
    let configuration: TransportConfiguration
    let mailbox: Mailbox
    let makePoller: @Sendable () throws -> any Poller

    func run() {
        // libcurl writes to sockets whose peer may be gone; OpenSSL too. The process's own disposition is left alone.
        Thread.blockPipeSignal()
        do {
            let poller = try makePoller()
            guard ccurlew_global_init() == CURLE_OK else { return mailbox.threadFailed("libcurl could not be initialised") }
            LiveThreads.started(mailbox)
            runLoop(with: poller)
            ccurlew_thread_stop()
            LiveThreads.ended(mailbox)
        } catch {
            mailbox.threadFailed("No descriptor for the event loop: \(error)")
        }
    }

    /// Makes the loop, runs it, and has let go of it when this returns.
    private func runLoop(with poller: any Poller) {
        guard let thread = EventLoopThread(configuration: configuration, mailbox: mailbox, poller: poller) else {
            return mailbox.threadFailed("libcurl has no memory for a connection pool")
        }
        thread.run()
    }
}

// MARK: - Mailbox

/// Commands on their way to the thread, and the thread's sleep.
final class Mailbox: Sendable {
    private enum Answer {
        case accepted
        /// The first command: somebody has to make the thread.
        case needsThread
        case refused
    }

    fileprivate struct State {
        var commands: [EventLoop.Command] = []
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

    /// Puts a command in, and wakes the thread if it sleeps, or makes it. Refuses the command after the end.
    func post(_ command: EventLoop.Command) {
        switch put(command) {
        case .accepted: break
        case .refused: command.refuse(CurlewError.sessionInvalidated, by: self)
        case .needsThread: startThread()
        }
    }

    private func startThread() {
        let start = ThreadStart(configuration: configuration, mailbox: self, makePoller: makePoller)
        if let code = Thread.start({ start.run() }) {
            threadFailed("No thread for the event loop: \(String(cString: strerror(code)))")
        }
    }

    private func put(_ command: EventLoop.Command) -> Answer {
        let (answer, wakeUp) = state.withLock { state -> (Answer, WakeUp?) in
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
        return answer
    }

    /// Takes no more commands, and has the thread stop.
    func close() {
        let wakeUp = state.withLock { state -> WakeUp? in
            guard !state.isClosed else { return nil }
            state.isClosed = true
            if state.hasThread { state.commands.append(.stop) }
            return state.takeWakeUp()
        }
        wakeUp?.signal()
    }

    /// Has the thread come to rest, as the process ends; one that stops comes to its own end.
    func restAtExit() {
        let wakeUp = state.withLock { state -> WakeUp? in
            guard !state.isClosed else { return nil }
            state.commands.append(.rest)
            return state.takeWakeUp()
        }
        wakeUp?.signal()
    }

    /// The thread is there and can be woken.
    func threadStarted(_ wakeUp: WakeUp) {
        state.withLock { $0.wakeUp = wakeUp }
    }

    /// There is no thread: whatever was asked of it fails. The next command tries again.
    func threadFailed(_ reason: String) {
        let commands = state.withLock { state -> [EventLoop.Command] in
            state.hasThread = false
            defer { state.commands = [] }
            return state.commands
        }
        for command in commands {
            command.refuse(
                .transferFailed(TransferFailure(kind: .configuration, url: command.url, phase: .queued, message: reason)), by: self)
        }
    }

    /// The thread is gone for good, and with it the descriptor that woke it: bodies may keep this mailbox for longer.
    func threadEnded() {
        state.withLock { $0.wakeUp = nil }
    }

    /// All commands so far, in order, in exchange for an empty array, whose storage is used on; `false` when there are none.
    func take(_ commands: inout [EventLoop.Command]) -> Bool {
        state.withLock { swap(&$0.commands, &commands) }
        return !commands.isEmpty
    }

    /// The thread sleeps no more: from here on nobody has to wake it, itself least of all.
    func awoke() {
        state.withLock { $0.isSleeping = false }
    }

    /// Whether the thread may sleep: not while commands are there.
    func prepareToSleep() -> Bool {
        state.withLock { state in
            state.isSleeping = state.commands.isEmpty
            return state.isSleeping
        }
    }
}

extension Mailbox.State {
    /// What to signal; nothing if the thread is awake, or somebody else is about to wake it.
    fileprivate mutating func takeWakeUp() -> WakeUp? {
        guard isSleeping else { return nil }
        isSleeping = false
        return wakeUp
    }
}
