// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// The user's settings of an operation, which its copies share.
struct OperationSettings: @unchecked Sendable {  // its Foundation objects are immutable or thread-safe
    var session: OperationSession = .shared
    var credential: URLCredential?
    var shouldUseCredentialStorage = true
    var securityPolicy = SecurityPolicy()
    var completionQueue: DispatchQueue?
    var completionGroup: DispatchGroup?
    var completesBeforeDependents = false
    var userInfo: [String: any Sendable] = [:]
    var runLoopModes: Set<RunLoop.Mode> = [.common]
    var uploadProgress: URLConnectionOperation.ProgressBlock?
    var downloadProgress: URLConnectionOperation.ProgressBlock?
    var redirectResponse: URLConnectionOperation.RedirectBlock?
    var cacheResponse: URLConnectionOperation.CacheBlock?
    var challenge: URLConnectionOperation.ChallengeBlock?
    var requestOptions: RequestOptions?
}

// A setting takes effect the next time it is needed; set it before the operation is started.

extension URLConnectionOperation {
    private func setting<Value>(_ path: KeyPath<OperationSettings, Value>) -> Value {
        storage.withLock { $0.settings[keyPath: path] }
    }

    private func set<Value>(_ path: WritableKeyPath<OperationSettings, Value>, _ value: Value) {
        storage.withLock { $0.settings[keyPath: path] = value }
    }

    // MARK: Connection

    /// The session, which determines the transport configuration and the shared connections; ``OperationSession/shared`` by default.
    public var session: OperationSession {
        get { setting(\.session) }
        set { set(\.session, newValue) }
    }

    /// The credential for servers that request a user and a password, sent once; those in the URL take precedence. `nil` by default.
    public var credential: URLCredential? {
        get { setting(\.credential) }
        set { set(\.credential, newValue) }
    }

    /// Whether credentials are looked up in the session's storage, and accepted ones saved there; `true` by default.
    public var shouldUseCredentialStorage: Bool {
        get { setting(\.shouldUseCredentialStorage) }
        set { set(\.shouldUseCredentialStorage, newValue) }
    }

    /// What the server's certificates are checked for before anything is sent. A rejected server fails the operation with
    /// `URLError.userCancelledAuthentication`; pins with a URL that is not `https` with ``OperationError/pinningRequiresTLS(url:)``.
    public var securityPolicy: SecurityPolicy {
        get { setting(\.securityPolicy) }
        set { set(\.securityPolicy, newValue) }
    }

    /// The settings of this operation's requests, such as its timeouts and its interceptor; `nil`, the default, for the session's. Not archived.
    ///
    /// The deadline counts from the first start, which operation queues make, with pauses and all that follows them. That of
    /// ``withDeadline(_:isolation:_:)-(Duration,_,_)`` bounds operations that are created or started inside, the time in a queue included. An
    /// operation that is neither started nor executing finishes only when it is: one that was paused or queued past its deadline then fails
    /// at once, without a request. The error is that of a timeout, `URLError.timedOut`.
    ///
    /// The interceptor sees the request after ``connection(willSend:redirectResponse:)``. It decides about failed transfers before anything of
    /// the response has arrived, as the body may be in a stream or a file by then.
    public var requestOptions: RequestOptions? {
        get { setting(\.requestOptions) }
        set { set(\.requestOptions, newValue) }
    }

    /// Values that the user attaches to the operation; not archived.
    public var userInfo: [String: any Sendable] {
        get { setting(\.userInfo) }
        set { set(\.userInfo, newValue) }
    }

    /// Has no effect, as no run loop serves the connection; for source compatibility. The common modes by default.
    public var runLoopModes: Set<RunLoop.Mode> {
        get { setting(\.runLoopModes) }
        set { set(\.runLoopModes, newValue) }
    }

    // MARK: Bodies

    /// The request's body stream. The operation owns it once set.
    public var inputStream: InputStream? {
        get { request.httpBodyStream }
        set {
            storage.withLock { storage in
                // Foundation on Linux traps when a copied request without a URL is mutated; such a request can't be sent anyway.
                if storage.request.url != nil { storage.request.httpBodyStream = newValue }
                storage.isStreamUsed = false
            }
        }
    }

    /// The stream that receives the response's body in place of memory; closed at the end. `nil` by default, for memory.
    ///
    /// No more is received than the stream has space for. Replacing the stream closes the previous one. For downloads that are paused
    /// ``outputFile`` is better: a stream can't be rewound if the server starts over.
    public var outputStream: OutputStream? {
        get { storage.withLock { ($0.sink as? StreamSink)?.stream } }
        set { setSink(newValue.map { StreamSink($0) }) }
    }

    /// The file that receives the response's body in place of memory; `nil` by default.
    ///
    /// The body is written to a partial file in the same directory, which gets its name when it is complete and accepted, so that an
    /// existing file is replaced atomically or not at all. Where the file system supports it (`O_TMPFILE` on Linux), the partial file has
    /// no name until then, so that nothing is left of it however the process ends; otherwise its name is hidden (`.name.XXXXXX.part`).
    ///
    /// A paused operation keeps the partial file open, and resumes after the bytes it has written. The file is removed when the operation
    /// fails, is cancelled or is released, unless the operation was archived since it was last started or resumed: ``archive()`` gives it
    /// its hidden name, and the archive owns it. A symbolic link is replaced, not followed; anything else that is not a file fails the
    /// operation. The body of an error response is not written to the file, but is in ``responseData``.
    public var outputFile: URL? {
        get { storage.withLock { ($0.sink as? FileSink)?.url } }
        set { setSink(newValue.map { FileSink($0) }) }
    }

    private func setSink(_ sink: (any BodySink)?) {
        let old = storage.withLock { storage in
            defer {
                storage.sink = sink ?? MemorySink(limit: storage.settings.session.configuration.maximumBodySize)
                storage.totalBytesRead = 0
                storage.resumption = nil
            }
            return storage.sink
        }
        old.discard()
    }

    // MARK: Completion

    /// The queue on which ``completionBlock`` runs; `nil`, the default, for the session's callback queue, which is the main queue by
    /// default.
    public var completionQueue: DispatchQueue? {
        get { setting(\.completionQueue) }
        set { set(\.completionQueue, newValue) }
    }

    /// The group in which ``completionBlock`` runs; `nil`, the default, for none.
    public var completionGroup: DispatchGroup? {
        get { setting(\.completionGroup) }
        set { set(\.completionGroup, newValue) }
    }

    /// Whether dependent operations also wait for this operation's completion closure; `false` by default.
    ///
    /// If so, the operation finishes only after the closure has run: waiting for it on the queue that runs the closure deadlocks.
    public var completesBeforeDependents: Bool {
        get { setting(\.completesBeforeDependents) }
        set { set(\.completesBeforeDependents, newValue) }
    }

    // MARK: Closures

    /// Sets the closure that is called with the upload progress, on the session's callback queue.
    public func setUploadProgressBlock(_ block: ProgressBlock?) { set(\.uploadProgress, block) }

    /// Sets the closure that is called with the download progress, on the session's callback queue. Totals include the bytes received
    /// before a pause.
    public func setDownloadProgressBlock(_ block: ProgressBlock?) { set(\.downloadProgress, block) }

    /// Sets the closure that decides about redirects, on the operation's queue. It is also called for the first request, without a
    /// response; returning `nil` then cancels the operation.
    public func setRedirectResponseBlock(_ block: RedirectBlock?) { set(\.redirectResponse, block) }

    /// Sets the closure that decides what is stored in the session's cache, on the operation's queue.
    public func setCacheResponseBlock(_ block: CacheBlock?) { set(\.cacheResponse, block) }

    /// Sets the closure that handles all challenges, including server trust, in place of the default handling. It is called on the
    /// operation's queue and may answer later.
    public func setWillSendRequestForAuthenticationChallengeBlock(_ block: ChallengeBlock?) { set(\.challenge, block) }

    /// Gives the operation time to finish when the process is asked to end (SIGTERM, SIGINT), as ``BackgroundActivity`` describes.
    ///
    /// When that time is up, `handler` runs on the session's callback queue, and the operation is cancelled. Takes effect once: further
    /// calls do nothing.
    public func setShouldExecuteAsBackgroundTask(expirationHandler handler: (@Sendable () -> Void)? = nil) {
        let callbacks = session.configuration.callbackQueue
        let canRegister = storage.withLock { $0.activity == nil && $0.lifecycle.state != .finished }
        guard canRegister else { return }
        let activity = BackgroundActivity.shared.begin(queue: callbacks) { [weak self] in
            handler?()
            self?.cancel()
        }
        let isFirst = storage.withLock { storage in
            guard storage.activity == nil, storage.lifecycle.state != .finished else { return false }
            storage.activity = activity
            return true
        }
        if !isFirst { activity.end() }
    }
}
