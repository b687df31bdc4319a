// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// One session's part of a transport on libcurl that several sessions use: they have its threads in common, and nothing else.
///
/// Connections, TLS sessions, resolved names, limits per host and decisions on certificates are the session's own, as if it had a transport
/// for itself. ``shutDown()`` ends its transfers and closes its connections; the threads end with the last session. Between requests, a
/// session has no descriptors but its pooled connections, and those of the sessions unused for longest are closed first. What happens to
/// connections can't be observed.
package final class SharedTransport: EventLoopTransport {
    private let group: TransferGroup
    private let mailboxes: [Mailbox]
    /// `nil` after the end, so that the threads of the last session end with it.
    private let base: Lock<CurlTransport?>

    /// - Parameters:
    ///   - base: the transport whose threads are used, for sessions only.
    ///   - configuration: of the session's connections. With several loops it is the base's that counts.
    package init(_ base: CurlTransport, configuration: TransportConfiguration) {
        mailboxes = base.mailboxes
        group = TransferGroup(number: base.makeNumber(), configuration: base.dispatcher == nil ? configuration : nil)
        self.base = Lock(base)
    }

    deinit {
        shutDown()
    }

    /// The transport whose threads are used; `nil` after the end.
    var shared: CurlTransport? { base.withLock { $0 } }

    private func makeNumber() -> Int { base.withLock { $0?.makeNumber() } ?? 0 }

    package func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        CurlTransfer(request, id: id, number: makeNumber(), observer, on: mailboxes[0], of: group)
    }

    package func makeStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) -> any StreamHandle {
        CurlStream(request.prepared, id: id, number: makeNumber(), observer, on: mailboxes[0], of: group)
    }

    package func shutDown() {
        group.end(on: mailboxes)
        // Not released while the lock is held: that of the last session ends the threads.
        let last = base.withLock { $0.take() }
        withExtendedLifetime(last) {}
    }

    /// Waits until the session's transfers have completed and its connections are closed; and for the threads, if it was the last session.
    package func waitUntilShutDown() async {
        await group.waitUntilEnded()
        for mailbox in mailboxes where mailbox.isClosed { await mailbox.waitUntilEnded() }
    }

    // MARK: Connections

    private var connections: LoopConnections { LoopConnections(mailboxes: mailboxes, group: group.number, limits: group.configuration) }

    package func connectionStatistics() async -> ConnectionStatistics { await connections.statistics() }

    package func closeIdleConnections() async -> Int { await connections.closeIdle() }

    package func prewarm(_ request: TransferRequest, count: Int) async throws -> Int {
        try await connections.prewarm(request, count: count, over: self)
    }

    @available(macOS 15.0, iOS 18.0, watchOS 11.0, tvOS 18.0, visionOS 2.0, *)
    package var taskExecutor: any TaskExecutor { mailboxes[0] }

    @available(macOS 15.0, iOS 18.0, watchOS 11.0, tvOS 18.0, visionOS 2.0, *)
    package var taskExecutors: [any TaskExecutor] { mailboxes }
}

/// What the transfers of one session have in common on a transport of several: whether they may start.
///
/// Apart from the transport, so that a handle does not retain that. Thread-safe; the lock is taken after that of a handle, and before those
/// of `LoopDispatcher` and `Mailbox`.
final class TransferGroup: Sendable {
    fileprivate struct State {
        var hasEnded = false
        /// The loops on which transfers may still run.
        var loops = 0
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    /// Not 0, and no other session's on the transport.
    let number: Int
    /// `nil` for that of the loops.
    let configuration: TransportConfiguration?
    private let state = Lock(State())

    init(number: Int, configuration: TransportConfiguration?) {
        self.number = number
        self.configuration = configuration
    }

    /// Queues the start of a transfer; `nil` if the session has ended. Inside of the lock, so that the command that ends the session's
    /// transfers comes after it.
    func queue(_ start: () -> QueuedCommand) -> QueuedCommand? {
        state.withLock { $0.hasEnded ? nil : start() }
    }

    /// Ends the session's transfers; the first call counts.
    func end(on mailboxes: [Mailbox]) {
        let commands = state.withLock { state -> [QueuedCommand] in
            guard !state.hasEnded else { return [] }
            state.hasEnded = true
            state.loops = mailboxes.count
            if mailboxes.count > 1, let dispatcher = mailboxes[0].dispatcher { return dispatcher.end(number) { endCommand } }
            return mailboxes.map { mailbox in
                let command = endCommand
                return QueuedCommand(command, mailbox, mailbox.put(command))
            }
        }
        for command in commands { command.finish() }
    }

    private var endCommand: CurlTransport.Command {
        .visit { [self] loop in
            loop?.end(group: number)
            endedOnLoop()
        }
    }

    private func endedOnLoop() {
        let waiters = state.withLock { state in
            state.loops -= 1
            return state.takeWaiters()
        }
        for waiter in waiters { waiter.resume() }
    }

    func waitUntilEnded() async {
        await withCheckedContinuation { continuation in
            let waiters = state.withLock { state in
                state.waiters.append(continuation)
                return state.takeWaiters()
            }
            for waiter in waiters { waiter.resume() }
        }
    }
}

extension TransferGroup.State {
    /// Takes those that wait if the session's transfers have ended.
    fileprivate mutating func takeWaiters() -> [CheckedContinuation<Void, Never>] {
        guard hasEnded, loops == 0 else { return [] }
        defer { waiters = [] }
        return waiters
    }
}
