// SPDX-License-Identifier: Apache-2.0
import Dispatch

// MARK: - States

extension URLConnectionOperation {
    /// Applies an event, schedules the action that it leads to, and notifies the observers of the state.
    ///
    /// Actions go to the operation's queue in the order of the events, whichever threads these come from.
    func perform(_ event: (inout OperationLifecycle) -> OperationLifecycle.Action) {
        let (predicted, notifies) = predictKeys(of: event)
        for key in predicted { willChangeValue(forKey: key) }
        storage.withLock { storage in
            let old = storage.lifecycle.state
            schedule(event(&storage.lifecycle))
            let new = storage.lifecycle.state
            guard old != new else { return }
            Self.notifyObservers(of: new, storage: &storage)
            for key in [old.key, new.key] where !predicted.contains(key) && !storage.pendingKeys.contains(key) {
                storage.pendingKeys.append(key)
            }
        }
        for key in predicted { didChangeValue(forKey: key) }
        notifyPending(isNotifying: notifies)
    }

    /// The keys that an event will change, for observers that have to be notified beforehand; no lock may be held during notifications.
    ///
    /// One thread notifies at a time, on behalf of all: an operation queue that received an older state after a newer one would miss that
    /// an operation is ready. So nothing is predicted while another thread notifies.
    private func predictKeys(of event: (inout OperationLifecycle) -> OperationLifecycle.Action) -> (keys: [String], notifies: Bool) {
        storage.withLock { storage in
            guard !storage.isNotifying else { return ([], false) }
            storage.isNotifying = true
            var preview = storage.lifecycle
            _ = event(&preview)
            return (storage.lifecycle.state == preview.state ? [] : [storage.lifecycle.state.key, preview.state.key], true)
        }
    }

    /// Notifies observers of the pending keys until there are none; does nothing if another thread is doing so.
    private func notifyPending(isNotifying: Bool) {
        var isNotifying = isNotifying
        while true {
            let keys = storage.withLock { storage in
                guard isNotifying || !storage.isNotifying else { return [String]() }
                defer { storage.pendingKeys = [] }
                storage.isNotifying = !storage.pendingKeys.isEmpty
                return storage.pendingKeys
            }
            guard !keys.isEmpty else { return }
            isNotifying = true
            for key in keys {
                willChangeValue(forKey: key)
                didChangeValue(forKey: key)
            }
        }
    }

    private static func notifyObservers(of state: OperationState, storage: inout Storage) {
        for stream in storage.stateStreams { stream.yield(state) }
        if state == .finished {
            for stream in storage.stateStreams { stream.finish() }
            storage.stateStreams = []
        }
        guard let closure = storage.onStateChange else { return }
        storage.settings.session.configuration.callbackQueue.async { closure(state) }
    }

    private func schedule(_ action: OperationLifecycle.Action) {
        switch action {
        case .none: break
        case .begin: queue.async { self.begin() }
        case .stop: queue.async { self.stop() }
        case .finishCancelled: queue.async { self.finishCancelled() }
        }
    }

    /// Waits until the actions scheduled so far have been performed; may be called on any thread.
    func waitForActions() {
        onQueue {}
    }

    /// Runs `body` on the operation's queue, after the actions scheduled so far, and waits for it.
    func onQueue<Value>(_ body: () -> Value) -> Value {
        DispatchQueue.getSpecific(key: Self.queueKey) == ObjectIdentifier(self) ? body() : queue.sync(execute: body)
    }
}

extension OperationState {
    /// The key of the property that is `true` in this state.
    fileprivate var key: String {
        switch self {
        case .paused: "isPaused"
        case .ready: "isReady"
        case .executing: "isExecuting"
        case .finished: "isFinished"
        }
    }
}

// MARK: - The connection, on the operation's queue

extension URLConnectionOperation {
    private var sink: any BodySink { storage.withLock { $0.sink } }
    private var isExecutingNow: Bool { storage.withLock { $0.lifecycle.state == .executing && !$0.lifecycle.isFinishing } }

    private func isCurrent(_ attempt: ConnectionAttempt) -> Bool {
        storage.withLock { $0.attempt === attempt && $0.lifecycle.state == .executing && !$0.lifecycle.isFinishing }
    }

    private func begin() {
        guard isExecutingNow, storage.withLock({ $0.attempt == nil }) else { return }
        let usesCredentialStorage = connectionShouldUseCredentialStorage()
        let limit = settings.session.configuration.maximumBodySize
        storage.withLock { storage in
            storage.usesCredentialStorage = usesCredentialStorage
            if let memory = storage.sink as? MemorySink { storage.sink = MemorySink(memory.data, limit: limit) }
        }
        storage.withLock { $0.didPostStart = true }
        post(Self.didStartNotification)
        connect()
    }

    /// Sends the request, for the rest of the body if a part of it is there, unless the whole body is requested.
    private func connect(requestsWholeBody: Bool = false) {
        do {
            guard let proposed = connection(willSend: try sendableRequest(), redirectResponse: nil) else { throw CurlewError.cancelled }
            try checkPolicy(for: proposed)
            let sink = sink
            try sink.open()
            let (known, settings) = storage.withLock { storage in
                // The file may have been truncated since it was closed.
                storage.totalBytesRead = sink.count
                return (storage.resumption, storage.settings)
            }
            let isResumed = resumesWithRange && sink.count > 0 && !requestsWholeBody && proposed.allowsRange
            let resumption = isResumed ? known : nil
            let attempt = ConnectionAttempt(self, resumption: resumption, offset: sink.count)
            storage.withLock { $0.attempt = attempt }
            let evaluator: ConnectionPool.TrustEvaluator? =
                judgesServerTrust ? { @Sendable [weak attempt] in attempt?.evaluate($0, $1) ?? false } : nil
            let pool = settings.session.pool(for: settings.securityPolicy, evaluator: evaluator)
            attempt.begin(proposed.adding(resumption?.headers(offset: sink.count)), in: pool)
        } catch {
            fail(error)
        }
    }

    /// Returns the request with a body that has not been read yet.
    private func sendableRequest() throws -> URLRequest {
        var (request, isUsed) = storage.withLock { storage in
            defer { storage.isStreamUsed = storage.request.httpBodyStream != nil }
            return (storage.request, storage.isStreamUsed)
        }
        guard isUsed else { return request }
        guard let stream = connectionNeedNewBodyStream(for: request) else { throw URLError(.requestBodyStreamExhausted) }
        request.httpBodyStream = stream
        return request
    }

    /// Rejects pins for a URL without TLS: there are no certificates to compare, which must not pass for a successful comparison.
    private func checkPolicy(for request: URLRequest) throws {
        guard settings.securityPolicy.pinningMode != .none, let url = request.url, url.scheme?.lowercased() != "https" else { return }
        throw OperationError.pinningRequiresTLS(url: url)
    }

    /// Cancels the connection for a pause.
    private func stop() {
        guard let attempt = storage.withLock({ $0.attempt }) else { return }
        detach(attempt)
        if !(sink is StreamSink) { sink.close() }
        postFinish()
    }

    private func detach(_ attempt: ConnectionAttempt) {
        storage.withLock { $0.attempt = nil }
        attempt.cancel()
    }

    // MARK: Response

    /// Handles the head of a response; returns `false` if its body is not needed.
    func received(_ response: HTTPURLResponse, of attempt: ConnectionAttempt) -> Bool {
        guard isCurrent(attempt), let head = attempt.head else { return false }
        do {
            guard try prepare(for: head, of: attempt) else { return false }
        } catch {
            fail(error)
            return false
        }
        let known = RangeResumption(request, head) ?? RangeResumption(request, head.withoutTag)
        storage.withLock { storage in
            // The complete body counts as a 200 with the fields of the first response (RFC 9110, section 15.3.7.3).
            if !attempt.isAppending || storage.response == nil { storage.response = response }
            if let known { storage.resumption = known }
        }
        connection(didReceive: response)
        return isCurrent(attempt)
    }

    /// Decides where the body of a response goes; returns `false` if it is not needed.
    private func prepare(for head: ResponseHead, of attempt: ConnectionAttempt) throws -> Bool {
        attempt.expectedLength = head.value(for: "Content-Encoding") == nil ? head.expectedBodyLength ?? -1 : -1
        guard let resumption = attempt.resumption else {
            try acceptWholeBody(head, of: attempt)
            return true
        }
        switch resumptionAnswer(head, to: resumption, of: attempt) {
        case .append(let total):
            attempt.expectedLength = total
            attempt.isAppending = true
        case .startOver, .setAside: try acceptWholeBody(head, of: attempt)
        case .complete:
            detach(attempt)
            succeed()
            return false
        case .askForWhole:
            detach(attempt)
            storage.withLock { $0.resumption = nil }
            connect(requestsWholeBody: true)
            return false
        }
        return true
    }

    /// Classifies the response to a request for the rest. If a date was sent because there was no strong entity tag, a changed weak tag
    /// means that the rest belongs to another version.
    private func resumptionAnswer(
        _ head: ResponseHead, to resumption: RangeResumption, of attempt: ConnectionAttempt
    ) -> RangeResumption.Answer {
        let answer = resumption.answer(head, offset: attempt.offset)
        guard case .append = answer, let tag = head.value(for: "ETag")?.opaqueTag,
            let known = response?.value(forHTTPHeaderField: "ETag")?.opaqueTag
        else { return answer }
        return tag == known ? answer : .askForWhole
    }

    /// Accepts a whole body, which replaces the bytes received before. The body of an error response is kept apart instead.
    private func acceptWholeBody(_ head: ResponseHead, of attempt: ConnectionAttempt) throws {
        let sink = sink
        let isError = !(200..<300).contains(head.statusCode)
        if isError, sink is FileSink || sink.count > 0 {
            attempt.errorSink = MemorySink(limit: settings.session.configuration.maximumBodySize)
            return
        }
        // The bytes received before are of a version that is no longer current.
        defer { storage.withLock { $0.resumption = nil } }
        guard sink is FileSink || sink.count > 0 else { return }
        if !sink.canRestart, let version = storage.withLock({ $0.resumption })?.validator, version.hasPrefix("\""),
            version == head.value(for: "ETag")
        {
            // Identical byte for byte, as the strong tag is the same (RFC 9110, section 8.8.1), so the bytes received before remain valid.
            attempt.bytesToSkip = sink.count
        } else {
            try sink.restart()
            storage.withLock { $0.totalBytesRead = 0 }
        }
    }

    // MARK: Body

    /// Writes a piece of the body; returns when there is space for the next.
    func receive(_ piece: Data, of attempt: ConnectionAttempt) async throws {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { self.write(piece, of: attempt) { continuation.resume(with: $0) } }
        }
    }

    private func write(_ piece: Data, of attempt: ConnectionAttempt, done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        guard isCurrent(attempt) else { return done(.failure(CurlewError.cancelled)) }
        let skipped = min(attempt.bytesToSkip, Int64(piece.count))
        attempt.bytesToSkip -= skipped
        let remaining = piece.dropFirst(Int(skipped))
        writeRemaining(remaining, of: attempt) { result in
            if case .success = result, !remaining.isEmpty { self.connection(didReceive: remaining) }
            done(result)
        }
    }

    private func writeRemaining(_ data: Data, of attempt: ConnectionAttempt, done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        var remaining = data
        do {
            while !remaining.isEmpty {
                guard isCurrent(attempt) else { return done(.failure(CurlewError.cancelled)) }
                let sink: any BodySink = attempt.errorSink ?? sink
                let count = try sink.write(remaining)
                if attempt.errorSink == nil { storage.withLock { $0.totalBytesRead = sink.count } }
                remaining = remaining.dropFirst(count)
                guard count == 0 else { continue }
                // The stream has no space, and no way to report when it has, so it is polled.
                return queue.asyncAfter(deadline: .now() + .milliseconds(5)) { [remaining] in
                    self.writeRemaining(remaining, of: attempt, done: done)
                }
            }
            done(.success(()))
        } catch {
            fail(error)
            done(.failure(error))
        }
    }

    // MARK: Completion

    /// Handles the completion of an attempt's connection.
    func completed(_ attempt: ConnectionAttempt, with error: (any Error)?) {
        queue.async { [self] in
            guard isCurrent(attempt) else { return }
            let challengeWasCancelled = storage.withLock { $0.cancelledChallenge }
            if challengeWasCancelled {
                fail(URLError.operationError(.userCancelledAuthentication, request))
            } else if let error {
                fail(error)
            } else {
                succeed()
            }
        }
    }

    func cancelledChallenge(of attempt: ConnectionAttempt) {
        storage.withLock { if $0.attempt === attempt { $0.cancelledChallenge = true } }
    }

    var usesCredentialStorage: Bool { storage.withLock { $0.usesCredentialStorage } }

    private func succeed() {
        guard storage.withLock({ $0.lifecycle.beginFinishing() }) else { return }
        finish(with: nil)
    }

    private func fail(_ error: any Error) {
        guard storage.withLock({ $0.lifecycle.beginFinishing() }) else { return }
        finish(with: error.asOperationError(of: request))
    }

    private func finishCancelled() {
        finish(with: URLError.operationError(.cancelled, request))
    }

    /// Finishes the operation; the only way to do so.
    private func finish(with error: (any Error)?) {
        let attempt = storage.withLock { storage in
            storage.error = error
            storage.responseData = (storage.attempt?.errorSink ?? storage.sink as? MemorySink)?.data
            return storage.attempt
        }
        if let attempt { detach(attempt) }
        processResponse()
        commitOrDiscardBody(isComplete: attempt?.errorSink == nil)
        if let failure = storage.withLock({ $0.error }) { connection(didFailWithError: failure) } else { connectionDidFinishLoading() }
        if settings.completesBeforeDependents {
            runCompletion { self.queue.async { self.becomeFinished() } }
        } else {
            becomeFinished { self.runCompletion {} }
        }
        postFinish()
    }

    /// Commits the body of an accepted response, and discards another one.
    private func commitOrDiscardBody(isComplete: Bool) {
        let sink = sink
        guard isComplete, error == nil else { return sink.discard() }
        do {
            try sink.commit()
        } catch {
            sink.discard()
            storage.withLock { $0.error = error }
        }
    }

    /// Posts the finish notification if the start notification was posted.
    private func postFinish() {
        let wasPosted = storage.withLock { storage in
            defer { storage.didPostStart = false }
            return storage.didPostStart
        }
        if wasPosted { post(Self.didFinishNotification) }
    }

    /// Runs the completion closure and releases it, then calls `done`.
    private func runCompletion(_ done: @escaping @Sendable () -> Void) {
        let (completion, settings) = storage.withLock { storage in
            defer { storage.completion = nil }
            return (storage.completion, storage.settings)
        }
        guard let completion else { return done() }
        let callbacks = settings.completionQueue ?? settings.session.configuration.callbackQueue
        callbacks.async(group: settings.completionGroup) {
            // Retains the operation while its closure runs, as the closure may use it and there may be no other reference.
            withExtendedLifetime(self) { completion() }
            done()
        }
    }

    /// Enters the state `finished`.
    ///
    /// - Parameter enqueue: enqueues what has to be queued before operations that depend on this one can start.
    private func becomeFinished(enqueue: () -> Void = {}) {
        let keys = ["isExecuting", "isFinished"]
        for key in keys { willChangeValue(forKey: key) }
        let (waiters, activity) = storage.withLock { storage in
            storage.lifecycle.finish()
            defer {
                storage.waiters = []
                storage.activity = nil
            }
            return (storage.waiters, storage.activity)
        }
        enqueue()
        storage.withLock { Self.notifyObservers(of: .finished, storage: &$0) }
        for key in keys { didChangeValue(forKey: key) }
        activity?.end()
        for waiter in waiters { waiter() }
    }

    /// Calls a progress closure on the session's callback queue.
    func report(_ progress: ProgressBlock?, _ bytes: Int64, _ total: Int64, _ expected: Int64) {
        if let progress { settings.session.configuration.callbackQueue.async { progress(bytes, total, expected) } }
    }
}

extension URLRequest {
    /// Whether a range may be requested: for a GET without a body, if the user requests none.
    fileprivate var allowsRange: Bool {
        httpMethod ?? "GET" == "GET" && httpBody == nil && httpBodyStream == nil && value(forHTTPHeaderField: "Range") == nil
            && value(forHTTPHeaderField: "If-Range") == nil
    }

    fileprivate func adding(_ headers: HTTPHeaders?) -> URLRequest {
        guard let headers, url != nil else { return self }
        var request = self
        for header in headers { request.setValue(header.value, forHTTPHeaderField: header.name) }
        return request
    }
}

extension ResponseHead {
    /// The head without its entity tag, so that `Last-Modified` becomes the validator if it is a strong one (RFC 9110, section 8.8.2.2).
    ///
    /// Used for weak tags, which `If-Range` can't carry. Section 13.1.5 allows the date only if there is no tag at all; but then downloads
    /// from servers whose tags are all weak could not be resumed, and a changed weak tag is detected in the response.
    fileprivate var withoutTag: ResponseHead {
        ResponseHead(statusCode: statusCode, headers: HTTPHeaders(headers.filter { !$0.isNamed("ETag") }))
    }
}

extension String {
    /// The tag as compared weakly (RFC 9110, section 8.8.3.2).
    fileprivate var opaqueTag: Substring { hasPrefix("W/") ? dropFirst(2) : self[...] }
}
