// SPDX-License-Identifier: Apache-2.0
import CurlewCookies
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// One attempt of a request, the equivalent of Foundation's `URLSessionTask`.
///
/// A follow-up, such as a redirect, keeps the task; a retry creates a new one. Thread-safe.
public final class SessionTask: Sendable {
    /// The state of a task.
    public enum State: Int, Sendable {
        /// In flight, or queued for a connection.
        case running
        /// Not started yet, or suspended.
        case suspended
        /// Cancelled, and not completed yet.
        case canceling
        /// Completed, successfully or with an error.
        case completed
    }

    enum Work: Sendable {
        case transfer(TransferRequest)
        // Indirect, because it is large and passed on often.
        indirect case stream(StreamTransferRequest)
    }

    /// What a completed task retains of its last exchange.
    struct Outcome {
        var head: ResponseHead?
        var received: Int64
        var sent: Int64
        /// Whether its progress is that of sending.
        var isUpload: Bool
        /// Why it has failed, and how users see that.
        var error: (any Error)?
        var transform: (@Sendable (any Error) -> any Error)?
    }

    /// What changes while the task runs.
    struct TaskProgress {
        var state = State.suspended
        var isStarted = false
        /// Whether the task was handed to the transport.
        var isHandedOver = false
        /// That of the current exchange; `nil` before its start, and once the task has completed.
        var handle: (any TransferHandle)?
        /// Whether its start has returned, in which layers may decide by the time. Noted for a session's clock only.
        var isInTransport = false
        /// A stream's, which takes bytes before its start.
        var stream: (any StreamHandle)?
        /// The current follow-up; `nil` while the task runs the original.
        var current: Work?
        var redirectCount = 0
        /// Released when the task completes; until then task and driver retain each other, so that a running request needs no other owner.
        var driver: RequestDriver?
        var outcome: Outcome?
        var description: String?
    }

    /// The number that identifies the task in its session.
    ///
    /// A transfer's events have this number, so that a late event of an earlier attempt finds no request. A follow-up keeps the number, a
    /// retry has a new one.
    public let taskIdentifier: Int
    private let original: Work
    private let transport: any Transport
    /// The session's nonces; `nil` if it had none when the task was created.
    let digests: DigestMemory?
    let values: Lock<TaskProgress>

    init(id: Int, work: Work, transport: any Transport, driver: RequestDriver, digests: DigestMemory? = nil) {
        taskIdentifier = id
        self.digests = digests
        original = work
        self.transport = transport
        values = Lock(TaskProgress(driver: driver))
    }

    /// The current state.
    public var state: State { values.withLock { $0.state } }

    /// For a session's clock: whether the current exchange is the transport's alone.
    var isInTransport: Bool { values.withLock { $0.isInTransport } }

    /// The adapted request with which the task began; `nil` for a raw stream.
    public var originalRequest: URLRequest? { original.urlRequest }

    /// The request of the current exchange: after a redirect, the one that followed. `nil` for a raw stream.
    public var currentRequest: URLRequest? { current.urlRequest }

    /// The number of redirects followed.
    public var redirectCount: Int { values.withLock { $0.redirectCount } }

    /// The response's status and header fields; `nil` until they are received.
    public var response: HTTPURLResponse? {
        head.flatMap { ResponseContext(transfer: currentTransfer, head: $0).response }
    }

    /// The number of received bytes of the response's body: decoded while the task runs, as sent on the wire once it has completed.
    public var countOfBytesReceived: Int64 {
        let (outcome, driver) = values.withLock { ($0.outcome, $0.driver) }
        return outcome?.received ?? driver?.body.receivedCount ?? 0
    }

    /// The length of the response's body in bytes, as its head announces it; −1 (`NSURLSessionTransferSizeUnknown`) if it is unknown. 0 for
    /// `HEAD`, 204 and 304, whose responses have no body even if they announce a length (RFC 9110, section 6.4.1).
    public var countOfBytesExpectedToReceive: Int64 { head?.bodyLength(toHead: isHead) ?? -1 }

    /// The number of bytes of the request's body that were handed to the network.
    public var countOfBytesSent: Int64 {
        let (outcome, driver) = values.withLock { ($0.outcome, $0.driver) }
        return outcome?.sent ?? driver?.sentBody?.count ?? 0
    }

    /// The length of the request's body in bytes; −1 (`NSURLSessionTransferSizeUnknown`) if it is unknown.
    public var countOfBytesExpectedToSend: Int64 {
        guard let body = currentTransfer?.body else { return 0 }
        return body.length ?? -1
    }

    private var head: ResponseHead? {
        let (outcome, driver) = values.withLock { ($0.outcome, $0.driver) }
        // After unlocking, because elsewhere the driver's lock is taken before this one.
        return outcome.map(\.head) ?? driver?.state.withLock { $0.attempt.head }
    }

    var originalTransfer: TransferRequest? {
        if case .transfer(let request) = original { request } else { nil }
    }

    private var current: Work { values.withLock { $0.current } ?? original }

    var currentTransfer: TransferRequest? {
        if case .transfer(let request) = current { request } else { nil }
    }

    /// The name of the user whose credential has answered a challenge; `nil` if none has.
    var authenticatedUser: String? {
        values.withLock { $0.driver }?.state.withLock { $0.authentication }?.answer?.credential.user
    }

    /// Method and URL of the current exchange; without a method for a raw stream.
    var target: (method: HTTPMethod?, url: String) {
        switch current {
        case .transfer(let request): (request.method, request.url)
        case .stream(let request): (nil, request.url)
        }
    }

    /// Whether the current request's method is HEAD.
    var isHead: Bool {
        values.withLock { progress in
            // Without a copy of the request, which is large.
            if case .transfer(let request)? = progress.current { return request.method == .head }
            if case .transfer(let request) = original { return request.method == .head }
            return false
        }
    }

    /// The value of a header field of the current request.
    func currentHeader(_ name: String) -> String? {
        guard case .transfer(let request) = current else { return nil }
        return request.headers.isEmpty ? nil : request.headers[name]
    }

    // MARK: Control

    /// Starts or resumes the task. Does nothing for a running, cancelled or completed one. Any thread.
    public func resume() { resume(noting: {}) }

    /// Resumes the task, and has that noted inside of the lock, before its effect.
    func resume(noting note: () -> Void) {
        let (driver, isFirst) = values.withLock { progress -> (RequestDriver?, Bool) in
            note()
            guard progress.state == .suspended else { return (nil, false) }
            progress.state = .running
            // Inside of the lock, so that the transport gets the calls of several threads in their order.
            progress.handle?.setSuspended(false)
            defer { progress.isStarted = true }
            return (progress.driver, !progress.isStarted)
        }
        guard let driver, isFirst else { return }
        if let digests, case .transfer(let request) = original, driver.awaitsCredential(request, digests, { self.begin(driver) }) { return }
        begin(driver)
    }

    /// Starts the original.
    private func begin(_ driver: RequestDriver) {
        guard driver.preparesOnQueue(originalTransfer) else { return start(original, for: driver) }
        driver.session.queue.async { self.start(self.original, for: driver) }
    }

    /// Suspends the task, which then neither sends nor receives. Does nothing unless it is running. Any thread.
    public func suspend() { suspend(noting: {}) }

    /// Suspends the task, and has that noted inside of the lock.
    func suspend(noting note: () -> Void) {
        values.withLock { progress in
            note()
            guard progress.state == .running else { return }
            progress.state = .suspended
            progress.handle?.setSuspended(true)
        }
    }

    /// Cancels the task; its request fails with ``CurlewError/cancelled``. Does nothing for a completed task. Any thread.
    public func cancel() {
        let (isFresh, isStarted, handle) = values.withLock { progress -> (Bool, Bool, (any TransferHandle)?) in
            guard progress.state == .running || progress.state == .suspended else { return (false, false, nil) }
            progress.state = .canceling
            return (true, progress.isStarted, progress.handle)
        }
        guard isFresh else { return }
        guard isStarted else { return completeUnstarted(with: CurlewError.cancelled) }
        handle?.cancel()
        // The transfer may have completed, with the completion waiting for a decision: it need not wait any longer.
        values.withLock { $0.driver }?.abandonDecision()
    }

    private func start(_ work: Work, for driver: RequestDriver, as followUp: FollowUp.Kind? = nil) {
        switch work {
        case .transfer(let request):
            if let body = request.body as? UnreadableBody { return completeUnstarted(with: body.error) }
            let request = driver.session.hsts.map { upgraded(request, by: $0) } ?? request
            guard handOver() else { return completeCancelled(for: driver) }
            let outgoing = driver.outgoing(request, as: followUp, digests)
            start(transport.makeTransfer(outgoing, id: taskIdentifier, observer: driver), for: driver)
        case .stream:
            guard handOver(), let stream else { return completeCancelled(for: driver) }
            start(stream, for: driver)
        }
    }

    /// Starts an exchange, to which the task's calls go from now on.
    private func start(_ handle: any TransferHandle, for driver: RequestDriver) {
        let state = values.withLock { progress in
            progress.handle = handle
            progress.isInTransport = false
            // A call that another thread has made in between found no handle.
            if progress.state == .suspended { handle.setSuspended(true) }
            return progress.state
        }
        if state == .canceling { return completeCancelled(for: driver) }
        handle.start()
        if driver.session.configuration.clock != nil { values.withLock { $0.isInTransport = true } }
    }

    /// Returns the request with TLS if its host is known to want that, and notes it as the current one: what follows from the response
    /// depends on it.
    private func upgraded(_ request: TransferRequest, by hsts: HSTSStore) -> TransferRequest {
        hsts.refresh()
        guard let url = hsts.upgraded(request.url) else { return request }
        var upgraded = request
        upgraded.url = url
        upgraded.isUpgraded = true
        values.withLock { $0.current = .transfer(upgraded) }
        return upgraded
    }

    /// Completes a task that was not handed to the transport.
    func completeUnstarted(with error: any Error) {
        let driver = values.withLock { $0.driver }
        driver?.transfer(taskIdentifier, didComplete: TransferCompletion(error: error, metrics: TransferMetrics()))
    }

    /// Notes that the transport is about to know the task; `false` if the task was cancelled while it waited for the session's queue or a file,
    /// so that nothing is to be sent.
    private func handOver() -> Bool {
        values.withLock { progress in
            guard progress.state != .canceling else { return false }
            progress.isHandedOver = true
            return true
        }
    }

    /// Completes a task that was cancelled before it was handed to the transport.
    private func completeCancelled(for driver: RequestDriver) {
        completeUnstarted(with: driver.session.isInvalidated ? driver.session.endError : CurlewError.cancelled)
    }

    private var handle: (any TransferHandle)? { values.withLock { $0.handle } }

    /// `nil` once the task has completed.
    var driver: RequestDriver? { values.withLock { $0.driver } }

    // MARK: For the driver

    /// Cancels a task that was not handed to the transport, to be completed by the caller; `false` if it was started or cancelled.
    func claimUnstarted() -> Bool {
        values.withLock { progress in
            guard progress.state == .suspended, !progress.isStarted else { return false }
            progress.state = .canceling
            return true
        }
    }

    /// Cancels the task because its session is invalidated; returns `true` if the caller has to complete it, as the transport does not know
    /// it.
    func invalidate() -> Bool {
        values.withLock { progress in
            guard progress.state == .running || progress.state == .suspended else { return false }
            progress.state = .canceling
            return !progress.isStarted
        }
    }

    /// Resumes the transfer after it was paused by its observer.
    func resumeReceiving() {
        handle?.resumeReceiving()
    }

    /// Sends bytes on a stream, from its start on.
    func send(_ bytes: Data, endOfStream: Bool) {
        stream?.send(bytes, endOfStream: endOfStream)
    }

    /// The task's stream, made when it is first used; `nil` for a transfer, and once the task has completed.
    private var stream: (any StreamHandle)? {
        let (stream, driver) = values.withLock { ($0.stream, $0.driver) }
        guard stream == nil, let driver, case .stream(let request) = original else { return stream }
        let made = transport.makeStream(driver.outgoing(request), id: taskIdentifier, observer: driver)
        return values.withLock { progress in
            guard progress.driver != nil else { return nil }
            // Another thread may have made one.
            progress.stream = progress.stream ?? made
            return progress.stream
        }
    }

    /// Cancels the current transfer, not the task: a follow-up may be sent after it.
    func endTransfer() {
        handle?.cancel()
    }

    /// Sets the follow-up to be started next; returns `false` if the task was cancelled in the meantime.
    func take(_ followUp: FollowUp) -> Bool {
        values.withLock { progress in
            guard progress.state == .running || progress.state == .suspended else { return false }
            progress.current = .transfer(followUp.request)
            if followUp.kind == .redirect { progress.redirectCount += 1 }
            return true
        }
    }

    /// Starts the follow-up: on the session's queue if preparing it may block, otherwise on the caller's thread.
    func start(_ followUp: FollowUp, after outcome: TransferCompletion) {
        guard let driver = values.withLock({ $0.driver }) else { return }
        // A cache in memory answers in place: a chain of redirects that it has would use up the stack.
        let isInPlace = outcome.metrics.cacheOutcome == .hit || outcome.metrics.cacheOutcome == .stale
        guard isInPlace || driver.session.mustPrepareOffTransport || driver.preparesOnQueue(followUp.request) else {
            return start(.transfer(followUp.request), for: driver, as: followUp.kind)
        }
        driver.session.queue.async { self.start(.transfer(followUp.request), for: driver, as: followUp.kind) }
    }

    /// Completes the task, with an error if its transfer has failed; returns `false` if it was never handed to the transport.
    func completed(_ head: ResponseHead?, _ metrics: TransferMetrics, _ error: (any Error)?) -> Bool {
        let transform = error.flatMap { _ in values.withLock { $0.driver }?.session.errorTransform }
        let (driver, handles, isHandedOver) = values.withLock { progress in
            progress.state = .completed
            progress.outcome = Outcome(
                head: head, received: metrics.responseBodyBytes, sent: metrics.requestBodyBytes,
                isUpload: progress.driver?.sentBody != nil, error: error, transform: transform)
            defer {
                progress.driver = nil
                progress.handle = nil
                progress.stream = nil
            }
            return (progress.driver, (progress.handle, progress.stream), progress.isHandedOver)
        }
        // Retained beyond the lock, as their release may release objects that take the lock.
        return withExtendedLifetime((driver, handles)) { isHandedOver }
    }
}

extension SessionTask.Work {
    fileprivate var urlRequest: URLRequest? {
        if case .transfer(let request) = self { request.urlRequest } else { nil }
    }
}
