// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport

@testable import CurlewTransport

/// Records the events of a transfer, and lets a test wait for its completion.
final class RecordingObserver: TransferObserver {
    struct Record: Sendable {
        /// The interim responses that were reported by themselves, in order.
        var interim: [ResponseHead] = []
        var head: ResponseHead?
        var body = Data()
        var pieces = 0
        var sent: Int64 = 0
        var completion: TransferCompletion?
        var completions = 0

        var error: (any Error)? { completion?.error }

        var failure: TransferFailure? {
            if case .transferFailed(let failure) = error as? CurlewError { failure } else { nil }
        }

        var isCancelled: Bool {
            if case .cancelled = error as? CurlewError { true } else { false }
        }

        var isInvalidated: Bool {
            if case .sessionInvalidated = error as? CurlewError { true } else { false }
        }
    }

    private struct State {
        var record = Record()
        var waiting: [TrackedContinuation<Record>] = []
    }

    private let state = Lock(State())
    private let onInterim: @Sendable (ResponseHead) -> Void
    private let onHead: @Sendable (ResponseHead) -> ReceiveAction
    private let onBytes: @Sendable (Int) -> ReceiveAction

    init(
        onInterim: @escaping @Sendable (ResponseHead) -> Void = { _ in },
        onHead: @escaping @Sendable (ResponseHead) -> ReceiveAction = { _ in .proceed },
        onBytes: @escaping @Sendable (Int) -> ReceiveAction = { _ in .proceed }
    ) {
        self.onInterim = onInterim
        self.onHead = onHead
        self.onBytes = onBytes
    }

    var record: Record { state.withLock { $0.record } }

    /// Returns the record once the transfer has completed.
    func end() async -> Record {
        await withTrackedContinuation { continuation in
            let record = state.withLock { state -> Record? in
                if state.record.completion != nil { return state.record }
                state.waiting.append(continuation)
                return nil
            }
            if let record { continuation.resume(returning: record) }
        }
    }

    /// Returns the record once it meets the condition, as of that moment.
    func record(when isMet: @escaping @Sendable (Record) -> Bool) async -> Record {
        while true {
            let record = state.withLock { $0.record }
            if isMet(record) || record.completion != nil { return record }
            await Task.yield()
        }
    }

    func transfer(_ id: Int, didReceiveInterim head: ResponseHead) {
        state.withLock { $0.record.interim.append(head) }
        onInterim(head)
    }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        state.withLock { $0.record.head = head }
        return onHead(head)
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        state.withLock {
            $0.record.body.append(contentsOf: bytes)
            $0.record.pieces += 1
        }
        return onBytes(bytes.count)
    }

    func transfer(_ id: Int, didSend count: Int64) {
        state.withLock { $0.record.sent = count }
    }

    func transfer(_ id: Int, didComplete completion: TransferCompletion) {
        let (record, waiting) = state.withLock { state in
            state.record.completion = completion
            state.record.completions += 1
            defer { state.waiting = [] }
            return (state.record, state.waiting)
        }
        for continuation in waiting { continuation.resume(returning: record) }
    }
}

extension Transport {
    /// Makes a transfer and starts it.
    @discardableResult
    func start(_ request: TransferRequest, observer: any TransferObserver) -> any TransferHandle {
        let transfer = makeTransfer(request, id: 1, observer: observer)
        transfer.start()
        return transfer
    }

    /// Makes a stream and starts it.
    @discardableResult
    func openStream(_ request: StreamTransferRequest, observer: any StreamTransferObserver) -> any StreamHandle {
        let stream = makeStream(request, id: 1, observer: observer)
        stream.start()
        return stream
    }

    /// Runs one transfer to completion.
    func run(_ request: TransferRequest, observer: RecordingObserver = RecordingObserver()) async -> RecordingObserver.Record {
        start(request, observer: observer)
        return await observer.end()
    }
}

/// Drops the body of a transfer, of which it would need more memory than there is.
final class DroppingObserver: TransferObserver {
    private let state = Lock<(hasHead: Bool, completion: TransferCompletion?)>((false, nil))

    var hasHead: Bool { state.withLock { $0.hasHead } }
    var completion: TransferCompletion? { state.withLock { $0.completion } }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
        state.withLock { $0.hasHead = true }
        return .proceed
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction { .proceed }
    func transfer(_ id: Int, didSend count: Int64) {}
    func transfer(_ id: Int, didComplete completion: TransferCompletion) { state.withLock { $0.completion = completion } }
}
