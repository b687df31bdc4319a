// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// A request that is an operation: it can be put on a queue, depend on others, be paused and resumed, copied and archived.
///
/// Everything about its connection happens on a queue of the operation's own, in order: the methods `connection…`, which subclasses may
/// override, run there. An override has to call `super`, which tells the operation's closures. All other members may be used from any
/// thread. Best subclassed for HTTP is ``HTTPRequestOperation``.
open class URLConnectionOperation: Operation, NSCopying, @unchecked Sendable {  // the state is behind a lock
    /// Bytes now, bytes so far, bytes in all (−1 if unknown).
    public typealias ProgressBlock = @Sendable (_ bytes: Int64, _ totalBytes: Int64, _ totalBytesExpected: Int64) -> Void
    /// The request to be sent in place of the proposed one; `nil` for none. The response is that of the redirect.
    public typealias RedirectBlock = @Sendable (URLConnectionOperation, URLRequest, HTTPURLResponse?) -> URLRequest?
    /// What goes into the cache in place of the proposed response; `nil` for nothing.
    public typealias CacheBlock = @Sendable (URLConnectionOperation, CachedURLResponse) -> CachedURLResponse?
    /// Answers a challenge, now or later.
    public typealias ChallengeBlock = @Sendable (URLConnectionOperation, OperationChallenge) -> Void

    struct Storage: @unchecked Sendable {  // only in the lock
        var lifecycle = OperationLifecycle()
        var request: URLRequest
        var settings = OperationSettings()
        var completion: (@Sendable () -> Void)?
        var waiters: [@Sendable () -> Void] = []
        /// What has changed and was not told yet, by its key, and whether a thread is telling it.
        var untold: [String] = []
        var isTelling = false
        var onStateChange: (@Sendable (OperationState) -> Void)?
        var stateStreams: [AsyncStream<OperationState>.Continuation] = []
        var activity: BackgroundActivity.Registration?

        var attempt: ConnectionAttempt?
        var sink: any BodySink
        var isAnnounced = false
        var isStreamUsed = false
        var resumption: RangeResumption?
        var refusesChallenge = false
        var usesCredentialStorage = true

        var response: HTTPURLResponse?
        var error: (any Error)?
        var responseData: Data?
        var totalBytesRead: Int64 = 0
    }

    /// Where everything about the connection happens.
    let queue = DispatchQueue(label: "curlew.operation", target: .global(qos: .utility))
    static let queueKey = DispatchSpecificKey<ObjectIdentifier>()
    let storage: Lock<Storage>

    /// Makes an operation that is ready, for a request with the scheme `http` or `https`.
    public required init(request: URLRequest) {
        storage = Lock(Storage(request: request, sink: MemorySink(limit: .max)))
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

    /// Where the operation is.
    public var state: OperationState { storage.withLock { $0.lifecycle.state } }

    /// Whether it is stopped until it is resumed or cancelled.
    public var isPaused: Bool { state == .paused }

    /// Whether it may be started: neither paused nor started, and what it depends on is over.
    open override var isReady: Bool { state == .ready && super.isReady }

    /// Whether its connection is on its way.
    open override var isExecuting: Bool { state == .executing }

    /// Whether it is over.
    open override var isFinished: Bool { state == .finished }

    /// `true`: starting it returns before it is over.
    open override var isAsynchronous: Bool { true }

    /// Is told of each new state, on the callback queue of the session; `nil` by default.
    public var onStateChange: (@Sendable (OperationState) -> Void)? {
        get { storage.withLock { $0.onStateChange } }
        set { storage.withLock { $0.onStateChange = newValue } }
    }

    /// The state now and each one from now on, until the operation is over.
    public var states: AsyncStream<OperationState> {
        let (stream, continuation) = AsyncStream.makeStream(of: OperationState.self)
        storage.withLock { storage in
            let state = storage.lifecycle.state
            continuation.yield(state)
            if state == .finished { continuation.finish() } else { storage.stateStreams.append(continuation) }
        }
        return stream
    }

    /// Starts the operation, unless it is paused, was started, or is over. Operation queues do that.
    open override func start() {
        perform { $0.start() }
    }

    /// Stops the operation until it is resumed or cancelled; what is on its way ends, what has come is kept where it can be gone on from.
    ///
    /// It stays in its queue, and if it was executing it keeps its place among those that may execute there at the same time. Pausing one
    /// that is paused, cancelled or over does nothing.
    open func pause() {
        perform { $0.pause() }
    }

    /// Lets a paused operation go on. One that was started begins at once, an ``HTTPRequestOperation`` where it was if the server
    /// allows it, another from zero. One that was not waits for its queue again, or for ``start()``.
    open func resume() {
        perform { $0.resume() }
    }

    /// Ends the operation with `URLError.cancelled`; its completion closures run. Also while it is paused. One that was not started ends when
    /// its queue starts it.
    open override func cancel() {
        // Foundation says that it is cancelled only of operations that are not over, and has its queue start it at once: in between.
        storage.withLock { $0.lifecycle.announceCancel() }
        super.cancel()
        perform { $0.cancel() }
    }

    // MARK: What comes of it

    /// The request as it was given.
    public var request: URLRequest { storage.withLock { $0.request } }

    /// The response; `nil` until there is one. The one behind all redirects; after a resume that of the first part, with its status and
    /// header fields, as the whole that the parts make is that (RFC 9110, section 15.3.7.3). ``connection(didReceive:)-(HTTPURLResponse)``
    /// is told of each.
    public var response: HTTPURLResponse? { storage.withLock { $0.response } }

    /// Why the operation failed; `nil` when it did not, or is not over. Mostly an `URLError`, with the URL that failed in its `userInfo`.
    open var error: (any Error)? { storage.withLock { $0.error } }

    /// The body, when the operation is over; `nil` where it went to an output stream or a file.
    public var responseData: Data? { storage.withLock { $0.responseData } }

    /// How many bytes of the body have come, those before a pause counted once.
    public var totalBytesRead: Int64 { storage.withLock { $0.totalBytesRead } }

    /// The body as text, in ``responseStringEncoding``; `nil` where there is no body, or it is none.
    public var responseString: String? {
        responseData.flatMap { String(data: $0, encoding: responseStringEncoding) }
    }

    /// The encoding that the response's charset names; UTF-8 without one, and for one that nobody knows.
    public var responseStringEncoding: String.Encoding {
        response?.value(forHTTPHeaderField: "Content-Type").flatMap { String.Encoding(contentType: $0) } ?? .utf8
    }

    // MARK: Connection, to be overridden

    /// Is told of the response, before its body. Call `super`.
    open func connection(didReceive response: HTTPURLResponse) {}

    /// Is told of a piece of the body, which is written already. Call `super`: it tells the download progress.
    open func connection(didReceive data: Data) {
        let (total, expected) = storage.withLock { ($0.totalBytesRead, $0.attempt?.expectedLength ?? -1) }
        tell(settings.downloadProgress, Int64(data.count), total, expected)
    }

    /// Is told that the body is complete, and where it belongs. Call `super`. The operation ends behind it.
    open func connectionDidFinishLoading() {}

    /// Is told why the connection has failed, also when it was cancelled. Call `super`. The operation ends behind it.
    open func connection(didFailWithError error: any Error) {}

    /// Is told how much of the request's body has left; −1 in all if unknown. Call `super`: it tells the upload progress.
    open func connection(didSendBodyData bytesWritten: Int64, totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64) {
        tell(settings.uploadProgress, bytesWritten, totalBytesWritten, totalBytesExpectedToWrite)
    }

    /// Decides what goes into the cache. `super` asks the cache closure, else gives the proposed response; nothing when cancelled.
    open func connection(willCache proposed: CachedURLResponse) -> CachedURLResponse? {
        guard !isCancelled else { return nil }
        guard let decide = settings.cacheResponse else { return proposed }
        return decide(self, proposed)
    }

    /// Whether the session's credential storage is asked. `super` gives ``shouldUseCredentialStorage``.
    open func connectionShouldUseCredentialStorage() -> Bool { shouldUseCredentialStorage }

    /// Gives the body of a request anew, which has to be sent again: after a redirect, a challenge or a pause. `nil` fails the operation.
    /// `super` copies a body that can be copied, as multipart bodies can.
    open func connectionNeedNewBodyStream(for request: URLRequest) -> InputStream? {
        (request.httpBodyStream as? MultipartBodyStream)?.makeCopy()
    }

    /// Answers a challenge, now or later. `super` asks the challenge closure, else does the default handling.
    ///
    /// Whether a server is trusted is asked only where ``judgesServerTrust`` is `true`.
    open func connection(willSendRequestFor challenge: OperationChallenge) {
        if let answer = settings.challenge { answer(self, challenge) } else { challenge.performDefaultHandling() }
    }

    /// Decides about a redirect: the request to be sent, `nil` to take the redirect for the response. Also asked about the first request,
    /// with no response; `nil` cancels the operation then. `super` asks the redirect closure, else gives the proposed request.
    open func connection(willSend request: URLRequest, redirectResponse: HTTPURLResponse?) -> URLRequest? {
        guard let decide = settings.redirectResponse else { return request }
        return decide(self, request, redirectResponse)
    }

    /// Whether challenges are about the server's trust, too; then the operation has connections of its own. `super` says so where there is
    /// a challenge closure.
    open var judgesServerTrust: Bool { settings.challenge != nil }

    // MARK: For subclasses of this module

    /// Whether the operation asks for the rest after a pause.
    var resumesWithRange: Bool { false }

    /// Makes of the response what the operation gives, before it is over; on the operation's queue.
    func processResponse() {}

    /// Has a copy keep what this class adds.
    func configure(copy: URLConnectionOperation) {}

    /// The archive's note of what kind it is.
    var archivedKind: OperationArchive.Kind { .urlConnection }

    /// What makes ``processResponse()`` come out as it does, for the archive.
    var archivedSerializer: (any ResponseSerialization)? { nil }

    /// Why ``processResponse()`` has refused the response, for the archive.
    var archivedRefusal: (any Error)? { nil }

    /// Takes over from an archive what this class adds, also what came of the response where the operation is over.
    func restoreJudgement(from archive: OperationArchive) {}

    // MARK: - NSCopying

    /// A new operation, ready, for the same request and with the same settings and closures; without output stream or file, completion
    /// closure, result and dependencies. A body that is a stream is shared unless it can be copied: where it was sent already, it has to be set anew, or
    /// ``connectionNeedNewBodyStream(for:)`` asked for it.
    public func copy(with zone: NSZone? = nil) -> Any { duplicate() }

    /// ``copy(with:)``, by its type.
    public func duplicate() -> Self {
        var request = request
        if let body = request.httpBodyStream as? MultipartBodyStream { request.httpBodyStream = body.makeCopy() }
        let copy = Self(request: request)
        copy.settings = settings
        if !(request.httpBodyStream is MultipartBodyStream) {
            // What was read of a shared stream, it does not give again.
            copy.storage.withLock { [isUsed = storage.withLock { $0.isStreamUsed }] in $0.isStreamUsed = isUsed }
        }
        configure(copy: copy)
        return copy
    }

    // MARK: - Completion

    /// Runs once when the operation is over, cancelled or not, on ``completionQueue`` and in ``completionGroup``; it is let go after that,
    /// so that it may hold the operation. Set it, better than override it.
    open override var completionBlock: (@Sendable () -> Void)? {
        get { storage.withLock { $0.completion } }
        set { storage.withLock { $0.completion = newValue } }
    }
}
