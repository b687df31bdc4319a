// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The handle on one attempt of a request: what `URLSessionTask` is to Foundation.
///
/// A retry makes a new task; a redirect does not.
public final class SessionTask: Sendable {
    /// What a task is doing.
    public enum State: Int, Sendable {
        /// On its way, or waiting for its turn.
        case running
        /// Not started yet, or stopped for a while.
        case suspended
        /// Cancelled, and about to complete.
        case canceling
        /// Over, with or without success.
        case completed
    }

    enum Work: Sendable {
        case transfer(TransferRequest)
        // Large, and goes from hand to hand.
        indirect case stream(StreamTransferRequest)
    }

    /// What is left of the last transfer when the task is over.
    private struct Remains {
        var head: ResponseHead?
        var received: Int64
        var sent: Int64
    }

    private struct Progress {
        var state = State.suspended
        var isStarted = false
        /// Whether the transport knows the stream.
        var isOpened = false
        /// Whether the transport was ever told of the task.
        var isHandedOver = false
        /// What is under way if it is no longer the original.
        var current: Work?
        var hops = 0
        /// Released when the task completes: until then the two retain each other.
        var driver: RequestDriver?
        var remains: Remains?
        /// What was sent on a stream before it was started.
        var unsent: [(bytes: Data, endOfStream: Bool)] = []
    }

    /// The number by which the session knows the task; unique in the session.
    public let taskIdentifier: Int
    private let original: Work
    private let transport: any Transport
    private let progress: Lock<Progress>

    init(id: Int, work: Work, transport: any Transport, driver: RequestDriver) {
        taskIdentifier = id
        original = work
        self.transport = transport
        progress = Lock(Progress(driver: driver))
    }

    /// What the task is doing.
    public var state: State { progress.withLock { $0.state } }

    /// The request with which the task began; `nil` for a raw stream.
    public var originalRequest: URLRequest? { original.urlRequest }

    /// The request that is being answered: after a redirect, the last one. `nil` for a raw stream.
    public var currentRequest: URLRequest? { current.urlRequest }

    /// The number of redirects followed.
    public var redirectCount: Int { progress.withLock { $0.hops } }

    /// The response's status and header fields; `nil` until they are there.
    public var response: HTTPURLResponse? {
        head.flatMap { ResponseContext(transfer: currentTransfer, head: $0).response }
    }

    /// How many bytes of the response's body have come: while the task runs after decoding, afterwards before it.
    public var countOfBytesReceived: Int64 {
        let (remains, driver) = progress.withLock { ($0.remains, $0.driver) }
        return remains?.received ?? driver?.body.receivedCount ?? 0
    }

    /// How many bytes the response's body will have, as its head announces; −1 (`NSURLSessionTransferSizeUnknown`) when that is not known. 0
    /// for `HEAD`, whatever is announced (RFC 9110, section 9.3.2).
    public var countOfBytesExpectedToReceive: Int64 {
        let length = head?.expectedBodyLength ?? -1
        return length > 0 && isHead ? 0 : length
    }

    /// How many bytes of the request's body were handed to the network.
    public var countOfBytesSent: Int64 {
        let (remains, driver) = progress.withLock { ($0.remains, $0.driver) }
        return remains?.sent ?? driver?.sentBody?.count ?? 0
    }

    /// How many bytes the request's body has; −1 (`NSURLSessionTransferSizeUnknown`) when that is not known.
    public var countOfBytesExpectedToSend: Int64 {
        guard let body = currentTransfer?.body else { return 0 }
        return body.length ?? -1
    }

    private var head: ResponseHead? {
        let (remains, driver) = progress.withLock { ($0.remains, $0.driver) }
        // Outside of the lock, which comes after the driver's.
        return remains.map(\.head) ?? driver?.state.withLock { $0.head }
    }

    var originalTransfer: TransferRequest? {
        if case .transfer(let request) = original { request } else { nil }
    }

    private var current: Work { progress.withLock { $0.current } ?? original }

    var currentTransfer: TransferRequest? {
        if case .transfer(let request) = current { request } else { nil }
    }

    /// Whether the current request's method is HEAD.
    var isHead: Bool {
        progress.withLock { progress in
            if case .transfer(let request) = progress.current ?? original { request.method == .head } else { false }
        }
    }

    /// The value of a header field of the current request.
    func currentHeader(_ name: String) -> String? {
        guard case .transfer(let request) = current else { return nil }
        return request.headers.isEmpty ? nil : request.headers[name]
    }

    // MARK: Control

    /// Starts the task, or lets it go on. Any thread; does nothing for a running or finished task.
    public func resume() {
        let (driver, isFirst) = progress.withLock { progress -> (RequestDriver?, Bool) in
            guard progress.state == .suspended else { return (nil, false) }
            progress.state = .running
            defer { progress.isStarted = true }
            return (progress.driver, !progress.isStarted)
        }
        guard let driver else { return }
        if isFirst { start(original, for: driver) } else { tellSuspension(false) }
    }

    /// Stops the task for a while: neither sends nor receives. Any thread; does nothing unless the task runs.
    public func suspend() {
        let mustTell = progress.withLock { progress in
            guard progress.state == .running else { return false }
            progress.state = .suspended
            return progress.isStarted
        }
        if mustTell { tellSuspension(true) }
    }

    /// Ends the task; its request completes with ``CurlewError/cancelled``. Any thread; does nothing for a finished task.
    public func cancel() {
        let (isFresh, isStarted) = progress.withLock { progress -> (Bool, Bool) in
            guard progress.state == .running || progress.state == .suspended else { return (false, false) }
            progress.state = .canceling
            return (true, progress.isStarted)
        }
        guard isFresh else { return }
        guard isStarted else { return completeUnstarted(with: CurlewError.cancelled) }
        transport.cancel(taskIdentifier)
        // The transfer may have completed, and its completion wait for a decision.
        progress.withLock { $0.driver }?.abandonDecision()
    }

    private func start(_ work: Work, for driver: RequestDriver) {
        switch work {
        case .transfer(let request):
            if let body = request.body as? UnreadableBody { return completeUnstarted(with: body.error) }
            progress.withLock { $0.isHandedOver = true }
            transport.start(driver.outgoing(request), id: taskIdentifier, observer: driver)
        case .stream(let request): openStream(request, for: driver)
        }
        // The transport has ignored what another thread told it before it knew the transfer.
        switch state {
        case .canceling: transport.cancel(taskIdentifier)
        case .suspended: tellSuspension(true)
        case .running, .completed: break
        }
    }

    /// Completes a task that the transport does not know.
    func completeUnstarted(with error: any Error) {
        let driver = progress.withLock { $0.driver }
        driver?.transfer(taskIdentifier, didComplete: TransferCompletion(error: error, metrics: TransferMetrics()))
    }

    private func openStream(_ request: StreamTransferRequest, for driver: RequestDriver) {
        progress.withLock { $0.isHandedOver = true }
        transport.openStream(driver.session.outgoing(request), id: taskIdentifier, observer: driver)
        // Inside the lock, so that what is written in the meantime comes after it.
        progress.withLock { progress in
            for piece in progress.unsent { transport.send(piece.bytes, endOfStream: piece.endOfStream, on: taskIdentifier) }
            progress.unsent = []
            progress.isOpened = true
        }
    }

    /// Tells the transport, again if another thread changed its mind meanwhile: the last word counts.
    private func tellSuspension(_ suspended: Bool) {
        transport.setSuspended(suspended, of: taskIdentifier)
        let now = state
        if now == (suspended ? .running : .suspended) { tellSuspension(!suspended) }
    }

    // MARK: For the driver

    /// Takes a task that the transport does not know yet, to end it; `false` when it is started or over.
    func claimUnstarted() -> Bool {
        progress.withLock { progress in
            guard progress.state == .suspended, !progress.isStarted else { return false }
            progress.state = .canceling
            return true
        }
    }

    /// The session is over, and ends the task; `true` when the transport does not know it, and so does not.
    func invalidate() -> Bool {
        progress.withLock { progress in
            guard progress.state == .running || progress.state == .suspended else { return false }
            progress.state = .canceling
            return !progress.isStarted
        }
    }

    /// Lets the transport go on after a pause that the delegate asked for.
    func resumeReceiving() {
        transport.resumeReceiving(taskIdentifier)
    }

    /// Sends bytes on a stream; those for one that was not started yet are kept until it is.
    func send(_ bytes: Data, endOfStream: Bool) {
        progress.withLock { progress in
            if progress.isOpened {
                transport.send(bytes, endOfStream: endOfStream, on: taskIdentifier)
            } else {
                progress.unsent.append((bytes, endOfStream))
            }
        }
    }

    /// Ends the transfer under way, whatever comes after it.
    func endTransfer() {
        transport.cancel(taskIdentifier)
    }

    /// Takes a follow-up, to be started then; returns `false` when the task was cancelled in the meantime.
    func take(_ followUp: FollowUp) -> Bool {
        progress.withLock { progress in
            guard progress.state == .running || progress.state == .suspended else { return false }
            progress.current = .transfer(followUp.request)
            if followUp.kind == .redirect { progress.hops += 1 }
            return true
        }
    }

    /// Starts the follow-up that was taken.
    func start(_ followUp: FollowUp) {
        guard let driver = progress.withLock({ $0.driver }) else { return }
        guard driver.session.mustPrepareOffTransport else { return start(.transfer(followUp.request), for: driver) }
        driver.session.queue.async { self.start(.transfer(followUp.request), for: driver) }
    }

    /// The task has completed; `false` when the transport never knew it.
    func completed(_ head: ResponseHead?, _ metrics: TransferMetrics) -> Bool {
        let (driver, isHandedOver) = progress.withLock { progress in
            progress.state = .completed
            progress.remains = Remains(head: head, received: metrics.responseBodyBytes, sent: metrics.requestBodyBytes)
            defer { progress.driver = nil }
            return (progress.driver, progress.isHandedOver)
        }
        // Outlives the lock: its release may release much else.
        return withExtendedLifetime(driver) { isHandedOver }
    }
}

extension SessionTask.Work {
    fileprivate var urlRequest: URLRequest? {
        if case .transfer(let request) = self { request.urlRequest } else { nil }
    }
}
