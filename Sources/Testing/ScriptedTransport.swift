// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A transport that performs scripts: the engine of ``MockTransport``, and of tests that decide step by step what happens to a transfer.
package final class ScriptedTransport: Transport {
    /// One event of a transfer.
    package enum Step: Sendable {
        /// An interim response; `100 Continue` is only noted for the head that follows, as over a network.
        case interim(ResponseHead)
        case head(Int, HTTPHeaders = [:])
        /// A head that another transport has received.
        case received(ResponseHead)
        case bytes(Data)
        /// This number of bytes of the request's body was sent.
        case sent(Int64)
        /// Reads the request's body to its end, as a network would.
        case sendBody
        /// Waits on the transport's clock.
        case wait(Duration)
        /// Waits until the transfer is cancelled.
        case stall
        /// Calls a closure, which adds the next steps, at once or later, by ``ScriptedExchange/resume(with:)``.
        case ask(@Sendable (ScriptedExchange) -> Void)
        case complete((any Error)? = nil, trailers: HTTPHeaders = [:])
    }

    private struct State {
        /// The exchanges and streams that were started and have not delivered their completion.
        var running: [ObjectIdentifier: any ScriptedTransfer] = [:]
        var isShutDown = false
        var startHook: StartHook?
        var waiters: [CheckedContinuation<Void, Never>] = []

        /// Takes the tasks that wait for the end, if the transport has ended.
        mutating func takeWaiters() -> [CheckedContinuation<Void, Never>] {
            guard isShutDown, running.isEmpty else { return [] }
            defer { waiters = [] }
            return waiters
        }
    }

    /// A closure in a type of its own: each access to a closure that is the whole state of a lock, or an optional in it, wraps it once more.
    private struct StartHook {
        let body: @Sendable (Int) -> Void
    }

    /// The transfers in the order in which they were started.
    package let started = Inbox<ScriptedExchange>()
    /// The raw streams in the order in which they were started.
    package let opened = Inbox<ScriptedStream>()
    /// Whether cancelled transfers end only when the test performs that, by ``ScriptedExchange/pumpLater()``: as if the thread were busy.
    package let holdsCancellations = Lock(false)
    let clock: VirtualClock?
    let queue = DispatchQueue(label: "curlew.scripted-transport")
    private let isSynchronous: Bool
    private let keepsExchanges: Bool
    private let script: @Sendable (TransferRequest) -> [Step]
    private let serve: @Sendable (ScriptedStream) -> Void
    private let state = Lock(State())
    private let exchangeWaits = Lock(ExchangeWaits())

    /// - Parameters:
    ///   - isSynchronous: whether the script is performed before `start` returns, as far as nothing holds it up.
    ///   - keepsExchanges: whether ``started`` and ``opened`` are filled.
    ///   - clock: the clock of its waits; `nil` for the system's.
    ///   - script: the first steps of a transfer; of one that is refused, they are not performed.
    ///   - serve: called with each stream that was started.
    package init(
        isSynchronous: Bool = false, keepsExchanges: Bool = true, clock: VirtualClock? = nil,
        script: @escaping @Sendable (TransferRequest) -> [Step] = { _ in [] },
        serve: @escaping @Sendable (ScriptedStream) -> Void = { _ in }
    ) {
        self.isSynchronous = isSynchronous
        self.keepsExchanges = keepsExchanges
        self.clock = clock
        self.script = script
        self.serve = serve
        clock?.began(self)
    }

    /// Calls a closure with the number of each transfer when it is started, before it is in ``started``; `nil` for none.
    package func onStart(_ body: (@Sendable (Int) -> Void)?) { state.withLock { $0.startHook = body.map { StartHook(body: $0) } } }

    package func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        var outgoing = request
        var failure: (any Error)?
        do { outgoing = try request.signed() } catch { failure = error }
        // The source retains the session, which retains this transport.
        if keepsExchanges { outgoing.source = nil }
        return ScriptedExchange(outgoing, id: id, observer, on: self, failing: failure)
    }

    package func makeStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) -> any StreamHandle {
        ScriptedStream(request, id: id, observer, on: self)
    }

    package func shutDown() {
        let running = state.withLock { state in
            state.isShutDown = true
            // It may retain a request, which retains this transport.
            state.startHook = nil
            return Array(state.running.values)
        }
        for transfer in running { transfer.stop(.sessionInvalidated) }
        update { _ in }
    }

    /// Returns when the completions of all exchanges and streams were delivered after ``shutDown()``.
    package func waitUntilShutDown() async {
        await withCheckedContinuation { continuation in update { $0.waiters.append(continuation) } }
    }

    /// Changes the state, and resumes the tasks that wait for the end if the transport has ended.
    private func update(_ change: (inout State) -> Void) {
        let waiters = state.withLock { state in
            change(&state)
            return state.takeWaiters()
        }
        for waiter in waiters { waiter.resume() }
    }

    // MARK: For exchanges and streams

    /// Notes what is being started. Returns `false` if it is refused.
    func enter(_ transfer: any ScriptedTransfer) -> Bool {
        state.withLock { state in
            state.running[ObjectIdentifier(transfer)] = transfer
            return !state.isShutDown
        }
    }

    func begin(_ exchange: ScriptedExchange, isRefused: Bool) {
        state.withLock { $0.startHook }?.body(exchange.id)
        exchange.add(exchange.failure.map { [.complete($0)] } ?? script(exchange.request))
        clock?.changed()
        if keepsExchanges { started.put(exchange) }
        if isSynchronous || isRefused { exchange.pump() } else { exchange.pumpLater() }
    }

    func begin(_ stream: ScriptedStream) {
        if keepsExchanges { opened.put(stream) }
        serve(stream)
    }

    /// Releases what has completed.
    func remove(_ transfer: any ScriptedTransfer) { update { $0.running[ObjectIdentifier(transfer)] = nil } }

    func waitChanged(from old: ExchangeWaits.Kind?, to new: ExchangeWaits.Kind?) {
        exchangeWaits.withLock { $0.change(from: old, to: new) }
    }

    // MARK: For the clock

    /// Calls a closure after what is queued now.
    func afterQueuedWork(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }

    /// What the exchanges wait for.
    var waits: ExchangeWaits { exchangeWaits.withLock { $0 } }
}

extension [ScriptedTransport.Step] {
    /// A whole response.
    package static func response(_ status: Int = 200, _ headers: HTTPHeaders = [:], _ body: String = "", readsBody: Bool = false) -> Self {
        (readsBody ? [.sendBody] : []) + [.head(status, headers)] + (body.isEmpty ? [] : [.bytes(Data(body.utf8))]) + [.complete()]
    }
}
