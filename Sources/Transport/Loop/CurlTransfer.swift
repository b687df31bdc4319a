// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// What the handles of transfers and streams on libcurl have in common.
///
/// Each call is queued inside of the lock, so that the loop gets them in their order, the start before all others.
protocol CurlHandle: TransferHandle {
    /// The number by which its loop knows it.
    var number: Int { get }
    /// That of the first loop; without one it can't be started.
    var mailbox: Mailbox? { get }
    var state: Lock<CurlHandleState> { get }

    /// Queues the start. Inside of the lock.
    func queueStart(on mailbox: Mailbox) -> QueuedCommand
    /// Reports to the observer that it was cancelled before its start.
    func completeUnstarted()
}

struct CurlHandleState {
    fileprivate enum Stage {
        case made
        case started
        /// Before its start.
        case cancelled
    }

    fileprivate var stage = Stage.made
    fileprivate var isSuspended = false
    /// What a stream is to send once it is started.
    fileprivate var unsent: [(bytes: Data, endOfStream: Bool)] = []
}

extension CurlHandle {
    fileprivate func queue(_ command: CurlTransport.Command) -> QueuedCommand? { mailbox?.put(command, for: number) }

    func start() {
        let (start, others) = state.withLock { state -> (QueuedCommand?, [QueuedCommand]) in
            guard state.stage == .made, let mailbox else { return (nil, []) }
            state.stage = .started
            let start = queueStart(on: mailbox)
            guard state.isSuspended || !state.unsent.isEmpty else { return (start, []) }
            var others = state.unsent.compactMap { queue(.send($0.bytes, endOfStream: $0.endOfStream, number)) }
            if state.isSuspended, let suspension = queue(.setSuspended(true, number)) { others.append(suspension) }
            state.unsent = []
            return (start, others)
        }
        start?.finish()
        for other in others { other.finish() }
    }

    func cancel() {
        let (wasMade, cancellation) = state.withLock { state -> (Bool, QueuedCommand?) in
            switch state.stage {
            case .made:
                state.stage = .cancelled
                state.unsent = []
                return (true, nil)
            case .started: return (false, queue(.cancel(number)))
            case .cancelled: return (false, nil)
            }
        }
        cancellation?.finish()
        if wasMade { completeUnstarted() }
    }

    func setSuspended(_ suspended: Bool) {
        let change = state.withLock { state -> QueuedCommand? in
            state.isSuspended = suspended
            return state.stage == .started ? queue(.setSuspended(suspended, number)) : nil
        }
        change?.finish()
    }

    func resumeReceiving() {
        state.withLock { $0.stage == .started ? queue(.resumeReceiving(number)) : nil }?.finish()
    }
}

/// A transfer of the transport on libcurl, for its owner and on its way to the loop.
final class CurlTransfer: CurlHandle, @unchecked Sendable {  // time and place are set once, before the loop gets it
    /// The placeholder for one of the loop's pool.
    static let idle = CurlTransfer(
        TransferRequest(url: "", method: .get, headers: [:], body: nil, prepared: .standard), id: 0, number: 0, NoObserver(), on: nil)

    let request: TransferRequest
    /// The number that its events have.
    let id: Int
    let number: Int
    let observer: any TransferObserver
    /// The session it belongs to, if several use the transport.
    let group: TransferGroup?
    /// When it was started.
    private(set) var time: Nanoseconds = 0
    /// Its place among those of several loops; `nil` with one.
    private(set) var slot: LoopSlot?
    let mailbox: Mailbox?
    let state = Lock(CurlHandleState())

    init(
        _ request: TransferRequest, id: Int, number: Int, _ observer: any TransferObserver, on mailbox: Mailbox?,
        of group: TransferGroup? = nil
    ) {
        self.request = request
        self.id = id
        self.number = number
        self.observer = observer
        self.mailbox = mailbox
        self.group = group
    }

    /// It gets its place among those of several loops, before it is queued for one of them.
    func take(_ slot: LoopSlot) { self.slot = slot }

    func queueStart(on mailbox: Mailbox) -> QueuedCommand {
        time = MonotonicTime.now()
        guard let group else { return mailbox.put(self) }
        return group.queue { mailbox.put(self) } ?? QueuedCommand(mailbox, .refused(.start(self)))
    }

    func completeUnstarted() { observer.completeUnstarted(id) }
}

/// A raw stream of the transport on libcurl, for its owner and on its way to the loop.
final class CurlStream: CurlHandle, StreamHandle, @unchecked Sendable {  // the place is set once, before the loop gets it
    let request: StreamTransferRequest
    /// The number that its events have.
    let id: Int
    let number: Int
    let observer: any StreamTransferObserver
    /// The session it belongs to, if several use the transport.
    let group: TransferGroup?
    /// Its place among those of several loops; `nil` with one.
    private(set) var slot: LoopSlot?
    let mailbox: Mailbox?
    let state = Lock(CurlHandleState())

    init(
        _ request: StreamTransferRequest, id: Int, number: Int, _ observer: any StreamTransferObserver, on mailbox: Mailbox,
        of group: TransferGroup? = nil
    ) {
        self.request = request
        self.id = id
        self.number = number
        self.observer = observer
        self.mailbox = mailbox
        self.group = group
    }

    /// It gets its place among those of several loops, before it is queued for one of them.
    func take(_ slot: LoopSlot) { self.slot = slot }

    func send(_ bytes: Data, endOfStream: Bool) {
        let sending = state.withLock { state -> QueuedCommand? in
            guard state.stage == .made else { return queue(.send(bytes, endOfStream: endOfStream, number)) }
            state.unsent.append((bytes, endOfStream))
            return nil
        }
        sending?.finish()
    }

    func queueStart(on mailbox: Mailbox) -> QueuedCommand {
        guard let group else { return mailbox.put(self) }
        return group.queue { mailbox.put(self) } ?? QueuedCommand(mailbox, .refused(.openStream(self)))
    }

    func completeUnstarted() { observer.completeUnstarted(id) }
}

/// Ignores all events.
private final class NoObserver: TransferObserver {
    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction { .cancel }
    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction { .cancel }
    func transfer(_ id: Int, didSend count: Int64) {}
    func transfer(_ id: Int, didComplete completion: TransferCompletion) {}
}
