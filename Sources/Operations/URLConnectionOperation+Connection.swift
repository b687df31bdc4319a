// SPDX-License-Identifier: Apache-2.0

// An operation's connection, on the operation's queue.

extension URLConnectionOperation {
    /// Starts the connection, unless the operation was paused or cancelled meanwhile.
    func begin() {
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

    /// Begins the operation's own deadline, with its first start. On the thread of the call.
    func beginDeadline() {
        let own = settings.requestOptions?.deadline
        storage.withLock { storage in
            guard !storage.hasBegunDeadline else { return }
            storage.hasBegunDeadline = true
            storage.deadline = [storage.deadline, Deadline.earliest(own)].compactMap { $0 }.min()
        }
    }

    /// Sends the request, for the rest of the body if a part of it is there, unless the whole body is requested.
    func connect(requestsWholeBody: Bool = false) {
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
            storage.withLock { ($0.attempt, $0.cancelledChallenge) = (attempt, false) }
            let evaluator: ConnectionPool.TrustEvaluator? =
                evaluatesServerTrust ? { @Sendable [weak attempt] in attempt?.evaluate($0, $1) ?? false } : nil
            let pool = settings.session.pool(for: settings.securityPolicy, evaluator: evaluator)
            let deadline = storage.withLock { $0.deadline }
            Deadline.with(deadline) {
                attempt.begin(
                    proposed.adding(resumption?.headers(offset: sink.count)), with: settings.requestOptions, in: pool)
            }
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
    func stop() {
        guard let attempt = storage.withLock({ $0.attempt }) else { return }
        detach(attempt)
        // An error that was being received is not the response of the bytes from which the operation resumes.
        if let replaced = attempt.replacedResponse { storage.withLock { $0.response = replaced } }
        if !(sink is StreamSink) { sink.close() }
        postFinish()
    }

    /// Cancels an attempt, whose events are ignored from now on.
    func detach(_ attempt: ConnectionAttempt) {
        storage.withLock { $0.attempt = nil }
        attempt.cancel()
    }

    /// Receives the body.
    var sink: any BodySink { storage.withLock { $0.sink } }

    private var isExecutingNow: Bool { storage.withLock { $0.lifecycle.state == .executing && !$0.lifecycle.isFinishing } }

    /// Whether an attempt's events count: those of an earlier one may still arrive after a pause.
    func isCurrent(_ attempt: ConnectionAttempt) -> Bool {
        storage.withLock { $0.attempt === attempt && $0.lifecycle.state == .executing && !$0.lifecycle.isFinishing }
    }

    var usesCredentialStorage: Bool { storage.withLock { $0.usesCredentialStorage } }
}

// MARK: - Notifications

extension URLConnectionOperation {
    /// Posted when an operation's connection starts, and again after a pause, on the session's callback queue; the object is the operation.
    public static let didStartNotification = Notification.Name("com.alamofire.networking.operation.start")
    /// Posted when an operation's connection ends, also by a pause, on the session's callback queue; the object is the operation.
    public static let didFinishNotification = Notification.Name("com.alamofire.networking.operation.finish")

    private func post(_ name: Notification.Name) {
        settings.session.configuration.callbackQueue.async { NotificationCenter.default.post(name: name, object: self) }
    }

    /// Posts the finish notification if the start notification was posted.
    func postFinish() {
        let wasPosted = storage.withLock { storage in
            defer { storage.didPostStart = false }
            return storage.didPostStart
        }
        if wasPosted { post(Self.didFinishNotification) }
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
        for header in headers { request.setField(header.name, header.value) }
        return request
    }
}
