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
    private struct Outcome {
        var head: ResponseHead?
        var received: Int64
        var sent: Int64
    }

    /// What changes while the task runs.
    private struct TaskProgress {
        var state = State.suspended
        var isStarted = false
        /// Whether the stream was handed to the transport, which takes its bytes from then on.
        var isOpened = false
        /// Whether the task was handed to the transport.
        var isHandedOver = false
        /// The current follow-up; `nil` while the task runs the original.
        var current: Work?
        var redirectCount = 0
        /// Released when the task completes; until then task and driver retain each other, so that a running request needs no other owner.
        var driver: RequestDriver?
        var outcome: Outcome?
        /// The bytes sent on a stream before it was started.
        var unsent: [(bytes: Data, endOfStream: Bool)] = []
    }

    /// The number that identifies the task in its session.
    ///
    /// The transport knows the transfer by this number and not by an object, so that no reference cycle runs through libcurl, and a late
    /// event of an earlier attempt finds no request. A follow-up keeps the number, a retry has a new one.
    public let taskIdentifier: Int
    private let original: Work
    private let transport: any Transport
    private let progress: Lock<TaskProgress>

    init(id: Int, work: Work, transport: any Transport, driver: RequestDriver) {
        taskIdentifier = id
        original = work
        self.transport = transport
        progress = Lock(TaskProgress(driver: driver))
    }

    /// The current state.
    public var state: State { progress.withLock { $0.state } }

    /// The adapted request with which the task began; `nil` for a raw stream.
    public var originalRequest: URLRequest? { original.urlRequest }

    /// The request of the current exchange: after a redirect, the one that followed. `nil` for a raw stream.
    public var currentRequest: URLRequest? { current.urlRequest }

    /// The number of redirects followed.
    public var redirectCount: Int { progress.withLock { $0.redirectCount } }

    /// The response's status and header fields; `nil` until they are received.
    public var response: HTTPURLResponse? {
        head.flatMap { ResponseContext(transfer: currentTransfer, head: $0).response }
    }

    /// The number of received bytes of the response's body: decoded while the task runs, as sent on the wire once it has completed.
    public var countOfBytesReceived: Int64 {
        let (outcome, driver) = progress.withLock { ($0.outcome, $0.driver) }
        return outcome?.received ?? driver?.body.receivedCount ?? 0
    }

    /// The length of the response's body in bytes, as its head announces it; −1 (`NSURLSessionTransferSizeUnknown`) if it is unknown. 0 for
    /// `HEAD`, whose response has no body even if it announces a length (RFC 9110, section 9.3.2).
    public var countOfBytesExpectedToReceive: Int64 {
        let length = head?.expectedBodyLength ?? -1
        return length > 0 && isHead ? 0 : length
    }

    /// The number of bytes of the request's body that were handed to the network.
    public var countOfBytesSent: Int64 {
        let (outcome, driver) = progress.withLock { ($0.outcome, $0.driver) }
        return outcome?.sent ?? driver?.sentBody?.count ?? 0
    }

    /// The length of the request's body in bytes; −1 (`NSURLSessionTransferSizeUnknown`) if it is unknown.
    public var countOfBytesExpectedToSend: Int64 {
        guard let body = currentTransfer?.body else { return 0 }
        return body.length ?? -1
    }

    private var head: ResponseHead? {
        let (outcome, driver) = progress.withLock { ($0.outcome, $0.driver) }
        // After unlocking, because elsewhere the driver's lock is taken before this one.
        return outcome.map(\.head) ?? driver?.state.withLock { $0.head }
    }

    var originalTransfer: TransferRequest? {
        if case .transfer(let request) = original { request } else { nil }
    }

    private var current: Work { progress.withLock { $0.current } ?? original }

    var currentTransfer: TransferRequest? {
        if case .transfer(let request) = current { request } else { nil }
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
        progress.withLock { progress in
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
    public func resume() {
        let (driver, isFirst) = progress.withLock { progress -> (RequestDriver?, Bool) in
            guard progress.state == .suspended else { return (nil, false) }
            progress.state = .running
            defer { progress.isStarted = true }
            return (progress.driver, !progress.isStarted)
        }
        guard let driver else { return }
        guard isFirst else { return tellSuspension(false) }
        guard driver.session.readsFiles else { return start(original, for: driver) }
        driver.session.queue.async { self.start(self.original, for: driver) }
    }

    /// Suspends the task, which then neither sends nor receives. Does nothing unless it is running. Any thread.
    public func suspend() {
        let mustTell = progress.withLock { progress in
            guard progress.state == .running else { return false }
            progress.state = .suspended
            return progress.isStarted
        }
        if mustTell { tellSuspension(true) }
    }

    /// Cancels the task; its request fails with ``CurlewError/cancelled``. Does nothing for a completed task. Any thread.
    public func cancel() {
        let (isFresh, isStarted) = progress.withLock { progress -> (Bool, Bool) in
            guard progress.state == .running || progress.state == .suspended else { return (false, false) }
            progress.state = .canceling
            return (true, progress.isStarted)
        }
        guard isFresh else { return }
        guard isStarted else { return completeUnstarted(with: CurlewError.cancelled) }
        transport.cancel(taskIdentifier)
        // The transfer may have completed, with the completion waiting for a decision: it need not wait any longer.
        progress.withLock { $0.driver }?.abandonDecision()
    }

    private func start(_ work: Work, for driver: RequestDriver, as followUp: FollowUp.Kind? = nil) {
        switch work {
        case .transfer(let request):
            if let body = request.body as? UnreadableBody { return completeUnstarted(with: body.error) }
            let request = driver.session.hsts.map { upgraded(request, by: $0) } ?? request
            guard handOver() else { return completeCancelled(for: driver) }
            transport.start(driver.outgoing(request, as: followUp), id: taskIdentifier, observer: driver)
        case .stream(let request): openStream(request, for: driver)
        }
        // The transport ignores calls for a transfer that it does not know yet: one made by another thread in the meantime is repeated.
        switch state {
        case .canceling: transport.cancel(taskIdentifier)
        case .suspended: tellSuspension(true)
        case .running, .completed: break
        }
    }

    /// Returns the request with TLS if its host is known to want that, and notes it as the current one: what follows from the response
    /// depends on it.
    private func upgraded(_ request: TransferRequest, by hsts: HSTSStore) -> TransferRequest {
        hsts.refresh()
        guard let url = hsts.upgraded(request.url) else { return request }
        var upgraded = request
        upgraded.url = url
        upgraded.isUpgraded = true
        progress.withLock { $0.current = .transfer(upgraded) }
        return upgraded
    }

    /// Completes a task that was not handed to the transport.
    func completeUnstarted(with error: any Error) {
        let driver = progress.withLock { $0.driver }
        driver?.transfer(taskIdentifier, didComplete: TransferCompletion(error: error, metrics: TransferMetrics()))
    }

    /// Notes that the transport is about to know the task; `false` if the task was cancelled while it waited for the session's queue or a file,
    /// so that nothing is to be sent.
    private func handOver() -> Bool {
        progress.withLock { progress in
            guard progress.state != .canceling else { return false }
            progress.isHandedOver = true
            return true
        }
    }

    /// Completes a task that was cancelled before it was handed to the transport.
    private func completeCancelled(for driver: RequestDriver) {
        completeUnstarted(with: driver.session.isInvalidated ? driver.session.endError : CurlewError.cancelled)
    }

    private func openStream(_ request: StreamTransferRequest, for driver: RequestDriver) {
        guard handOver() else { return completeCancelled(for: driver) }
        transport.openStream(driver.session.outgoing(request), id: taskIdentifier, observer: driver)
        // Inside the lock, so that bytes written concurrently follow these.
        progress.withLock { progress in
            for piece in progress.unsent { transport.send(piece.bytes, endOfStream: piece.endOfStream, on: taskIdentifier) }
            progress.unsent = []
            progress.isOpened = true
        }
    }

    /// Tells the transport, again if the state was changed concurrently, so that its last call has the current state.
    private func tellSuspension(_ suspended: Bool) {
        transport.setSuspended(suspended, of: taskIdentifier)
        let now = state
        if now == (suspended ? .running : .suspended) { tellSuspension(!suspended) }
    }

    // MARK: For the driver

    /// Cancels a task that was not handed to the transport, to be completed by the caller; `false` if it was started or cancelled.
    func claimUnstarted() -> Bool {
        progress.withLock { progress in
            guard progress.state == .suspended, !progress.isStarted else { return false }
            progress.state = .canceling
            return true
        }
    }

    /// Cancels the task because its session is invalidated; returns `true` if the caller has to complete it, as the transport does not know
    /// it.
    func invalidate() -> Bool {
        progress.withLock { progress in
            guard progress.state == .running || progress.state == .suspended else { return false }
            progress.state = .canceling
            return !progress.isStarted
        }
    }

    /// Resumes the transfer after it was paused by its observer.
    func resumeReceiving() {
        transport.resumeReceiving(taskIdentifier)
    }

    /// Sends bytes on a stream, or buffers them until it is started.
    func send(_ bytes: Data, endOfStream: Bool) {
        progress.withLock { progress in
            if progress.isOpened {
                transport.send(bytes, endOfStream: endOfStream, on: taskIdentifier)
            } else {
                progress.unsent.append((bytes, endOfStream))
            }
        }
    }

    /// Cancels the current transfer, not the task: a follow-up may be sent after it.
    func endTransfer() {
        transport.cancel(taskIdentifier)
    }

    /// Sets the follow-up to be started next; returns `false` if the task was cancelled in the meantime.
    func take(_ followUp: FollowUp) -> Bool {
        progress.withLock { progress in
            guard progress.state == .running || progress.state == .suspended else { return false }
            progress.current = .transfer(followUp.request)
            if followUp.kind == .redirect { progress.redirectCount += 1 }
            return true
        }
    }

    /// Starts the follow-up: on the session's queue if preparing it may block, otherwise on the caller's thread.
    func start(_ followUp: FollowUp) {
        guard let driver = progress.withLock({ $0.driver }) else { return }
        guard driver.session.mustPrepareOffTransport || driver.session.readsFiles else {
            return start(.transfer(followUp.request), for: driver, as: followUp.kind)
        }
        driver.session.queue.async { self.start(.transfer(followUp.request), for: driver, as: followUp.kind) }
    }

    /// Completes the task; returns `false` if it was never handed to the transport.
    func completed(_ head: ResponseHead?, _ metrics: TransferMetrics) -> Bool {
        let (driver, isHandedOver) = progress.withLock { progress in
            progress.state = .completed
            progress.outcome = Outcome(head: head, received: metrics.responseBodyBytes, sent: metrics.requestBodyBytes)
            defer { progress.driver = nil }
            return (progress.driver, progress.isHandedOver)
        }
        // Retained beyond the lock, as its release may release objects that take the lock.
        return withExtendedLifetime(driver) { isHandedOver }
    }
}

extension SessionTask.Work {
    fileprivate var urlRequest: URLRequest? {
        if case .transfer(let request) = self { request.urlRequest } else { nil }
    }
}
