// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// The thread that runs libcurl. Read this first.
///
/// A turn of ``runTurns()`` takes queued commands, runs the expired timers of libcurl and of the loop, decodes what was left of bodies,
/// passes changes to the poller, and waits for a socket event, a timer or a command. The cost of a turn depends on what happens in it, not
/// on the number of transfers in flight.
///
/// All of this state is confined to one thread, without locks or atomics. Observers are called on it and must not block.
final class EventLoopThread {
    /// The time at which this turn began, or looked at time limits after decoding, or at which its wait ended.
    @exclusivity(unchecked) private(set) var now = MonotonicTime.now()
    @exclusivity(unchecked) var wallClock = WallClock()
    /// The events that libcurl and raw streams want of their sockets.
    @exclusivity(unchecked) private var sockets = SocketTable()
    /// The connections in libcurl's pools.
    let connections = PooledConnections()
    /// Reports what happens to them; `nil` if nothing observes it.
    let connectionReporter: ConnectionReporter?
    /// The connections and certificates that were accepted.
    @exclusivity(unchecked) var trust = TrustRegister()
    @exclusivity(unchecked) var closeNotifyTracker = CloseNotifyTracker()
    /// The decoding of bodies since time limits were looked at.
    @exclusivity(unchecked) var decodingSlice = DecodingSlice()
    /// The numbers of the transfers whose bodies were left for a later slice.
    @exclusivity(unchecked) var undecoded: [Int] = []
    /// When the multi handles of all groups have to be looked at.
    let schedule = PoolSchedule()
    /// The connections of a transport's only session.
    let main: ConnectionGroup
    /// Those of the sessions that share the loop.
    @exclusivity(unchecked) var groups = NumberMap<ConnectionGroup>()
    /// Those of sessions that have ended, whose pools can't be closed yet.
    @exclusivity(unchecked) var endedGroups: [ConnectionGroup] = []
    /// The groups with transfers that have got a slot.
    @exclusivity(unchecked) var readyGroups: [ConnectionGroup] = []

    private let resumptions: ResumptionBatch
    let mailbox: Mailbox
    private let poller: any Poller
    let proxies = ProxySettings.ofProcess
    @exclusivity(unchecked) var transfers = NumberMap<Transfer>()
    @exclusivity(unchecked) var streams: [Int: StreamTransfer] = [:]
    @exclusivity(unchecked) var timers = DeadlineHeap<Transfer>()
    /// For those that wait for the session's resolver, or for a decision on certificates.
    @exclusivity(unchecked) var streamTimers = DeadlineHeap<StreamTransfer>()
    @exclusivity(unchecked) var pool: [Transfer] = []
    /// Streams with unread bytes, left for the next turn so that others get theirs.
    @exclusivity(unchecked) var unreadStreams: [StreamTransfer] = []
    /// The transfers that use one of several connections with the same addresses, and it is unknown which.
    @exclusivity(unchecked) var unidentified: [Transfer] = []
    /// The transfers that have opened a connection ahead, and wait for what TLS sends behind its handshake.
    @exclusivity(unchecked) var awaitingTickets: [Transfer] = []
    @exclusivity(unchecked) private var isStopping = false
    @exclusivity(unchecked) private var thread: pthread_t?

    /// The number of idle handles kept for later requests; each takes about 20 KiB.
    private static let largestPool = 256

    /// Creates the loop; libcurl must be initialized. `nil` if libcurl is out of memory.
    init?(configuration: TransportConfiguration, mailbox: Mailbox, poller: any Poller) {
        main = ConnectionGroup(number: 0, configuration: configuration)
        self.mailbox = mailbox
        resumptions = ResumptionBatch(mailbox: mailbox)
        self.poller = poller
        connectionReporter = mailbox.takeConnectionObserver().map { ConnectionReporter(loop: mailbox.index, of: mailbox.count, $0) }
        guard main.pools(on: self) != nil else { return nil }
    }

    func run() {
        thread = pthread_self()
        mailbox.threadStarted(poller.wakeUp)
        resumptions.use { runTurns() }
        stopAll()
        mailbox.threadEnded()
    }

    /// Traps in debug builds if it is called on another thread than the loop's.
    func assertIsCurrent() { assert(thread.map { pthread_equal($0, pthread_self()) != 0 } ?? true) }

    private func runTurns() {
        var commands: [CurlTransport.Command] = []
        while true {
            takeCommands(&commands)
            guard !isStopping else { break }
            resumeReading()
            schedule.timerAction(at: now)
            collectCompleted()
            if decodingSlice.hasBegun { now = MonotonicTime.now() }
            expireTimers()
            continueDecoding()
            launchReady()
            for socket in sockets.reconcile(with: poller) { failUsers(of: socket) }
            waitForEvents()
        }
    }

    /// Runs the queued commands. If tasks ran among them, the commands that they have posted are run as well; those that these post in turn
    /// wait for the next turn.
    private func takeCommands(_ commands: inout [CurlTransport.Command]) {
        var hasRunTasks = false
        repeat {
            now = MonotonicTime.now()
            guard mailbox.take(&commands) else { return }
            // One poll of all sockets saves each request a check of its connection.
            if commands.count(where: \.isStart) > 1 { pollSockets() }
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
            // Read after the wait, so that the times recorded below start at the wait's end, not at its beginning.
            now = MonotonicTime.now()
        } onEvent: { socket, events in
            switch sockets.owner(of: socket, at: poller) {
            case .multi(let multi): multi.socketAction(socket, events)
            case .stream(let stream): stream.socketReady(events)
            case .none: break
            }
        }
        sockets.waitEnded(hasSeenAll: hasSeenAll)
        collectCompleted()
    }

    /// Polls the sockets and marks those with events as used. The events themselves are left to the next wait: by then the sent requests
    /// have produced more of them.
    private func pollSockets() {
        sockets.waitBegins()
        let hasSeenAll = poller.wait(milliseconds: 0) {
        } onEvent: { socket, _ in
            sockets.touched(socket)
        }
        sockets.waitEnded(hasSeenAll: hasSeenAll)
    }

    private func millisecondsUntilNextDeadline() -> Int32 {
        guard readyGroups.isEmpty, unreadStreams.isEmpty, undecoded.isEmpty else { return 0 }
        let next = min(schedule.timerDeadline ?? .max, timers.earliest ?? .max, streamTimers.earliest ?? .max)
        guard next != .max else { return -1 }
        let current = MonotonicTime.now()
        guard next > current else { return 0 }
        return Int32(min((next - current + 999_999) / 1_000_000, 3_600_000))
    }

    // MARK: Commands

    private func perform(_ command: CurlTransport.Command) {
        switch command {
        case .start(let start): begin(start)
        case .openStream(let stream): open(stream)
        case .launch(let id): launchWaiting(id)
        case .cancel(let id): cancel(id)
        case .setSuspended(let suspended, let id):
            guard let transfer = transfers[id] else { return forward(command, for: id) }
            transfer.changePauses { $0.isSuspended = suspended }
        case .resumeReceiving(let id):
            streams[id]?.resumeReceiving()
            transfers[id]?.changePauses { $0.isHeld = false }
        case .resumeSending(let id): transfers[id]?.changePauses(sendingIsPossible: true) { _ in }
        case .send(let bytes, let endOfStream, let id): streams[id]?.send(bytes, endOfStream: endOfStream)
        case .decided(let question, let number, let answer): decided(question, number: number, answer)
        case .resolved(let question, let result): resolved(question, result)
        case .run(let job):
            CurlTransport.Command.perform(job, of: mailbox)
            sockets.forgetWait()
        case .visit(let body): body(self)
        case .stop: isStopping = true
        case .park: LiveThreads.park(mailbox)
        }
    }

    private func begin(_ start: CurlTransfer) {
        assertIsCurrent()
        let group = group(of: start.group)
        guard let transfer = pool.popLast() ?? Transfer(loop: self, group: group) else {
            let failure = TransferFailure(
                kind: .configuration, url: start.request.url, phase: .queued, message: "libcurl ran out of memory for a handle")
            start.slot?.release()
            return start.observer.transfer(
                start.id, didComplete: TransferCompletion(error: CurlewError.transferFailed(failure), metrics: TransferMetrics()))
        }
        let isCounted = group.sharing.isEnabled || group.launchQueue.hasLimit || group.pools?.count ?? 1 > 1
        transfer.begin(start, in: group, isCounted: isCounted)
        transfers[start.number] = transfer
        if let slot = start.slot { return enter(transfer, slot) }
        // Connection limits for transfers that may share a connection are libcurl's, because whether a host shares is unknown until TLS has
        // negotiated. There the connect timeout includes the wait.
        transfer.exchange.isQueuedByLoop = !group.sharing.isPossible(
            for: start.request, isSecure: transfer.isSecure, host: transfer.hostKey)
        guard !transfer.exchange.isQueuedByLoop || group.launchQueue.enter(transfer) else { return wait(transfer) }
        launch(transfer)
    }

    private func cancel(_ id: Int) {
        if let transfer = transfers[id] {
            transfer.giveUp()
            complete(transfer, error: CurlewError.cancelled)
        } else if let stream = streams[id] {
            stream.giveUp()
            complete(stream, error: CurlewError.cancelled)
        } else {
            forward(.cancel(id), for: id)
        }
    }

    // MARK: Transfers

    /// Launches the transfers that have got a slot.
    private func launchReady() {
        while let group = readyGroups.popLast() {
            while let transfer = group.launchQueue.popReady() { launch(transfer) }
        }
    }

    /// Starts a transfer whose slot in the host's queue is taken: prepares its body, and runs it.
    func launch(_ transfer: Transfer) {
        transfer.exchange.launchedAt = now
        let mailbox = mailbox
        let number = transfer.number
        transfer.request.body?.prepare { mailbox.post(.resumeSending(number)) }
        run(transfer)
    }

    /// Hands a transfer to libcurl, once it is known where it connects to.
    func run(_ transfer: Transfer) {
        guard isReady(transfer) else { return }
        if !awaitingTickets.isEmpty, !transfer.request.opensConnectionOnly { endAwaitingTickets() }
        do {
            try transfer.prepare()
        } catch {
            transfer.noteFailure(error.kind, isRequested: false)
            let failure = transfer.failure(error.kind, error.message, code: error.code)
            return complete(transfer, error: transfer.exchange.ownError ?? CurlewError.transferFailed(failure))
        }
        guard let multi = multi(for: transfer) else { return fail(transfer, .configuration, "libcurl ran out of memory for a handle") }
        transfer.multi = multi
        let code = multi.add(transfer.handle)
        guard code == CURLM_OK else {
            transfer.multi = nil
            _ = transfer.renewHandle()
            return fail(transfer, .configuration, "libcurl rejected the transfer: \(String(cString: curl_multi_strerror(code)))")
        }
        armTimer(transfer)
    }

    private func multi(for transfer: Transfer) -> MultiHandle? {
        let group = transfer.group
        if !transfer.exchange.isQueuedByLoop { return group.pools(on: self)?.poolForSharing() }
        guard isApart(transfer) else { return group.pools(on: self)?.pool(forHost: transfer.hostKey) }
        return group.poolsForPausing(on: self)?.pool(forHost: transfer.hostKey)
    }

    /// Removes a transfer from libcurl.
    func takeBack(_ transfer: Transfer) {
        transfer.multi?.remove(transfer.handle, host: transfer.hostKey)
        transfer.multi = nil
        if !unidentified.isEmpty { unidentified.removeAll { $0 === transfer } }
    }

    func collectCompleted() {
        resumptions.begin()
        schedule.takeCompleted { $0.completed($1) }
        resumptions.end()
    }

    /// libcurl has completed a transfer.
    func completed(_ transfer: Transfer, _ code: CURLcode) {
        if code == CURLE_OPERATION_TIMEDOUT { transfer.giveUp() }
        if let question = transfer.exchange.question { return ask(question, for: transfer) }
        if transfer.leavesAlternative(after: code) { return runWithoutAlternative(transfer) }
        let decision = transfer.decision(code)
        if transfer.request.opensConnectionOnly, awaitsTickets(transfer, decision) { return }
        guard decision == .useFreshConnection else { return complete(transfer, error: transfer.error(decision, code: code)) }
        takeBack(transfer)
        connectionReporter?.ended(transfer.number, .stale)
        transfer.exchange.needsFreshConnection = true
        guard transfer.exchange.bodyBytesSent == 0 || transfer.rewind() else {
            return fail(transfer, .connectionLost, "The connection ended, and the body can't be sent again")
        }
        run(transfer)
    }

    func fail(_ transfer: Transfer, _ kind: TransferFailure.Kind, _ message: String) {
        complete(transfer, error: CurlewError.transferFailed(transfer.failure(kind, message)))
    }

    /// Completes a transfer that the loop has: the only place that does so.
    func complete(_ transfer: Transfer, error: (any Error)?) {
        assertIsCurrent()
        transfers[transfer.number] = nil
        if let question = transfer.exchange.question { trust.withdraw(transfer.number, from: question) }
        takeBack(transfer)
        becameIdle(after: transfer)
        connectionReporter?.ended(transfer.number, .completed(error))
        let group = transfer.group
        let hasNotShared = group.sharing.completed(transfer)
        if let slot = transfer.slot {
            slot.release(wasShared: hasNotShared ? false : nil)
        } else if transfer.exchange.isQueuedByLoop, !isStopping {
            group.launchQueue.leave(transfer)
            if group.launchQueue.hasReady, readyGroups.last !== group { readyGroups.append(group) }
        }
        transfer.complete(error)
        transfer.end()
        // A pooled transfer keeps its entry among the timers: the next request seldom has to move it.
        if pool.count < Self.largestPool { pool.append(transfer) } else { timers.remove(transfer) }
    }

    // MARK: Sockets

    /// libcurl has opened a socket for a connection.
    func didOpen(_ socket: Int32) {
        sockets.opened(socket)
    }

    /// Records the events that libcurl wants of a socket.
    func want(_ events: SocketEvents, of socket: Int32, for multi: MultiHandle, handle: UnsafeMutableRawPointer?) {
        if !unidentified.isEmpty, !events.isEmpty { identify(socket, handle) }
        sockets.want(events, of: socket, for: .multi(multi), handle: handle, at: poller)
    }

    /// Fails the users of a socket that the system can't watch, which would otherwise hang until they time out.
    private func failUsers(of unwatched: SocketTable.Unwatched) {
        let message = "The system can't watch the connection's socket: \(String(cString: strerror(unwatched.reason)))"
        if case .stream(let stream) = unwatched.owner { return complete(stream, error: stream.lost(message)) }
        for transfer in transfers.values where transfer.uses(unwatched.socket) || transfer.handle.raw == unwatched.handle {
            fail(transfer, transfer.state.phase < .sending ? .connect : .connectionLost, message)
        }
        for stream in streams.values where stream.handle.raw == unwatched.handle { complete(stream, error: stream.lost(message)) }
    }

    /// Stops watching a socket that libcurl is about to close.
    func unwatch(_ socket: Int32) {
        sockets.want([], of: socket, for: .none, at: poller)
    }

    /// Records the events that a stream wants of its socket.
    func want(_ events: SocketEvents, of socket: Int32, for stream: StreamTransfer) {
        sockets.want(events, of: socket, for: .stream(stream), at: poller)
    }

    /// Whether the connection that a request is about to use is known to have no unread bytes.
    func isQuiet(_ socket: Int32) -> Bool {
        defer { sockets.touched(socket) }
        return sockets.isQuiet(socket)
    }

    /// The loop has ended an idle connection, whose socket libcurl closes later.
    func didEnd(_ socket: Int32) {
        connectionReporter?.closes(socket, isStopping: false, byLoop: true)
        connections.ended(socket)
        sockets.touched(socket)
    }

    /// A socket is about to be closed.
    func willClose(_ socket: Int32) {
        connectionReporter?.closes(socket, isStopping: isStopping)
        if let number = connections.forget(socket) { connectionClosed(ofGroup: number) }
        trust.forget(socket)
        sockets.forget(socket)
        poller.forget(socket)
    }

    // MARK: End

    /// Completes all transfers and streams, and closes all connections. The loop can't be used afterwards.
    func stopAll() {
        for transfer in transfers.values { complete(transfer, error: CurlewError.sessionInvalidated) }
        for stream in streams.values { complete(stream, error: CurlewError.sessionInvalidated) }
        for group in groups.values { group.launchQueue = LaunchQueue(limit: nil) }
        main.launchQueue = LaunchQueue(limit: nil)
        readyGroups = []
        (unreadStreams, unidentified, awaitingTickets) = ([], [], [])
        // The order matters: handles point to multi handles, closing connections call this loop, and all of them use the share.
        pool = []
        timers = DeadlineHeap()
        for group in [main] + groups.values + endedGroups { group.close() }
    }
}
