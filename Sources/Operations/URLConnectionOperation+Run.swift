// SPDX-License-Identifier: Apache-2.0
import Dispatch

// MARK: - States

extension URLConnectionOperation {
    /// Takes an event, has done what it asks for, and tells who observes the state.
    ///
    /// What has to be done goes to the queue in the order of the events, whatever threads they come from.
    func perform(_ event: (inout OperationLifecycle) -> OperationLifecycle.Action) {
        let (foreseen, tellsFirst) = foresee(event)
        for key in foreseen { willChangeValue(forKey: key) }
        storage.withLock { storage in
            let old = storage.lifecycle.state
            carryOut(event(&storage.lifecycle))
            let new = storage.lifecycle.state
            guard old != new else { return }
            Self.tellObservers(of: new, storage: &storage)
            for key in [old.key, new.key] where !foreseen.contains(key) && !storage.untold.contains(key) { storage.untold.append(key) }
        }
        for key in foreseen { didChangeValue(forKey: key) }
        tellUntold(isTelling: tellsFirst)
    }

    /// What will come of an event, for observers who have to be told beforehand; no lock may be held while they are.
    ///
    /// One thread tells at a time, what has come of all: a queue that was told of an older state behind a newer one would wait for an
    /// operation that is ready. So where another thread tells, nothing is foreseen.
    private func foresee(_ event: (inout OperationLifecycle) -> OperationLifecycle.Action) -> (keys: [String], tells: Bool) {
        storage.withLock { storage in
            guard !storage.isTelling else { return ([], false) }
            storage.isTelling = true
            var preview = storage.lifecycle
            _ = event(&preview)
            return (storage.lifecycle.state == preview.state ? [] : [storage.lifecycle.state.key, preview.state.key], true)
        }
    }

    /// Tells what others have left to be told, until there is nothing; if another thread is about it, that does.
    private func tellUntold(isTelling: Bool) {
        var isTelling = isTelling
        while true {
            let keys = storage.withLock { storage in
                guard isTelling || !storage.isTelling else { return [String]() }
                defer { storage.untold = [] }
                storage.isTelling = !storage.untold.isEmpty
                return storage.untold
            }
            guard !keys.isEmpty else { return }
            isTelling = true
            for key in keys {
                willChangeValue(forKey: key)
                didChangeValue(forKey: key)
            }
        }
    }

    private static func tellObservers(of state: OperationState, storage: inout Storage) {
        for stream in storage.stateStreams { stream.yield(state) }
        if state == .finished {
            for stream in storage.stateStreams { stream.finish() }
            storage.stateStreams = []
        }
        guard let closure = storage.onStateChange else { return }
        storage.settings.session.configuration.callbackQueue.async { closure(state) }
    }

    private func carryOut(_ action: OperationLifecycle.Action) {
        switch action {
        case .none: break
        case .begin: queue.async { self.begin() }
        case .stop: queue.async { self.stop() }
        case .endCancelled: queue.async { self.endCancelled() }
        }
    }

    /// Waits until what has been asked for is done, on whichever thread.
    func settle() {
        onQueue {}
    }

    /// Does something on the operation's queue, behind what has been asked for, and waits for it.
    func onQueue<Value>(_ body: () -> Value) -> Value {
        DispatchQueue.getSpecific(key: Self.queueKey) == ObjectIdentifier(self) ? body() : queue.sync(execute: body)
    }
}

extension OperationState {
    /// The property that says whether an operation is in this state.
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
    private var isExecutingNow: Bool { storage.withLock { $0.lifecycle.state == .executing && !$0.lifecycle.isEnding } }

    private func isCurrent(_ attempt: ConnectionAttempt) -> Bool {
        storage.withLock { $0.attempt === attempt && $0.lifecycle.state == .executing && !$0.lifecycle.isEnding }
    }

    private func begin() {
        guard isExecutingNow, storage.withLock({ $0.attempt == nil }) else { return }
        let storageIsUsed = connectionShouldUseCredentialStorage()
        let limit = settings.session.configuration.maximumBodySize
        storage.withLock { storage in
            storage.usesCredentialStorage = storageIsUsed
            if let memory = storage.sink as? MemorySink { storage.sink = MemorySink(memory.data, limit: limit) }
        }
        storage.withLock { $0.isAnnounced = true }
        post(Self.didStartNotification)
        connect()
    }

    /// Sends the request: for the rest of the body where there is a part of it, unless the whole is asked for.
    private func connect(asksForWhole: Bool = false) {
        do {
            guard let proposed = connection(willSend: try nextRequest(), redirectResponse: nil) else { throw CurlewError.cancelled }
            try checkPolicy(for: proposed)
            let sink = sink
            try sink.open()
            let (known, settings) = storage.withLock { storage in
                // A file may have become shorter since it was closed.
                storage.totalBytesRead = sink.count
                return (storage.resumption, storage.settings)
            }
            let isResumed = resumesWithRange && sink.count > 0 && !asksForWhole && proposed.allowsRange
            let resumption = isResumed ? known : nil
            let attempt = ConnectionAttempt(self, resumption: resumption, offset: sink.count)
            storage.withLock { $0.attempt = attempt }
            let judge: ConnectionPool.Judge? = judgesServerTrust ? { @Sendable [weak attempt] in attempt?.judge($0, $1) ?? false } : nil
            let pool = settings.session.pool(for: settings.securityPolicy, judge: judge)
            attempt.begin(proposed.adding(resumption?.headers(offset: sink.count)), in: pool)
        } catch {
            fail(error)
        }
    }

    /// The request with a body that can be sent.
    private func nextRequest() throws -> URLRequest {
        var (request, isUsed) = storage.withLock { storage in
            defer { storage.isStreamUsed = storage.request.httpBodyStream != nil }
            return (storage.request, storage.isStreamUsed)
        }
        guard isUsed else { return request }
        guard let stream = connectionNeedNewBodyStream(for: request) else { throw URLError(.requestBodyStreamExhausted) }
        request.httpBodyStream = stream
        return request
    }

    /// Nothing can be compared with pins where there is no TLS: that must not pass for a comparison.
    private func checkPolicy(for request: URLRequest) throws {
        guard settings.securityPolicy.pinningMode != .none, let url = request.url, url.scheme?.lowercased() != "https" else { return }
        throw OperationError.pinningRequiresTLS(url: url)
    }

    /// Gives up the connection because of a pause.
    private func stop() {
        guard let attempt = storage.withLock({ $0.attempt }) else { return }
        giveUp(attempt)
        if !(sink is StreamSink) { sink.close() }
        announceEnd()
    }

    private func giveUp(_ attempt: ConnectionAttempt) {
        storage.withLock { $0.attempt = nil }
        attempt.end()
    }

    // MARK: Response

    /// Takes the head of a response; `false` where its body is not wanted.
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
            // The whole that the parts make is a 200 with the fields of the first one (RFC 9110, section 15.3.7.3).
            if !attempt.isAppending || storage.response == nil { storage.response = response }
            if let known { storage.resumption = known }
        }
        connection(didReceive: response)
        return isCurrent(attempt)
    }

    /// Finds out where the body of a response goes; `false` where nothing of it is wanted.
    private func prepare(for head: ResponseHead, of attempt: ConnectionAttempt) throws -> Bool {
        attempt.expectedLength = head.value(for: "Content-Encoding") == nil ? head.expectedBodyLength ?? -1 : -1
        guard let resumption = attempt.resumption else {
            try takeWhole(head, of: attempt)
            return true
        }
        switch answer(head, to: resumption, of: attempt) {
        case .append(let total):
            attempt.expectedLength = total
            attempt.isAppending = true
        case .startOver, .setAside: try takeWhole(head, of: attempt)
        case .complete:
            giveUp(attempt)
            succeed()
            return false
        case .askForWhole:
            giveUp(attempt)
            storage.withLock { $0.resumption = nil }
            connect(asksForWhole: true)
            return false
        }
        return true
    }

    /// Judges the answer to a request for the rest. Where a date was sent for want of a strong entity tag, a weak one that has changed says
    /// that the rest is that of another version.
    private func answer(_ head: ResponseHead, to resumption: RangeResumption, of attempt: ConnectionAttempt) -> RangeResumption.Answer {
        let answer = resumption.answer(head, offset: attempt.offset)
        guard case .append = answer, let tag = head.value(for: "ETag")?.opaqueTag,
            let known = response?.value(forHTTPHeaderField: "ETag")?.opaqueTag
        else { return answer }
        return tag == known ? answer : .askForWhole
    }

    /// What was there before gives way to the body; but not to that of an error, which is kept apart.
    private func takeWhole(_ head: ResponseHead, of attempt: ConnectionAttempt) throws {
        let sink = sink
        let isError = !(200..<300).contains(head.statusCode)
        if isError, sink is FileSink || sink.count > 0 {
            attempt.aside = MemorySink(limit: settings.session.configuration.maximumBodySize)
            return
        }
        // What is there is of a version that counts no more.
        defer { storage.withLock { $0.resumption = nil } }
        guard sink is FileSink || sink.count > 0 else { return }
        if !sink.canRestart, let version = storage.withLock({ $0.resumption })?.validator, version.hasPrefix("\""),
            version == head.value(for: "ETag")
        {
            // The same, byte by byte (RFC 9110, section 8.8.1): what is there need not be taken back.
            attempt.bytesToSkip = sink.count
        } else {
            try sink.restart()
            storage.withLock { $0.totalBytesRead = 0 }
        }
    }

    // MARK: Body

    /// Takes a piece of the body; returns when there is room for the next.
    func take(_ piece: Data, of attempt: ConnectionAttempt) async throws {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { self.write(piece, of: attempt) { continuation.resume(with: $0) } }
        }
    }

    private func write(_ piece: Data, of attempt: ConnectionAttempt, done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        guard isCurrent(attempt) else { return done(.failure(CurlewError.cancelled)) }
        let skipped = min(attempt.bytesToSkip, Int64(piece.count))
        attempt.bytesToSkip -= skipped
        let news = piece.dropFirst(Int(skipped))
        writeRest(news, of: attempt) { result in
            if case .success = result, !news.isEmpty { self.connection(didReceive: news) }
            done(result)
        }
    }

    private func writeRest(_ rest: Data, of attempt: ConnectionAttempt, done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        var rest = rest
        do {
            while !rest.isEmpty {
                guard isCurrent(attempt) else { return done(.failure(CurlewError.cancelled)) }
                let sink: any BodySink = attempt.aside ?? sink
                let count = try sink.write(rest)
                if attempt.aside == nil { storage.withLock { $0.totalBytesRead = sink.count } }
                rest = rest.dropFirst(count)
                guard count == 0 else { continue }
                // The stream has no space, and nobody to tell when it has again.
                return queue.asyncAfter(deadline: .now() + .milliseconds(5)) { [rest] in self.writeRest(rest, of: attempt, done: done) }
            }
            done(.success(()))
        } catch {
            fail(error)
            done(.failure(error))
        }
    }

    // MARK: End

    /// The connection of an attempt is over.
    func ended(_ attempt: ConnectionAttempt, with error: (any Error)?) {
        queue.async { [self] in
            guard isCurrent(attempt) else { return }
            let isRefused = storage.withLock { $0.refusesChallenge }
            if isRefused {
                fail(URLError.operationError(.userCancelledAuthentication, request))
            } else if let error {
                fail(error)
            } else {
                succeed()
            }
        }
    }

    func refusedChallenge(of attempt: ConnectionAttempt) {
        storage.withLock { if $0.attempt === attempt { $0.refusesChallenge = true } }
    }

    var usesCredentialStorage: Bool { storage.withLock { $0.usesCredentialStorage } }

    private func succeed() {
        guard storage.withLock({ $0.lifecycle.beginEnding() }) else { return }
        conclude(with: nil)
    }

    private func fail(_ error: any Error) {
        guard storage.withLock({ $0.lifecycle.beginEnding() }) else { return }
        conclude(with: error.asOperationError(of: request))
    }

    private func endCancelled() {
        conclude(with: URLError.operationError(.cancelled, request))
    }

    /// Brings the operation to its end: the only way there.
    private func conclude(with error: (any Error)?) {
        let attempt = storage.withLock { storage in
            storage.error = error
            storage.responseData = (storage.attempt?.aside ?? storage.sink as? MemorySink)?.data
            return storage.attempt
        }
        if let attempt { giveUp(attempt) }
        processResponse()
        placeBody(isWhole: attempt?.aside == nil)
        if let failure = storage.withLock({ $0.error }) { connection(didFailWithError: failure) } else { connectionDidFinishLoading() }
        if settings.completesBeforeDependents { complete { self.queue.async { self.finish() } } } else { finish { self.complete {} } }
        announceEnd()
    }

    /// Gives a body that is whole and accepted its place, and removes another one.
    private func placeBody(isWhole: Bool) {
        let sink = sink
        guard isWhole, error == nil else { return sink.discard() }
        do {
            try sink.commit()
        } catch {
            sink.discard()
            storage.withLock { $0.error = error }
        }
    }

    /// Tells those who were told of the beginning.
    private func announceEnd() {
        let wasAnnounced = storage.withLock { storage in
            defer { storage.isAnnounced = false }
            return storage.isAnnounced
        }
        if wasAnnounced { post(Self.didFinishNotification) }
    }

    /// Lets go of the completion closure after it has run; `done` is called then.
    private func complete(_ done: @escaping @Sendable () -> Void) {
        let (completion, settings) = storage.withLock { storage in
            defer { storage.completion = nil }
            return (storage.completion, storage.settings)
        }
        guard let completion else { return done() }
        let callbacks = settings.completionQueue ?? settings.session.configuration.callbackQueue
        callbacks.async(group: settings.completionGroup) {
            // With the operation, which the closure may want though nobody else has it any more.
            withExtendedLifetime(self) { completion() }
            done()
        }
    }

    /// - Parameter handOver: what has to be on its way before those that depend on the operation are let go.
    private func finish(handOver: () -> Void = {}) {
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
        handOver()
        storage.withLock { Self.tellObservers(of: .finished, storage: &$0) }
        for key in keys { didChangeValue(forKey: key) }
        activity?.end()
        for waiter in waiters { waiter() }
    }

    /// Calls a progress closure.
    func tell(_ progress: ProgressBlock?, _ bytes: Int64, _ total: Int64, _ expected: Int64) {
        if let progress { settings.session.configuration.callbackQueue.async { progress(bytes, total, expected) } }
    }
}

extension URLRequest {
    /// Whether ranges of it can be asked for: by GET, without a body, where the user asks for none.
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
    /// The head without its entity tag, so that the date of the last change is the validator if it is a strong one (RFC 9110, section
    /// 8.8.2.2).
    ///
    /// For a tag that `If-Range` can't hold, as it is weak. Section 13.1.5 has the date sent only where there is no tag at all; servers
    /// whose tags are all weak could not be resumed from then, and a weak tag that has changed is noticed in the answer.
    fileprivate var withoutTag: ResponseHead {
        ResponseHead(statusCode: statusCode, headers: HTTPHeaders(headers.filter { !$0.isNamed("ETag") }))
    }
}

extension String {
    /// An entity tag as it is compared weakly (RFC 9110, section 8.8.3.2).
    fileprivate var opaqueTag: Substring { hasPrefix("W/") ? dropFirst(2) : self[...] }
}
