// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// The thread that runs libcurl. Read this first.
///
/// A turn of ``runTurns()`` takes the commands that came in, lets libcurl's timers and ours run out, tells the poller what has changed, and
/// waits until a socket has something, time is up, or a command comes. What a turn costs depends on what happens in it, not on how many
/// transfers are waiting.
///
/// Everything here belongs to this one thread: no locks, no atomics. Observers are called from it, so they must not block.
final class EventLoopThread {
    let configuration: TransportConfiguration
    /// Whether transfers share HTTP/2 connections.
    let multiplexes: Bool
    /// The time at which this turn began, or its wait ended.
    @exclusivity(unchecked) private(set) var now = MonotonicTime.now()
    /// What the clock on the wall showed at a time in this turn.
    @exclusivity(unchecked) private var wallClock = (turn: Nanoseconds(0), time: Nanoseconds(0), date: Date())
    /// What libcurl, and raw streams, want of the sockets.
    @exclusivity(unchecked) private var sockets = SocketTable()
    /// The connections in libcurl's pools.
    @exclusivity(unchecked) var connections = PooledConnections()
    /// Whose certificates were found good.
    @exclusivity(unchecked) var trust = TrustRegister()
    @exclusivity(unchecked) var closingAlerts = ClosingAlerts()
    /// Lets transfers resume each other's TLS sessions, which a multi handle alone does not.
    let share: UnsafeMutableRawPointer?

    private let resumptions = ResumptionBatch()
    private let mailbox: Mailbox
    private let poller: any Poller
    private let proxies = ProxySettings(environment: ProcessInfo.processInfo.environment)
    @exclusivity(unchecked) private var pools: ConnectionPools?
    /// For transfers that may be paused for long: they must not hold up others on a shared connection.
    @exclusivity(unchecked) private var poolsForPausing: ConnectionPools?
    @exclusivity(unchecked) private var transfers = NumberMap<Transfer>()
    @exclusivity(unchecked) private var streams: [Int: StreamTransfer] = [:]
    @exclusivity(unchecked) private var timers = DeadlineHeap<Transfer>()
    @exclusivity(unchecked) private var queue: HostQueue<Transfer>
    @exclusivity(unchecked) private var pool: [Transfer] = []
    /// Transfers whose place in the host's queue came free.
    @exclusivity(unchecked) private var ready: [Transfer] = []
    /// Streams that left bytes unread, so that others get their turn.
    @exclusivity(unchecked) private var unreadStreams: [StreamTransfer] = []
    /// Hosts that spoke HTTP/1 where HTTP/2 was offered.
    @exclusivity(unchecked) private var hostsWithoutSharing: Set<UInt64> = []
    @exclusivity(unchecked) private var isStopping = false

    /// Handles kept for later requests; each holds some 20 KiB.
    private static let largestPool = 256
    /// How many hosts are remembered to share no connections; forgotten ones are tried again.
    private static let largestMemory = 1_024

    /// `nil` when libcurl, which has been initialised, has no memory.
    init?(configuration: TransportConfiguration, mailbox: Mailbox, poller: any Poller) {
        self.configuration = configuration
        multiplexes = configuration.multiplexes ?? CurlInfo.current.hasReliableHTTP2
        queue = HostQueue(limit: configuration.maximumConnectionsPerHost)
        self.mailbox = mailbox
        self.poller = poller
        share = curl_share_init()
        if let share { _ = ccurlew_share_tls_sessions(share) }
        pools = ConnectionPools(loop: self, configuration: configuration, multiplexes: multiplexes)
        guard pools != nil else {
            if let share { curl_share_cleanup(share) }
            return nil
        }
    }

    func run() {
        mailbox.threadStarted(poller.wakeUp)
        resumptions.use { runTurns() }
        stopAll()
        mailbox.threadEnded()
    }

    private func runTurns() {
        var commands: [EventLoop.Command] = []
        while true {
            takeCommands(&commands)
            guard !isStopping else { break }
            readOn()
            pools?.timerAction(at: now)
            poolsForPausing?.timerAction(at: now)
            collectFinished()
            expireTimers()
            launchReady()
            for socket in sockets.reconcile(with: poller) { failUsers(of: socket) }
            waitForEvents()
        }
    }

    /// Does what was asked for, and at once what tasks have asked for that ran here; what those ask for has to wait for the next turn.
    private func takeCommands(_ commands: inout [EventLoop.Command]) {
        var hasRunTasks = false
        repeat {
            now = MonotonicTime.now()
            guard mailbox.take(&commands) else { return }
            // A look at all sockets together spares each request one at its connection.
            if commands.count(where: \.isStart) > 1 { lookAtSockets() }
            let isSecondTime = hasRunTasks
            hasRunTasks = false
            for command in commands {
                if case .run = command { hasRunTasks = !isSecondTime }
                perform(command)
            }
            commands.removeAll(keepingCapacity: true)
        } while hasRunTasks && !isStopping
    }

    private func waitForEvents() {
        var milliseconds = millisecondsUntilNextDeadline()
        if milliseconds != 0, !mailbox.prepareToSleep() { milliseconds = 0 }
        sockets.waitBegins()
        let hasSeenAll = poller.wait(milliseconds: milliseconds) {
            if milliseconds != 0 { mailbox.awoke() }
            // What libcurl and the transfers note during the calls below counts from the end of the wait, not from its beginning.
            now = MonotonicTime.now()
        } onEvent: { socket, events in
            switch sockets.owner(of: socket, at: poller) {
            case .multi(let multi): multi.socketAction(socket, events)
            case .stream(let stream): stream.socketReady(events)
            case .nobody: break
            }
        }
        sockets.waitEnded(hasSeenAll: hasSeenAll)
        collectFinished()
    }

    /// Notes which sockets have something, and leaves it to the next wait: by then there is more of it, after requests have gone out.
    private func lookAtSockets() {
        sockets.waitBegins()
        let hasSeenAll = poller.wait(milliseconds: 0) {
        } onEvent: { socket, _ in
            sockets.touched(socket)
        }
        sockets.waitEnded(hasSeenAll: hasSeenAll)
    }

    private func millisecondsUntilNextDeadline() -> Int32 {
        guard ready.isEmpty, unreadStreams.isEmpty else { return 0 }
        let next = min(pools?.timerDeadline ?? .max, poolsForPausing?.timerDeadline ?? .max, timers.earliest ?? .max)
        guard next != .max else { return -1 }
        let current = MonotonicTime.now()
        guard next > current else { return 0 }
        return Int32(min((next - current + 999_999) / 1_000_000, 3_600_000))
    }

    // MARK: Commands

    private func perform(_ command: EventLoop.Command) {
        switch command {
        case .start(let start): begin(start)
        case .openStream(let request, let id, let observer): openStream(request, id: id, observer: observer)
        case .cancel(let id): cancel(id)
        case .setSuspended(let suspended, let id): changePauses(of: id) { $0.isSuspended = suspended }
        case .resumeReceiving(let id):
            streams[id]?.resumeReceiving()
            changePauses(of: id) { $0.isHeld = false }
        case .resumeSending(let id): changePauses(of: id, sendingIsPossible: true) { _ in }
        case .send(let bytes, let endOfStream, let id): streams[id]?.send(bytes, endOfStream: endOfStream)
        case .judged(let question, let isTrusted): judged(question, isTrusted: isTrusted)
        case .run(let job):
            EventLoop.Command.perform(job, of: mailbox)
            sockets.forgetWait()
        case .stop: isStopping = true
        case .rest: LiveThreads.rest(mailbox)
        }
    }

    private func begin(_ start: EventLoop.Start) {
        guard let transfer = pool.popLast() ?? Transfer(loop: self) else {
            let failure = TransferFailure(
                kind: .configuration, url: start.request.url, phase: .queued, message: "libcurl has no memory for a handle")
            return start.observer.transfer(
                start.id, didComplete: TransferOutcome(error: CurlewError.transferFailed(failure), metrics: TransferMetrics()))
        }
        transfer.begin(start, isCounted: multiplexes || queue.hasLimit || pools?.count ?? 1 > 1)
        transfers[start.id] = transfer
        // Who may share a connection is counted by libcurl: how many a host needs is not known before TLS has negotiated. Those that wait
        // there do so on their connect timeout.
        transfer.isQueuedByUs = !mayShareConnection(transfer)
        guard !transfer.isQueuedByUs || queue.enter(transfer.hostKey, transfer, urgency: transfer.request.urgency) else {
            return armTimer(transfer)
        }
        launch(transfer)
    }

    private func mayShareConnection(_ transfer: Transfer) -> Bool {
        guard multiplexes, !transfer.request.mayPause, transfer.request.authentication == nil else { return false }
        return switch transfer.request.prepared.options.httpVersion {
        case .automatic: transfer.isSecure && !hostsWithoutSharing.contains(transfer.hostKey)
        case .http1: false
        case .http2PriorKnowledge: true
        }
    }

    private func cancel(_ id: Int) {
        if let transfer = transfers[id] { finish(transfer, error: CurlewError.cancelled) }
        if let stream = streams[id] { finish(stream, error: CurlewError.cancelled) }
    }

    // MARK: A transfer's way

    /// Launches those that got a place. Not where the place comes free: a thousand that fail at once would nest.
    private func launchReady() {
        while let transfer = ready.popLast() { launch(transfer) }
    }

    /// Hands a transfer to libcurl: its place in the host's queue is taken.
    private func launch(_ transfer: Transfer) {
        transfer.launchedAt = now
        let mailbox = mailbox
        let id = transfer.id
        transfer.request.body?.prepare { mailbox.post(.resumeSending(id)) }
        run(transfer)
    }

    private func run(_ transfer: Transfer) {
        if let error = transfer.request.defect { return finish(transfer, error: error) }
        do {
            try transfer.prepare()
        } catch {
            let failure = transfer.failure(error.kind, error.message, code: error.code)
            return finish(transfer, error: CurlewError.transferFailed(failure))
        }
        guard let multi = multi(for: transfer) else { return fail(transfer, .configuration, "libcurl has no memory for a handle") }
        transfer.multi = multi
        let code = multi.add(transfer.handle)
        guard code == CURLM_OK else {
            transfer.multi = nil
            _ = transfer.renewHandle()
            return fail(transfer, .configuration, "libcurl refused the transfer: \(String(cString: curl_multi_strerror(code)))")
        }
        armTimer(transfer)
    }

    private func multi(for transfer: Transfer) -> MultiHandle? {
        if !transfer.isQueuedByUs { return pools?.poolForSharing() }
        guard multiplexes, transfer.request.mayPause else { return pools?.pool(forHost: transfer.hostKey) }
        if poolsForPausing == nil { poolsForPausing = ConnectionPools(loop: self, configuration: configuration, multiplexes: false) }
        return poolsForPausing?.pool(forHost: transfer.hostKey)
    }

    /// Takes a transfer from libcurl.
    private func takeBack(_ transfer: Transfer) {
        transfer.multi?.remove(transfer.handle, host: transfer.hostKey)
        transfer.multi = nil
    }

    private func collectFinished() {
        resumptions.begin()
        pools?.takeFinished { $0.ended($1) }
        poolsForPausing?.takeFinished { $0.ended($1) }
        resumptions.end()
    }

    /// libcurl is done with a transfer.
    func ended(_ transfer: Transfer, _ code: CURLcode) {
        if let question = transfer.question { return ask(question, for: transfer) }
        let verdict = transfer.verdict(code)
        guard verdict == .useFreshConnection else { return finish(transfer, error: transfer.error(verdict, code: code)) }
        takeBack(transfer)
        transfer.needsFreshConnection = true
        guard transfer.bodyBytesSent == 0 || transfer.rewind() else {
            return fail(transfer, .connectionLost, "The connection ended, and the body can't be sent again")
        }
        run(transfer)
    }

    private func fail(_ transfer: Transfer, _ kind: TransferFailure.Kind, _ message: String) {
        finish(transfer, error: CurlewError.transferFailed(transfer.failure(kind, message)))
    }

    /// The one end of every transfer.
    private func finish(_ transfer: Transfer, error: (any Error)?) {
        transfers[transfer.id] = nil
        takeBack(transfer)
        if transfer.isQueuedByUs, !isStopping { leaveQueue(transfer) }
        if !transfer.isQueuedByUs, transfer.state.hasHead, transfer.handle.httpVersion != .http2 {
            if hostsWithoutSharing.count >= Self.largestMemory { hostsWithoutSharing.removeAll(keepingCapacity: true) }
            hostsWithoutSharing.insert(transfer.hostKey)
        }
        transfer.complete(error)
        transfer.end()
        // A kept one also keeps its place among the timers: most often the next request need not move it.
        if pool.count < Self.largestPool { pool.append(transfer) } else { timers.remove(transfer) }
    }

    private func leaveQueue(_ transfer: Transfer) {
        if transfer.launchedAt > 0 {
            if let next = queue.leave(transfer.hostKey) { ready.insert(next, at: 0) }
        } else if let index = ready.firstIndex(where: { $0 === transfer }) {
            ready.remove(at: index)
            if let next = queue.leave(transfer.hostKey) { ready.insert(next, at: 0) }
        } else {
            queue.withdraw(transfer, from: transfer.hostKey)
        }
    }

    // MARK: Trust

    /// Has somebody judge a host's certificates, off this thread, while the transfer keeps its place without a connection.
    private func ask(_ question: TrustQuestion, for transfer: Transfer) {
        takeBack(transfer)
        transfer.handle.reset()
        ask(question, for: transfer.id)
    }

    /// Has somebody judge a host's certificates; once, however many wait for the answer.
    func ask(_ question: TrustQuestion, for id: Int) {
        guard case .judge(let judge) = question.requirement.rule, trust.wait(for: question, id) else { return }
        let mailbox = mailbox
        judge.judge(question.trust) { isTrusted in mailbox.post(.judged(question, isTrusted: isTrusted)) }
    }

    private func judged(_ question: TrustQuestion, isTrusted: Bool) {
        for id in trust.decided(question, isTrusted: isTrusted) {
            // Who has ended meanwhile, or begun something else, does not wait any more.
            if let transfer = transfers[id], transfer.question == question {
                transfer.question = nil
                if isTrusted { run(transfer) } else { fail(transfer, .serverCertificate, question.refusal) }
            } else if let stream = streams[id], stream.question == question, let pools {
                if let error = stream.judged(isTrusted: isTrusted, on: pools) { finish(stream, error: error) }
            }
        }
    }

    // MARK: Pauses

    /// Changes what holds a transfer up, and lets libcurl go on where nothing does any more.
    private func changePauses(of id: Int, sendingIsPossible: Bool = false, _ change: (inout Transfer.Pauses) -> Void) {
        guard let transfer = transfers[id] else { return }
        let wasSuspended = transfer.pauses.isSuspended
        let wasPaused = transfer.pauses.isPaused
        change(&transfer.pauses)
        // Time spent paused does not count.
        if wasPaused, !transfer.pauses.isPaused { transfer.restartIdleTime() }
        var mask: Int32 = 0
        var goesOn = false
        if transfer.pauses.receivingStopped {
            if transfer.pauses.isSuspended || transfer.pauses.isHeld { mask |= CURLPAUSE_RECV } else { goesOn = true }
        }
        if transfer.pauses.sendingStopped {
            if transfer.pauses.isSuspended || !(sendingIsPossible || wasSuspended) { mask |= CURLPAUSE_SEND } else { goesOn = true }
        }
        guard goesOn else { return armTimer(transfer) }
        // Set before the call, out of which the callbacks may be called and stop again.
        if mask & CURLPAUSE_RECV == 0 { transfer.pauses.receivingStopped = false }
        if mask & CURLPAUSE_SEND == 0 { transfer.pauses.sendingStopped = false }
        transfer.restartIdleTime()
        let code = curl_easy_pause(transfer.handle.raw, mask)
        guard code == CURLE_OK else { return ended(transfer, code) }
        armTimer(transfer)
    }

    // MARK: Time

    /// Sees to it that a transfer is looked at when its next time limit may be reached.
    ///
    /// A limit that moved further away, or is no more, is not written down: the transfer is looked at too early, and put back.
    func armTimer(_ transfer: Transfer) {
        guard let time = transfer.nextLook else { return }
        if transfer.heapIndex < 0 || time < transfer.deadline { timers.set(transfer, to: time) }
    }

    /// Has a transfer asked for its body again, in another turn: not within a call of libcurl's.
    func resumeSendingLater(_ transfer: Transfer) {
        mailbox.post(.resumeSending(transfer.id))
    }

    /// What the clock on the wall showed at an earlier time, unless somebody has set it since. It is looked at once a turn.
    func date(of time: Nanoseconds) -> Date {
        if wallClock.turn != now { wallClock = (now, MonotonicTime.now(), Date()) }
        return wallClock.date - TimeInterval(wallClock.time - min(time, wallClock.time)) / 1_000_000_000
    }

    private func expireTimers() {
        while let transfer = timers.popExpired(at: now) {
            transfer.noteProgress()
            if let limit = transfer.nextLimit, limit.time <= now {
                fail(transfer, limit.failureKind, limit.message)
                continue
            }
            if case .awaited(let deadline) = transfer.expectation, deadline <= now { transfer.resumeSending() }
            transfer.endSendingIfResponseStalls()
            if let time = transfer.nextLook { timers.set(transfer, to: time) }
        }
    }

    // MARK: Streams

    private func openStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) {
        guard let pools, let stream = StreamTransfer(request, id: id, observer: observer, loop: self) else {
            let failure = TransferFailure(kind: .configuration, url: request.url, phase: .queued, message: "libcurl has no memory")
            return observer.stream(
                id, didComplete: TransferOutcome(error: CurlewError.transferFailed(failure), metrics: TransferMetrics()))
        }
        streams[id] = stream
        if let error = stream.connect(on: pools) { finish(stream, error: error) }
    }

    /// libcurl has set up a stream's connection, or given up on it.
    func opened(_ stream: StreamTransfer, _ code: CURLcode) {
        if let error = stream.connected(code) { finish(stream, error: error) }
    }

    func finish(_ stream: StreamTransfer, error: (any Error)?) {
        guard streams.removeValue(forKey: stream.id) != nil else { return }
        stream.close()
        stream.complete(error)
    }

    /// Has a stream go on reading in the next turn.
    func readLater(_ stream: StreamTransfer) {
        unreadStreams.append(stream)
    }

    private func readOn() {
        guard !unreadStreams.isEmpty else { return }
        let streams = unreadStreams
        unreadStreams.removeAll(keepingCapacity: true)
        for stream in streams { stream.socketReady(.readable) }
    }

    // MARK: Ends

    /// libcurl has made a socket for a connection.
    func didOpen(_ socket: Int32) {
        sockets.opened(socket)
    }

    /// What libcurl wants of a socket from now on.
    func want(_ events: SocketEvents, of socket: Int32, for multi: MultiHandle, handle: UnsafeMutableRawPointer?) {
        sockets.want(events, of: socket, for: .multi(multi), handle: handle, at: poller)
    }

    /// Fails what waits for a socket that the system refuses to watch: it would wait until it times out.
    private func failUsers(of unwatched: SocketTable.Unwatched) {
        let message = "The system can't watch the connection's socket: \(String(cString: strerror(unwatched.reason)))"
        if case .stream(let stream) = unwatched.owner { return finish(stream, error: stream.lost(message)) }
        for transfer in transfers.values where transfer.uses(unwatched.socket) || transfer.handle.raw == unwatched.handle {
            fail(transfer, transfer.state.phase < .sending ? .connect : .connectionLost, message)
        }
        for stream in streams.values where stream.handle.raw == unwatched.handle { finish(stream, error: stream.lost(message)) }
    }

    /// Nothing more is wanted of a socket, which libcurl is going to close.
    func unwatch(_ socket: Int32) {
        sockets.want([], of: socket, for: .nobody, at: poller)
    }

    /// What a stream wants of its socket from now on.
    func want(_ events: SocketEvents, of socket: Int32, for stream: StreamTransfer) {
        sockets.want(events, of: socket, for: .stream(stream), at: poller)
    }

    /// Whether a connection on which a request is about to go out is known to have nothing to be read.
    func isQuiet(_ socket: Int32) -> Bool {
        defer { sockets.touched(socket) }
        return sockets.isQuiet(socket)
    }

    /// A socket is about to be closed.
    func willClose(_ socket: Int32) {
        connections.forget(socket)
        trust.forget(socket)
        sockets.forget(socket)
        poller.forget(socket)
    }

    func proxy(isSecure: Bool, policy: ProxyPolicy) -> Proxy? {
        proxies.proxy(isSecure: isSecure, policy: policy)
    }

    /// Completes everything, and closes all connections. Nothing may be asked of the loop any more.
    func stopAll() {
        for transfer in transfers.values { finish(transfer, error: CurlewError.sessionInvalidated) }
        for stream in streams.values { finish(stream, error: CurlewError.sessionInvalidated) }
        ready = []
        unreadStreams = []
        // In this order: handles point to multis, connections call back to this loop when they close, and all of them use the share.
        pool = []
        timers = DeadlineHeap()
        pools?.close()
        poolsForPausing?.close()
        if let share { curl_share_cleanup(share) }
    }
}
