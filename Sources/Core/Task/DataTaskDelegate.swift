// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Keeps a response's body, or hands it on.
class DataTaskDelegate: TaskDelegate, @unchecked Sendable {  // as its superclass
    private enum Body {
        case kept(Data)
        case streamed(BodyBuffer)
        /// The session's delegate wanted a download.
        case file(PartFile)
    }

    private struct BodyState {
        var body = Body.kept(Data())
        var count: Int64 = 0
        /// The number of bytes announced; −1 if nobody knows.
        var total: Int64 = -1
        /// Made when somebody first wants to know.
        var progress: ProgressReporter?
        /// The head is there, and the transfer waits for somebody who wants the body.
        var isHeldAtHead = false
        /// Somebody waits for the end, and so for the body.
        var isWanted = false
        /// Whether the session's delegate gets the body instead of the request.
        var isTaken = false
        /// What is kept of bodies that are refused at their head.
        var refusal = RefusedBody.Policy.none
        /// What came of this one.
        var refused: RefusedBody?

        /// Whether the body is kept in memory.
        var isKept: Bool { if case .kept = body { true } else { false } }
    }

    /// Whether no body is received before somebody wants it.
    private let waitsForReader: Bool
    private let bodyState = Lock(BodyState())

    init(session: Session, sessionDelegate: SessionDelegate, waitsForReader: Bool = false) {
        self.waitsForReader = waitsForReader
        super.init(session: session, sessionDelegate: sessionDelegate)
    }

    override var data: Data? {
        bodyState.withLock { state in
            if case .kept(let data) = state.body { return data }
            return state.isTaken ? Data() : nil
        }
    }

    override var byteCounts: (received: Int64, sent: Int64) { (bodyCount, 0) }

    /// The number of body bytes that came.
    var bodyCount: Int64 { bodyState.withLock { $0.count } }

    /// Tells how much of the body has come.
    var downloadProgress: ProgressReporter {
        let isHeadRequest = isHeadRequest
        return bodyState.withLock { state in
            let total = state.total > 0 && isHeadRequest ? 0 : state.total
            let progress = state.progress ?? ProgressReporter(completed: state.count, total: total)
            state.progress = progress
            return progress
        }
    }

    override func reset() {
        bodyState.withLock { state in
            let body = state.body
            state.progress?.reset()
            state = BodyState(progress: state.progress, isWanted: state.isWanted, refusal: state.refusal)
            if case .file(let file) = body { file.discard() }
            guard case .streamed(let buffer) = body else { return }
            buffer.restart()
            state.body = body
        }
    }

    override func accept(_ head: ResponseHead) -> ReceiveAction {
        // A body that is written to a file is not handed out.
        if let take = sessionDelegate.closures.withLock({ $0.dataTaskDidReceiveData }), file == nil { give(to: take) }
        let length = head.expectedBodyLength ?? -1
        let progress = bodyState.withLock { state in
            state.total = length
            return state.progress
        }
        progress?.setTotal(length > 0 && isHeadRequest ? 0 : length)
        guard waitsForReader else { return mayKeep(head) ? .proceed : refuse(head) }
        let isRead = bodyState.withLock { state in
            guard state.isKept else { return true }
            state.isHeldAtHead = !state.isWanted
            return state.isWanted
        }
        return isRead ? judge(head, hasBody: false) : .pause
    }

    /// Whether the body may be kept in memory by its announced length.
    private func mayKeep(_ head: ResponseHead) -> Bool {
        let limit = session.configuration.maximumBodySize
        guard head.announcedLength(over: limit) != nil, bodyState.withLock({ $0.isKept }) else { return true }
        guard head.statusCode != 204, head.statusCode != 304 else { return true }
        return isHeadRequest
    }

    /// Whether no body comes, whatever length is announced (RFC 9110, section 9.3.2).
    private var isHeadRequest: Bool { state.withLock { $0.task }?.currentTransfer?.method == .head }

    /// Fails the request before a byte of its body is received: at once if a task awaits it, else after ``SessionDelegate/waitForHandler``,
    /// as a `stream` closure chained to it may still ask for the body in pieces.
    private func refuse(_ head: ResponseHead) -> ReceiveAction {
        guard let task = state.withLock({ $0.isAwaited ? nil : $0.task }) else {
            failForLength(of: head)
            return .cancel
        }
        bodyState.withLock { $0.isHeldAtHead = true }
        session.timers.start(after: SessionDelegate.waitForHandler) { [weak self] in
            if self?.state.withLock({ $0.task }) === task { self?.refuseHeld() }
        }
        return .pause
    }

    /// Refuses the body that waits at its head, unless it is read in pieces by now.
    private func refuseHeld() {
        let isHeld = bodyState.withLock { state in
            guard state.isHeldAtHead, state.isKept else { return false }
            state.isHeldAtHead = false
            return true
        }
        guard isHeld, case let (task?, head?) = state.withLock({ ($0.task, $0.head) }) else { return }
        failForLength(of: head)
        task.cancel()
    }

    private func failForLength(of head: ResponseHead) {
        let limit = session.configuration.maximumBodySize
        let length = head.announcedLength(over: limit) ?? 0
        failForSize("The body's announced length of \(length) bytes exceeds the limit of \(limit) bytes", received: 0)
    }

    /// A body that somebody reads can't be read again; a closure is called again.
    override func holdForRetry() -> Bool { buffer?.holdForRetry() ?? true }

    /// Whether the head of a streamed response is acceptable, as far as that can be said without running code of users: pieces of a body
    /// that is refused are not handed on. Its content type counts as soon as there is a body.
    private func judge(_ head: ResponseHead, hasBody: Bool) -> ReceiveAction {
        // A cancelled request fails as cancelled, not with a validation error.
        guard state.withLock({ $0.task })?.state != .canceling else {
            fail(cancellation)
            return .cancel
        }
        let error = state.withLock { state in
            state.validators.lazy.filter { hasBody || !$0.needsBody }.compactMap { $0.failure(of: head) }.first
        }
        guard let error else { return .proceed }
        fail(error)
        return keepsRefusedBody() ? .proceed : .cancel
    }

    /// Whoever waits for the end gets it only if the body comes, be it read piece by piece or not.
    override func resultIsWanted() {
        guard waitsForReader else { return }
        bodyState.withLock { $0.isWanted = true }
        releaseHead()
    }

    override func endIsAwaited() {
        if !waitsForReader { refuseHeld() }
    }

    /// Lets the body come, now that somebody wants it.
    private func releaseHead() {
        let wasHeld = bodyState.withLock { state in
            defer { state.isHeldAtHead = false }
            return state.isHeldAtHead
        }
        let (task, head) = state.withLock { ($0.task, $0.head) }
        guard wasHeld, let task, let head else { return }
        if judge(head, hasBody: false) == .cancel { task.cancel() } else { task.resumeReceiving() }
    }

    override func accept(_ bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        if waitsForReader, bodyCount == 0, let head = state.withLock({ $0.head }), judge(head, hasBody: true) == .cancel { return .cancel }
        if waitsForReader, let action = keepRefused(bytes) { return action }
        let limit = session.configuration.maximumBodySize
        let (action, count, progress) = bodyState.withLock { state -> (ReceiveAction, Int64, ProgressReporter?) in
            state.count += Int64(bytes.count)
            switch state.body {
            case .streamed(let buffer):
                return (buffer.append(bytes) ? .proceed : .pause, state.count, state.progress)
            case .file(let file):
                return (write(bytes, to: file), state.count, state.progress)
            case .kept(var data):
                guard state.count <= Int64(limit) else { return (.cancel, state.count, state.progress) }
                // Taken out of the enumeration while it grows: a second reference would copy it.
                state.body = .kept(Data())
                data.append(bytes, of: state.total)
                state.body = .kept(data)
                return (.proceed, state.count, state.progress)
            }
        }
        if action == .cancel, error == nil { failForSize("The body exceeds the limit of \(limit) bytes", received: count) }
        progress?.update(completed: count)
        return action
    }

    // MARK: Refused bodies

    /// What came of a body that was refused at its head; `nil` where none was, or nothing is kept.
    var refusedBody: Data? { bodyState.withLock { $0.refused?.bytes } }

    /// Keeps so much of bodies that are refused at their head.
    func keepRefusedBodies(_ policy: RefusedBody.Policy) {
        bodyState.withLock { $0.refusal = policy }
    }

    /// Begins to keep the body that was refused, if any is to be kept; whether the transfer goes on for that.
    private func keepsRefusedBody() -> Bool {
        let (begins, policy) = bodyState.withLock { state -> (Bool, RefusedBody.Policy) in
            guard state.refusal.limit > 0, state.refused == nil else { return (false, state.refusal) }
            state.refused = RefusedBody()
            return (true, state.refusal)
        }
        guard begins, let task = state.withLock({ $0.task }) else { return policy.limit > 0 }
        session.timers.start(after: policy.timeout) { [weak self, weak task] in
            guard let self, let task, self.state.withLock({ $0.task }) === task else { return }
            task.endTransfer()
        }
        return true
    }

    /// Keeps a piece of a refused body; `nil` if the body was not refused.
    private func keepRefused(_ bytes: UnsafeRawBufferPointer) -> ReceiveAction? {
        bodyState.withLock { state in
            guard state.refused != nil else { return nil }
            state.count += Int64(bytes.count)
            return state.refused?.append(bytes, limit: state.refusal.limit)
        }
    }

    private func write(_ bytes: UnsafeRawBufferPointer, to file: PartFile) -> ReceiveAction {
        do {
            try file.write(bytes)
            return .proceed
        } catch {
            fail(error)
            return .cancel
        }
    }

    private func failForSize(_ message: String, received: Int64) {
        let url = state.withLock { $0.task }?.currentTransfer?.url ?? ""
        fail(
            CurlewError.transferFailed(
                TransferFailure(
                    kind: .tooLarge, url: url, phase: .receivingBody, message: message, requestWasSent: true, bytesReceived: received)))
    }

    // MARK: Streaming

    /// Hands the body to a closure from now on, what has come first.
    func setStream(_ closure: (@Sendable (Data) -> Void)?) {
        let buffer = makeBuffer()
        if let closure { buffer.drain(on: session.queue, to: closure) } else { buffer.drop() }
    }

    /// A buffer that gets the body from now on, what has come first. What another one has got stays there.
    ///
    /// A body that goes to a file stays there: the buffer gets nothing.
    func makeBuffer() -> BodyBuffer {
        let buffer = BodyBuffer { [weak self] in self?.state.withLock { $0.task }?.resumeReceiving() }
        bodyState.withLock { state in
            if case .file = state.body { return }
            if case .kept(let data) = state.body, !data.isEmpty { _ = data.withUnsafeBytes { buffer.append($0) } }
            state.body = .streamed(buffer)
        }
        releaseHead()
        return buffer
    }

    /// Has the session's delegate get the body.
    private func give(to take: @escaping @Sendable (Session, SessionTask, Data) -> Void) {
        guard let task = state.withLock({ $0.task }) else { return }
        setStream { [session] in take(session, task, $0) }
        bodyState.withLock { $0.isTaken = true }
    }

    /// Has the body written to a file in the session's temporary directory. Before it comes; on the session's queue.
    override func becomeDownload() throws {
        let file = try PartFile(in: session.configuration.temporaryDirectory)
        bodyState.withLock { $0.body = .file(file) }
        guard let task = state.withLock({ $0.task }) else { return }
        sessionDelegate.closures.withLock { $0.dataTaskDidBecomeDownloadTask }?(session, task, task)
    }

    private var file: PartFile? {
        bodyState.withLock { if case .file(let file) = $0.body { file } else { nil } }
    }

    /// Has the session's delegate take the file, and removes it if it does not.
    private func deliver(_ file: PartFile) {
        defer { file.discard() }
        do {
            try file.close()
            try file.giveName()
            guard error == nil, let take = sessionDelegate.closures.withLock({ $0.downloadTaskDidFinishDownloadingToURL }),
                let task = state.withLock({ $0.task })
            else { return }
            take(session, task, file.url)
        } catch {
            fail(error)
        }
    }

    private var buffer: BodyBuffer? {
        bodyState.withLock { if case .streamed(let buffer) = $0.body { buffer } else { nil } }
    }

    /// The closure gets everything before the request ends.
    override var mustConcludeOnQueue: Bool {
        bodyState.withLock { state in
            switch state.body {
            case .kept: false
            case .streamed(let buffer): buffer.hasDrain
            case .file: true
            }
        }
    }

    override func settle() {
        buffer?.drainNow()
        if let file { deliver(file) }
    }
}

extension ResponseHead {
    /// How much longer than decoded a coded body may be: what can't be compressed grows a little.
    private static let largestCodingOverhead: Int64 = 64 * 1024

    /// The announced length of the body, if it does not fit into a limit; `nil` if it may.
    fileprivate func announcedLength(over limit: Int) -> Int64? {
        if let expectedBodyLength { return expectedBodyLength > limit ? expectedBodyLength : nil }
        guard contains("content-encoding"), let length = value(for: "Content-Length").flatMap({ Int64($0) }), length > 0,
            length - Self.largestCodingOverhead > limit
        else { return nil }
        return length
    }
}

extension Data {
    /// What an announced length may reserve: a lying server gets no memory for nothing.
    private static let largestReservation: Int64 = 1 << 20

    /// Adds a piece of a body of which so many bytes were announced; the first one takes memory for all of it.
    fileprivate mutating func append(_ piece: UnsafeRawBufferPointer, of announced: Int64) {
        guard isEmpty, let start = piece.baseAddress else { return append(contentsOf: piece) }
        guard piece.count < announced else {
            self = Data(bytes: start, count: piece.count)
            return
        }
        reserveCapacity(Int(Swift.min(announced, Self.largestReservation)))
        append(contentsOf: piece)
    }
}
