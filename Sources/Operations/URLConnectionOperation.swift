// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// A request as a Foundation operation: it can be added to a queue, depend on others, be paused and resumed, copied and archived.
///
/// Everything about its connection happens on the operation's own serial queue, including the methods `connection…`, which subclasses may
/// override. An override has to call `super`, which calls the operation's closures. All other members are thread-safe. For HTTP, subclass
/// ``HTTPRequestOperation``.
open class URLConnectionOperation: Operation, NSCopying, @unchecked Sendable {  // the state is behind a lock
    /// Called with the bytes of this step, the bytes so far, and the total (−1 if unknown).
    public typealias ProgressBlock = @Sendable (_ bytes: Int64, _ totalBytes: Int64, _ totalBytesExpected: Int64) -> Void
    /// Returns the request to send in place of the proposed one; `nil` for none. The response is the redirect's.
    public typealias RedirectBlock = @Sendable (URLConnectionOperation, URLRequest, HTTPURLResponse?) -> URLRequest?
    /// Returns the response to cache in place of the proposed one; `nil` for none.
    public typealias CacheBlock = @Sendable (URLConnectionOperation, CachedURLResponse) -> CachedURLResponse?
    /// Handles a challenge, now or later.
    public typealias ChallengeBlock = @Sendable (URLConnectionOperation, OperationChallenge) -> Void

    struct Storage: @unchecked Sendable {  // used in the lock only
        var lifecycle = OperationLifecycle()
        var request: URLRequest
        var settings = OperationSettings()
        var completion: (@Sendable () -> Void)?
        var waiters: [@Sendable () -> Void] = []
        /// The keys whose observers still have to be notified, and whether a thread is doing so.
        var pendingKeys: [String] = []
        var isNotifying = false
        var onStateChange: (@Sendable (OperationState) -> Void)?
        var stateStreams: [AsyncStream<OperationState>.Continuation] = []
        var activity: BackgroundActivity.Registration?

        var attempt: ConnectionAttempt?
        var sink: any BodySink
        var didPostStart = false
        var isStreamUsed = false
        var resumption: RangeResumption?
        /// Whether a challenge of this attempt was cancelled.
        var cancelledChallenge = false
        var usesCredentialStorage = true
        /// That of the caller that has created the operation; from the first start, the earliest one.
        var deadline: Deadline?
        var hasBegunDeadline = false

        var response: HTTPURLResponse?
        var error: (any Error)?
        var responseData: Data?
        var totalBytesRead: Int64 = 0
    }

    /// The serial queue for everything about the connection.
    let queue = DispatchQueue(label: "curlew.operation", target: .global(qos: .utility))
    static let queueKey = DispatchSpecificKey<ObjectIdentifier>()
    let storage: Lock<Storage>

    /// Creates an operation in the state `ready`, for a request with the scheme `http` or `https`.
    public required init(request: URLRequest) {
        var new = Storage(request: request, sink: MemorySink(limit: .max))
        new.deadline = Deadline.current
        storage = Lock(new)
        super.init()
        queue.setSpecific(key: Self.queueKey, value: ObjectIdentifier(self))
    }

    deinit {
        storage.withLock { $0.activity }?.end()
    }

    var settings: OperationSettings {
        get { storage.withLock { $0.settings } }
        set { storage.withLock { $0.settings = newValue } }
    }

    // MARK: State

    /// The operation's state.
    public var state: OperationState { storage.withLock { $0.lifecycle.state } }

    /// Whether the operation is stopped until it is resumed or cancelled.
    public var isPaused: Bool { state == .paused }

    /// Whether the operation may be started: neither paused nor started, with its dependencies finished.
    open override var isReady: Bool { state == .ready && super.isReady }

    /// Whether the connection is in flight.
    open override var isExecuting: Bool { state == .executing }

    /// Whether the operation has finished.
    open override var isFinished: Bool { state == .finished }

    /// `true`: ``start()`` returns before the operation has finished.
    open override var isAsynchronous: Bool { true }

    /// Called with each new state, on the session's callback queue; `nil` by default.
    public var onStateChange: (@Sendable (OperationState) -> Void)? {
        get { storage.withLock { $0.onStateChange } }
        set { storage.withLock { $0.onStateChange = newValue } }
    }

    /// The current state and each later one, until the operation has finished.
    public var states: AsyncStream<OperationState> {
        let (stream, continuation) = AsyncStream.makeStream(of: OperationState.self)
        storage.withLock { storage in
            let state = storage.lifecycle.state
            continuation.yield(state)
            if state == .finished { continuation.finish() } else { storage.stateStreams.append(continuation) }
        }
        return stream
    }

    /// Starts the operation unless it is paused, started or finished. Operation queues call this.
    open override func start() {
        beginDeadline()
        perform { $0.start() }
    }

    /// Stops the operation until it is resumed or cancelled. Its connection is cancelled; bytes received so far are kept if it can resume
    /// from them.
    ///
    /// It stays in its queue, and if it was executing it keeps its place among those that may execute there at the same time. Pausing an
    /// operation that is paused, cancelled or finished does nothing.
    open func pause() {
        perform { $0.pause() }
    }

    /// Resumes a paused operation. One that was started continues at once: an ``HTTPRequestOperation`` where it stopped if the server
    /// allows it, another from the start. One that was not waits for its queue or ``start()`` again.
    open func resume() {
        perform { $0.resume() }
    }

    /// Fails the operation with `URLError.cancelled`, also while it is paused; its completion closure runs. One that was not started
    /// finishes when its queue starts it.
    open override func cancel() {
        // `super.cancel()` has the queue start the operation at once, before `perform` below, so it is marked as cancelled first.
        storage.withLock { $0.lifecycle.markCancelled() }
        super.cancel()
        perform { $0.cancel() }
    }

    // MARK: Results

    /// The request as it was given.
    public var request: URLRequest { storage.withLock { $0.request } }

    /// The response; `nil` until it arrives. After redirects it is the last one; after resuming it is that of the first part, with its
    /// status and header fields, as the combined body counts as that response (RFC 9110, section 15.3.7.3).
    /// ``connection(didReceive:)-(HTTPURLResponse)`` receives each of them.
    public var response: HTTPURLResponse? { storage.withLock { $0.response } }

    /// Why the operation failed; `nil` if it has not. Usually a `URLError`, with the failing URL in its `userInfo`.
    open var error: (any Error)? { storage.withLock { $0.error } }

    /// The body, once the operation has finished: empty if the response has none, `nil` without a response, or if it was written to an
    /// output stream or a file.
    ///
    /// Of an operation that has failed or was cancelled after the response has arrived, the part that was received until then.
    public var responseData: Data? { storage.withLock { $0.responseData } }

    /// The number of bytes of the body received, including those before a pause.
    public var totalBytesRead: Int64 { storage.withLock { $0.totalBytesRead } }

    /// The body as text, in ``responseStringEncoding``; `nil` if there is no ``responseData``, or it is not text in that encoding.
    public var responseString: String? {
        responseData.flatMap { encoded($0).text }
    }

    /// The encoding that a byte order mark, the response's charset or an XML declaration names; UTF-8 without any, or for an unknown one.
    public var responseStringEncoding: String.Encoding { encoded(responseData ?? Data()).encoding }

    private func encoded(_ body: Data) -> EncodedText {
        EncodedText(body, contentType: response?.value(forHTTPHeaderField: "Content-Type"))
    }

    // MARK: Connection, to be overridden

    /// Called with the response, before its body. Call `super`.
    open func connection(didReceive response: HTTPURLResponse) {}

    /// Called with a piece of the body, which has been written already. Call `super`, which reports the download progress.
    open func connection(didReceive data: Data) {
        let (total, expected) = storage.withLock { ($0.totalBytesRead, $0.attempt?.expectedLength ?? -1) }
        report(settings.downloadProgress, Int64(data.count), total, expected)
    }

    /// Called when the body is complete and committed. Call `super`. The operation finishes afterwards.
    open func connectionDidFinishLoading() {}

    /// Called when the connection has failed or was cancelled. Call `super`. The operation finishes afterwards.
    open func connection(didFailWithError error: any Error) {}

    /// Called with the upload progress; the total is −1 if unknown. Call `super`, which reports it.
    open func connection(didSendBodyData bytesWritten: Int64, totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64) {
        report(settings.uploadProgress, bytesWritten, totalBytesWritten, totalBytesExpectedToWrite)
    }

    /// Decides what is cached. `super` calls the cache closure, or returns the proposed response without one; `nil` if cancelled.
    open func connection(willCache proposed: CachedURLResponse) -> CachedURLResponse? {
        guard !isCancelled else { return nil }
        guard let decide = settings.cacheResponse else { return proposed }
        return decide(self, proposed)
    }

    /// Whether the session's credential storage is used. `super` returns ``shouldUseCredentialStorage``.
    open func connectionShouldUseCredentialStorage() -> Bool { shouldUseCredentialStorage }

    /// Returns a new body stream for a request that has to be sent again: after a redirect, a challenge or a pause. `nil` fails the
    /// operation. `super` copies a body that can be copied, as multipart bodies can.
    open func connectionNeedNewBodyStream(for request: URLRequest) -> InputStream? {
        (request.httpBodyStream as? MultipartBodyStream)?.makeCopy()
    }

    /// Handles a challenge, now or later. `super` calls the challenge closure, or performs the default handling without one.
    ///
    /// Called for server trust only if ``evaluatesServerTrust`` is `true`.
    open func connection(willSendRequestFor challenge: OperationChallenge) {
        if let handle = settings.challenge { handle(self, challenge) } else { challenge.performDefaultHandling() }
    }

    /// Decides about a redirect: returns the request to send, or `nil` to take the redirect as the response. Also called for the first
    /// request, without a response; `nil` then cancels the operation. `super` calls the redirect closure, or returns the proposed request
    /// without one.
    open func connection(willSend request: URLRequest, redirectResponse: HTTPURLResponse?) -> URLRequest? {
        guard let decide = settings.redirectResponse else { return request }
        return decide(self, request, redirectResponse)
    }

    /// Whether challenges include server trust; the operation then has its own connections. `super` returns `true` if there is a challenge
    /// closure.
    open var evaluatesServerTrust: Bool { settings.challenge != nil }

    // MARK: For subclasses of this module

    /// Whether the operation requests the rest of the body after a pause.
    var resumesWithRange: Bool { false }

    /// Serializes the response, before the operation finishes; on the operation's queue.
    func processResponse() {}

    /// Copies this class's own settings to a copy.
    func configure(copy: URLConnectionOperation) {}

    /// The kind of operation for the archive.
    var archivedKind: OperationArchive.Kind { .urlConnection }

    /// The serializer that ``processResponse()`` uses, for the archive.
    var archivedSerializer: (any ResponseSerialization)? { nil }

    /// Why ``processResponse()`` rejected the response, for the archive.
    var archivedRejection: (any Error)? { nil }

    /// Restores this class's own state from an archive, including the serialized result of a finished operation.
    func restoreOutcome(from archive: OperationArchive) {}

    // MARK: - NSCopying

    /// Returns a new operation in the state `ready`, for the same request, with the same settings and closures; without output stream or
    /// file, completion closure, result and dependencies. A body stream is shared unless it can be copied: if it was sent already, it has
    /// to be set again or returned by ``connectionNeedNewBodyStream(for:)``.
    public func copy(with zone: NSZone? = nil) -> Any { duplicate() }

    /// ``copy(with:)``, typed.
    public func duplicate() -> Self {
        var request = request
        if let body = request.httpBodyStream as? MultipartBodyStream { request.httpBodyStream = body.makeCopy() }
        let copy = Self(request: request)
        copy.settings = settings
        if !(request.httpBodyStream is MultipartBodyStream) {
            // A shared stream can't be read again.
            copy.storage.withLock { [isUsed = storage.withLock { $0.isStreamUsed }] in $0.isStreamUsed = isUsed }
        }
        configure(copy: copy)
        return copy
    }

    // MARK: - Completion

    /// Runs once when the operation has finished, cancelled or not, on ``completionQueue`` and in ``completionGroup``. It is released
    /// afterwards, so it may capture the operation. Set it rather than overriding it.
    open override var completionBlock: (@Sendable () -> Void)? {
        get { storage.withLock { $0.completion } }
        set { storage.withLock { $0.completion = newValue } }
    }
}
