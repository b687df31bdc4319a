// SPDX-License-Identifier: Apache-2.0
import Dispatch

// What is set counts from the next time that it is needed: best before the operation is started.

extension URLConnectionOperation {
    private func setting<Value>(_ path: KeyPath<OperationSettings, Value>) -> Value {
        storage.withLock { $0.settings[keyPath: path] }
    }

    private func set<Value>(_ path: WritableKeyPath<OperationSettings, Value>, _ value: Value) {
        storage.withLock { $0.settings[keyPath: path] = value }
    }

    // MARK: Connection

    /// How its request travels, and with whom it shares connections; ``OperationSession/shared`` by default.
    public var session: OperationSession {
        get { setting(\.session) }
        set { set(\.session, newValue) }
    }

    /// Answers servers that ask for a name and a password, once; those in the URL go before it. `nil` by default.
    public var credential: URLCredential? {
        get { setting(\.credential) }
        set { set(\.credential, newValue) }
    }

    /// Whether credentials are looked up in, and accepted ones kept in, the session's storage; `true` by default.
    public var shouldUseCredentialStorage: Bool {
        get { setting(\.shouldUseCredentialStorage) }
        set { set(\.shouldUseCredentialStorage, newValue) }
    }

    /// What the server has to show before anything is sent to it. A server that is refused ends the operation with
    /// `URLError.userCancelledAuthentication`; pins with a URL that is not `https`, with ``OperationError/pinningRequiresTLS(url:)``.
    public var securityPolicy: SecurityPolicy {
        get { setting(\.securityPolicy) }
        set { set(\.securityPolicy, newValue) }
    }

    /// Whatever the user wants to keep with the operation; not archived.
    public var userInfo: [String: any Sendable] {
        get { setting(\.userInfo) }
        set { set(\.userInfo, newValue) }
    }

    /// For programs that set it: no run loop serves the connection here, and it has no effect. The common modes by default.
    public var runLoopModes: Set<RunLoop.Mode> {
        get { setting(\.runLoopModes) }
        set { set(\.runLoopModes, newValue) }
    }

    // MARK: Bodies

    /// The request's body, where it is a stream; it belongs to the operation then.
    public var inputStream: InputStream? {
        get { request.httpBodyStream }
        set {
            storage.withLock { storage in
                // Foundation on Linux traps when a copied request without a URL is changed; such a request can't be sent anyway.
                if storage.request.url != nil { storage.request.httpBodyStream = newValue }
                storage.isStreamUsed = false
            }
        }
    }

    /// Where the response's body is written in place of memory; closed at the end. `nil` by default, for memory.
    ///
    /// No more is received than it has space for. A stream before it is closed. For downloads that are paused ``outputFile`` is better: a
    /// stream can't be taken back where the server begins anew.
    public var outputStream: OutputStream? {
        get { storage.withLock { ($0.sink as? StreamSink)?.stream } }
        set { setSink(newValue.map { StreamSink($0) }) }
    }

    /// The file into which the response's body is written in place of memory; `nil` by default.
    ///
    /// It is written under a hidden name in the same directory (`.name.XXXXXX.part`) and renamed when the body is whole and accepted, so
    /// that a file that was there before is replaced at once or not at all. A paused operation resumes behind what it has written. The
    /// hidden file is removed when the operation fails, is cancelled or released, unless the operation was archived since it last began or
    /// was resumed: then the archive has it. A link is replaced, not followed; anything else that is no file fails the operation. The body
    /// of an error does not go there, but into ``responseData``.
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

    /// Where ``completionBlock`` runs; `nil`, the default, for the callback queue of the session, which is the main queue unless set.
    public var completionQueue: DispatchQueue? {
        get { setting(\.completionQueue) }
        set { set(\.completionQueue, newValue) }
    }

    /// The group in which ``completionBlock`` runs; `nil`, the default, for none.
    public var completionGroup: DispatchGroup? {
        get { setting(\.completionGroup) }
        set { set(\.completionGroup, newValue) }
    }

    /// Whether operations that depend on this one wait for its completion closures, too; `false` by default.
    ///
    /// If so the operation is finished only when they have run: waiting for it on the queue on which they run never ends.
    public var completesBeforeDependents: Bool {
        get { setting(\.completesBeforeDependents) }
        set { set(\.completesBeforeDependents, newValue) }
    }

    // MARK: Closures

    /// Has `block` told how much of the request's body has left, on the callback queue of the session.
    public func setUploadProgressBlock(_ block: ProgressBlock?) { set(\.uploadProgress, block) }

    /// Has `block` told how much of the response's body has come, on the callback queue of the session. Totals count what came before a
    /// pause.
    public func setDownloadProgressBlock(_ block: ProgressBlock?) { set(\.downloadProgress, block) }

    /// Has `block` decide about redirects, on the operation's queue. It is asked about the first request, too, with no response; `nil`
    /// cancels the operation then.
    public func setRedirectResponseBlock(_ block: RedirectBlock?) { set(\.redirectResponse, block) }

    /// Has `block` decide what goes into the session's cache, on the operation's queue.
    public func setCacheResponseBlock(_ block: CacheBlock?) { set(\.cacheResponse, block) }

    /// Has `block` answer all challenges, in place of everything that is done by default, also whether the server is trusted: on the
    /// operation's queue. It may answer later.
    public func setWillSendRequestForAuthenticationChallengeBlock(_ block: ChallengeBlock?) { set(\.challenge, block) }

    /// Has the operation given time to end when the process is asked to (SIGTERM, SIGINT), as ``BackgroundActivity`` says.
    ///
    /// When that time is up `handler` runs on the callback queue of the session, and the operation is cancelled. Once only: a second call
    /// does nothing.
    public func setShouldExecuteAsBackgroundTask(expirationHandler handler: (@Sendable () -> Void)? = nil) {
        let callbacks = session.configuration.callbackQueue
        let isWanted = storage.withLock { $0.activity == nil && $0.lifecycle.state != .finished }
        guard isWanted else { return }
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
