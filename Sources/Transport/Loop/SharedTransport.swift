// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// One session's part of a transport on libcurl that several sessions use: they have its thread in common, and nothing else.
///
/// Connections, TLS sessions, resolved names, limits per host and decisions on certificates are the session's own, as if it had a transport
/// for itself. ``shutDown()`` ends its transfers and closes its connections; the thread ends with the last session. Between requests, a
/// session has no descriptors but its pooled connections, and those of the sessions unused for longest are closed first. What happens to
/// connections can't be observed.
package final class SharedTransport: EventLoopTransport {
    private let group: TransferGroup
    private let mailbox: Mailbox
    /// `nil` after the end, so that the thread of the last session ends with it.
    private let base: Lock<CurlTransport?>

    /// - Parameters:
    ///   - base: the transport whose thread is used, for sessions only. It has one loop.
    ///   - configuration: of the session's connections.
    package init(_ base: CurlTransport, configuration: TransportConfiguration) {
        mailbox = base.mailbox
        group = TransferGroup(number: base.makeNumber(), configuration: configuration)
        self.base = Lock(base)
    }

    deinit {
        shutDown()
    }

    /// The transport whose thread is used; `nil` after the end.
    var shared: CurlTransport? { base.withLock { $0 } }

    private func makeNumber() -> Int { base.withLock { $0?.makeNumber() } ?? 0 }

    package func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        CurlTransfer(request, id: id, number: makeNumber(), observer, on: mailbox, of: group)
    }

    package func makeStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) -> any StreamHandle {
        CurlStream(request.prepared, id: id, number: makeNumber(), observer, on: mailbox, of: group)
    }

    package func shutDown() {
        group.end(on: mailbox)
        // Not released while the lock is held: that of the last session ends the thread.
        let last = base.withLock { $0.take() }
        withExtendedLifetime(last) {}
    }

    /// Waits until the session's transfers have completed and its connections are closed; and for the thread, if it was the last session.
    package func waitUntilShutDown() async {
        await group.waitUntilEnded()
        if mailbox.isClosed { await mailbox.waitUntilEnded() }
    }

    // MARK: Connections

    private var connections: LoopConnections { LoopConnections(mailboxes: [mailbox], group: group.number, limits: group.configuration) }

    package func connectionStatistics() async -> ConnectionStatistics { await connections.statistics() }

    package func closeIdleConnections() async -> Int { await connections.closeIdle() }

    package func prewarm(_ request: TransferRequest, count: Int) async throws -> Int {
        try await connections.prewarm(request, count: count, over: self)
    }

    @available(macOS 15.0, iOS 18.0, watchOS 11.0, tvOS 18.0, visionOS 2.0, *)
    package var taskExecutor: any TaskExecutor { mailbox }

    @available(macOS 15.0, iOS 18.0, watchOS 11.0, tvOS 18.0, visionOS 2.0, *)
    package var taskExecutors: [any TaskExecutor] { [mailbox] }
}

/// What the transfers of one session have in common on a transport of several: whether they may start.
///
/// Apart from the transport, so that a handle does not retain that. Thread-safe; the lock is taken after that of a handle, and before that
/// of `Mailbox`.
final class TransferGroup: Sendable {
    fileprivate struct State {
        var hasEnded = false
        /// Whether its transfers have completed.
        var isOver = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    /// Not 0, and no other session's on the transport.
    let number: Int
    let configuration: TransportConfiguration
    private let state = Lock(State())

    init(number: Int, configuration: TransportConfiguration) {
        self.number = number
        self.configuration = configuration
    }

    /// Queues the start of a transfer; `nil` if the session has ended. Inside of the lock, so that the command that ends the session's
    /// transfers comes after it.
    func queue(_ start: () -> QueuedCommand) -> QueuedCommand? {
        state.withLock { $0.hasEnded ? nil : start() }
    }

    /// Ends the session's transfers; the first call counts.
    func end(on mailbox: Mailbox) {
        let command = state.withLock { state -> QueuedCommand? in
            guard !state.hasEnded else { return nil }
            state.hasEnded = true
            let command = endCommand
            return QueuedCommand(mailbox, mailbox.put(command))
        }
        command?.finish()
    }

    private var endCommand: CurlTransport.Command {
        .visit { [self] loop in
            loop?.end(group: number)
            let waiters = state.withLock { state in
                state.isOver = true
                return state.takeWaiters()
            }
            for waiter in waiters { waiter.resume() }
        }
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
        guard isOver else { return [] }
        defer { waiters = [] }
        return waiters
    }
}
