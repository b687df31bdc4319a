// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// A raw stream of a scripted transport.
package final class ScriptedStream: StreamHandle, ScriptedTransfer {
    private struct State {
        /// Released when the completion was delivered.
        var transport: ScriptedTransport?
        /// Released when the completion is delivered.
        var observer: (any StreamTransferObserver)?
        /// Called once after the completion.
        var didComplete: (@Sendable () -> Void)?
        var isStarted = false
        var isStopped = false
    }

    package let id: Int
    package let request: StreamTransferRequest
    /// What the session has sent, piece by piece.
    package let written = Inbox<(Data, Bool)>()
    /// How often the session has withdrawn a pause.
    package let resumed = Inbox<Void>()
    private let queue: DispatchQueue
    private let state: Lock<State>

    init(_ request: StreamTransferRequest, id: Int, _ observer: any StreamTransferObserver, on transport: ScriptedTransport) {
        self.id = id
        self.request = request
        queue = transport.queue
        state = Lock(State(transport: transport, observer: observer))
    }

    // MARK: StreamHandle

    package func start() {
        let transport = state.withLock { state -> ScriptedTransport? in
            guard !state.isStarted, !state.isStopped, let transport = state.transport else { return nil }
            state.isStarted = true
            // Together with the start: a cancellation after it is no reason any more.
            if !transport.enter(self) { complete(CurlewError.sessionInvalidated) }
            return transport
        }
        transport?.begin(self)
    }

    package func cancel() { stop(.cancelled) }

    func stop(_ error: CurlewError) {
        state.withLock { $0.isStopped = true }
        complete(error)
    }

    package func setSuspended(_ suspended: Bool) {}

    package func resumeReceiving() {
        if state.withLock({ $0.isStarted && $0.observer != nil }) { resumed.put(()) }
    }

    package func send(_ bytes: Data, endOfStream: Bool) {
        if !isOver { written.put((bytes, endOfStream)) }
    }

    // MARK: Events

    private var observer: (any StreamTransferObserver)? { state.withLock { $0.observer } }

    package func open(_ metrics: TransferMetrics = TransferMetrics()) { queue.sync { observer?.stream(id, didOpen: metrics) } }

    @discardableResult
    package func receive(_ data: Data) -> ReceiveAction {
        queue.sync { observer.map { observer in data.withUnsafeBytes { observer.stream(id, didReceive: $0) } } ?? .cancel }
    }

    package func endReceiving() { queue.sync { observer?.streamDidEndReceiving(id) } }

    package func sent(_ count: Int64) { queue.sync { observer?.stream(id, didSend: count) } }

    package var isOver: Bool { observer == nil }

    package func complete(_ error: (any Error)? = nil) {
        queue.async { [self] in
            guard let last = state.withLock({ $0.observer.take() }) else { return }
            last.stream(id, didComplete: TransferCompletion(error: error, metrics: TransferMetrics()))
            let (transport, didComplete) = state.withLock { ($0.transport.take(), $0.didComplete.take()) }
            transport?.remove(self)
            didComplete?()
        }
    }

    /// Calls a closure after the completion, at once if that was delivered.
    func afterCompletion(_ body: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            if state.transport != nil { state.didComplete = body }
            return state.transport == nil
        }
        if isOver { body() }
    }
}
