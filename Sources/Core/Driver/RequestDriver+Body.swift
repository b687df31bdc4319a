// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// How the body of an accepted response is received.

extension RequestDriver {
    /// Accepts the response: its body is received, or refused by its receiver.
    func accept(_ head: ResponseHead, of task: SessionTask, isOnQueue: Bool) -> ReceiveAction {
        do {
            switch try body.receive(head, Exchange(isHead: task.isHead, listeners: listeners(of: task), task: task)) {
            case .proceed: return .proceed
            case .waitForReader: return waitForReader(of: head, task)
            case .refuse(let error): return try refuse(head, of: task, because: error)
            case .prepare(let newHead, let prepare):
                if let newHead { state.withLock { $0.attempt.head = newHead } }
                guard !isOnQueue else {
                    try prepare()
                    return .proceed
                }
                self.prepare(task, prepare)
                return .pause
            case .restart(let change):
                guard var request = task.currentTransfer else { return .cancel }
                change(&request)
                state.withLock { state in
                    state.attempt.decision = .followUp(FollowUp(request: request, kind: .restart))
                    // Not received to reuse the connection: the body may be a whole file.
                    state.attempt.discarded = DiscardedBody(announced: .max)
                }
                return .cancel
            }
        } catch {
            fail(error)
            return .cancel
        }
    }

    /// Prepares the receiver on the session's queue, and then receives the body.
    private func prepare(_ task: SessionTask, _ prepare: @escaping @Sendable () throws -> Void) {
        state.withLock { $0.pendingDecision.beginApplying() }
        session.queue.async { [self] in
            do {
                try prepare()
                continueTransfer(of: task, with: .proceed)
            } catch {
                fail(error)
                continueTransfer(of: task, with: .cancel)
            }
        }
    }

    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction {
        let (isCurrent, discarded) = state.withLock { state -> (Bool, DiscardedBody?) in
            // A late piece of an earlier attempt is not counted as one of this attempt's.
            guard state.number == id else { return (false, nil) }
            state.attempt.discarded?.receive(bytes.count)
            if !state.exchanges.isEmpty { state.noteBodyReceived(Int64(bytes.count)) }
            return (true, state.attempt.discarded)
        }
        guard isCurrent else { return .cancel }
        if let discarded { return discarded.isCutOff ? .cancel : .proceed }
        do {
            if body.waitsForReader, body.receivedCount == 0, let head = state.withLock({ $0.attempt.head }),
                validate(head, hasBody: true) == .cancel
            {
                return .cancel
            }
            return try body.receive(bytes)
        } catch {
            fail(error)
            return .cancel
        }
    }

    // MARK: Bodies that wait for a reader

    private func waitForReader(of head: ResponseHead, _ task: SessionTask) -> ReceiveAction {
        guard !isRead, wait(for: [.handler, .reader], { _ in self.receiveHeld(head, of: task) }) else {
            return validateAtHead(head, of: task)
        }
        return .pause
    }

    /// Fails the request before a byte of its body is received: at once if a task awaits it, else after a moment, as a `stream` closure
    /// may still be chained to it.
    private func refuse(_ head: ResponseHead, of task: SessionTask, because error: any Error) throws -> ReceiveAction {
        let mustWait = wait(for: [.awaiter, .reader], atMost: Self.handlerWait) { attachment in
            if attachment.contains(.reader) { return self.receiveHeld(head, of: task) }
            self.fail(error)
            task.cancel()
        }
        guard mustWait else { throw error }
        return .pause
    }

    /// Receives the body that has waited for a reader or a handler.
    private func receiveHeld(_ head: ResponseHead, of task: SessionTask) {
        if validateAtHead(head, of: task) == .cancel { task.cancel() } else { task.resumeReceiving() }
    }

    /// Whether the body has a reader.
    var isRead: Bool { (body as? DataReceiver)?.isRead ?? false }

    /// Resumes the current transfer, for a reader's buffer.
    var resumeTransfer: @Sendable () -> Void { { [weak self] in self?.task?.resumeReceiving() } }

    /// Validates the head of a response, and hands it out unless it is refused.
    private func validateAtHead(_ head: ResponseHead, of task: SessionTask) -> ReceiveAction {
        let action = validate(head, hasBody: head.bodyLength(toHead: task.isHead) ?? 0 > 0)
        if action == .proceed, let receiver = body as? DataReceiver, receiver.refusedBody == nil { receiver.handOut(head) }
        return action
    }

    /// Runs the validators that need no users' code on the head of a streamed response, so that no piece of a refused body is handed on.
    /// The content type of one that announces no length is validated at the first piece, as a response without a body needs none.
    private func validate(_ head: ResponseHead, hasBody: Bool) -> ReceiveAction {
        let (task, validators) = state.withLock { ($0.task, $0.validators) }
        // A cancelled request fails as cancelled, not with a validation error.
        guard task?.state != .canceling else {
            fail(cancellation)
            return .cancel
        }
        guard let error = validators.lazy.filter({ hasBody || !$0.needsBody }).compactMap({ $0.failure(of: head) }).first else {
            return .proceed
        }
        fail(error)
        guard let receiver = body as? DataReceiver else { return .cancel }
        let decoders = state.withLock { $0.refusalDecoders }
        let limit = decoders.map(\.limit).max().map { max($0, RefusedBody.limit) }
        if receiver.keepRefusedBody(upTo: limit ?? RefusedBody.limit), let task {
            // The bytes received by then are enough.
            let timeout = limit == nil ? RefusedBody.timeout : RefusedBody.decodingTimeout
            session.systemTimers.start(after: timeout) { [weak self, weak task] in
                if let task, self?.task === task { task.endTransfer() }
            }
        }
        return .proceed
    }

    /// What the body's receiver knows about the attempt.
    func completedAttempt(of request: Request) -> CompletedAttempt {
        let (task, error, isComplete, validators) = state.withLock { ($0.task, $0.attempt.error, $0.attempt.hasSucceeded, $0.validators) }
        return CompletedAttempt(
            error: error, isComplete: isComplete, hasCustomValidator: validators.contains(where: \.isCustom),
            listeners: task.flatMap { listeners(of: $0) }, context: request.context)
    }

    /// The closures of the session's delegate that concern the body of a task; `nil` for none.
    func listeners(of task: SessionTask) -> BodyListeners? {
        closures { [session] closures in
            guard closures.concernBodies else { return nil }
            var listeners = BodyListeners(queue: session.queue, resume: resumeTransfer)
            listeners.keepsProgress = ownClosures != nil
            if let take = closures.dataTaskDidReceiveData { listeners.takePiece = BodyBuffer.taker { take(session, task, $0) } }
            if let take = closures.dataTaskTakesData { listeners.takePiece = { take(session, task, $0, $1) } }
            if let take = closures.downloadTaskDidFinishDownloadingToURL { listeners.takeFile = { take(session, task, $0) } }
            if let notify = closures.downloadTaskDidWriteData { listeners.written = { notify(session, task, $0, $1, $2) } }
            if let notify = closures.downloadTaskDidResumeAtOffset { listeners.resumed = { notify(session, task, $0, $1) } }
            if let notify = closures.dataTaskDidBecomeDownloadTask { listeners.becameDownload = { notify(session, task, task) } }
            return listeners
        }
    }
}

extension SessionClosures {
    /// Whether any of them concerns the body of a response.
    fileprivate var concernBodies: Bool {
        dataTaskDidReceiveData != nil || dataTaskTakesData != nil || downloadTaskDidFinishDownloadingToURL != nil
            || downloadTaskDidWriteData != nil || downloadTaskDidResumeAtOffset != nil || dataTaskDidBecomeDownloadTask != nil
    }
}

// MARK: - Bodies in files

extension RequestDriver: FileRangeObserver {
    func transfer(_ id: Int, didReceive range: FileRange) -> (count: Int64, action: ReceiveAction)? {
        guard state.withLock({ $0.number == id && $0.attempt.discarded == nil }) else { return nil }
        do {
            guard let count = try body.receive(range) else { return nil }
            if recordsExchanges { state.withLock { $0.noteBodyReceived(count) } }
            return (count, .proceed)
        } catch {
            fail(error)
            return (0, .cancel)
        }
    }
}
