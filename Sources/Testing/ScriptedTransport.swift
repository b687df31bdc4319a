// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A transport that performs scripts: the engine of ``MockTransport``, and of tests that decide step by step what happens to a transfer.
package final class ScriptedTransport: Transport {
    /// One event of a transfer.
    package enum Step: Sendable {
        case head(Int, HTTPHeaders = [:])
        /// A head that another transport has received.
        case received(ResponseHead)
        case bytes(Data)
        /// So many bytes of the request's body were sent.
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
        var exchanges: [Int: ScriptedExchange] = [:]
        var streams: [Int: ScriptedStream] = [:]
        var isShutDown = false
        var startHook: StartHook?
    }

    /// A closure in a type of its own: each access to a closure that is the whole state of a lock, or an optional in it, wraps it once more.
    private struct StartHook {
        let body: @Sendable (Int) -> Void
    }

    /// The transfers in the order in which they were started.
    package let started = Inbox<ScriptedExchange>()
    /// The raw streams in the order in which they were opened.
    package let opened = Inbox<ScriptedStream>()
    /// Whether cancelled transfers end only when the test performs that, by ``ScriptedExchange/pumpLater()``: as if the thread were busy.
    package let holdsCancellations = Lock(false)
    private let clock: VirtualClock?
    private let isSynchronous: Bool
    private let keepsExchanges: Bool
    private let script: @Sendable (TransferRequest) -> [Step]
    private let state = Lock(State())
    private let queue = DispatchQueue(label: "curlew.scripted-transport")

    /// - Parameters:
    ///   - isSynchronous: whether the script is performed before `start` returns, as far as nothing holds it up.
    ///   - keepsExchanges: whether ``started`` and ``opened`` are filled.
    ///   - clock: the clock of its waits; `nil` for the system's.
    ///   - script: the first steps of a transfer; of one that is refused, they are not performed.
    package init(
        isSynchronous: Bool = false, keepsExchanges: Bool = true, clock: VirtualClock? = nil,
        script: @escaping @Sendable (TransferRequest) -> [Step] = { _ in [] }
    ) {
        self.isSynchronous = isSynchronous
        self.keepsExchanges = keepsExchanges
        self.clock = clock
        self.script = script
        clock?.began(self)
    }

    /// Calls a closure with the number of each transfer before the transport knows it; `nil` for none.
    package func onStart(_ body: (@Sendable (Int) -> Void)?) { state.withLock { $0.startHook = body.map { StartHook(body: $0) } } }

    package func start(_ request: TransferRequest, id: Int, observer: any TransferObserver) {
        state.withLock { $0.startHook }?.body(id)
        let exchange = ScriptedExchange(id: id, request: request, observer: observer, queue: queue, clock: clock) { [weak self] in
            self?.remove($0)
        }
        // Before the clock sees it: without steps it would seem to wait for time, and the clock could jump before it has begun.
        exchange.add(script(request))
        let isRefused = state.withLock { state in
            state.exchanges[id] = exchange
            return state.isShutDown
        }
        if isRefused { exchange.end(with: CurlewError.sessionInvalidated) }
        clock?.changed()
        if keepsExchanges { started.put(exchange) }
        if isSynchronous { exchange.pump() } else { exchange.pumpLater() }
    }

    package func cancel(_ id: Int) {
        if !holdsCancellations.withLock({ $0 }) {
            exchange(id)?.end(with: CurlewError.cancelled)
            exchange(id)?.pumpLater()
        }
        stream(id)?.complete(CurlewError.cancelled)
    }

    package func setSuspended(_ suspended: Bool, of id: Int) {
        exchange(id)?.setSuspended(suspended)
        exchange(id)?.pumpLater()
    }

    package func resumeReceiving(_ id: Int) {
        exchange(id)?.resumeReceiving()
        exchange(id)?.pumpLater()
        stream(id)?.resumed.put(())
    }

    package func openStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) {
        opened.put(makeStream(request, id: id, observer: observer))
    }

    func makeStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) -> ScriptedStream {
        let stream = ScriptedStream(id: id, request: request, observer: observer, queue: queue)
        let isRefused = state.withLock { state in
            state.streams[id] = stream
            return state.isShutDown
        }
        if isRefused { stream.complete(CurlewError.sessionInvalidated) }
        return stream
    }

    package func send(_ bytes: Data, endOfStream: Bool, on id: Int) {
        stream(id)?.written.put((bytes, endOfStream))
    }

    package func shutDown() {
        let (exchanges, streams) = state.withLock { state in
            state.isShutDown = true
            // It may retain a request, which retains this transport.
            state.startHook = nil
            return (Array(state.exchanges.values), Array(state.streams.values))
        }
        for exchange in exchanges where !holdsCancellations.withLock({ $0 }) {
            exchange.end(with: CurlewError.sessionInvalidated)
            exchange.pumpLater()
        }
        for stream in streams { stream.complete(CurlewError.sessionInvalidated) }
    }

    private func exchange(_ id: Int) -> ScriptedExchange? { state.withLock { $0.exchanges[id] } }

    private func stream(_ id: Int) -> ScriptedStream? { state.withLock { $0.streams[id] } }

    /// Releases a completed exchange, unless a follow-up has its number already.
    private func remove(_ exchange: ScriptedExchange) {
        state.withLock { state in
            if state.exchanges[exchange.id] === exchange { state.exchanges[exchange.id] = nil }
        }
    }

    // MARK: For the clock

    /// Calls a closure after what is queued now.
    func afterQueuedWork(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }

    func count(in waits: inout ExchangeWaits) {
        for exchange in state.withLock({ Array($0.exchanges.values) }) { exchange.count(in: &waits) }
    }
}

extension [ScriptedTransport.Step] {
    /// A whole response.
    package static func response(_ status: Int = 200, _ headers: HTTPHeaders = [:], _ body: String = "", readsBody: Bool = false) -> Self {
        (readsBody ? [.sendBody] : []) + [.head(status, headers)] + (body.isEmpty ? [] : [.bytes(Data(body.utf8))]) + [.complete()]
    }
}
