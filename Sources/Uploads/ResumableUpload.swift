// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// An upload of a file that survives lost connections, restarts and the end of the process, by tus 1.0 or the draft for HTTP
/// (``Options/dialect``).
///
/// ```swift
/// let upload = manager.resumableUpload(file, to: "https://example.org/files")
/// let response = try await upload.response
/// ```
///
/// The server is asked how many bytes it has before each attempt, and gets the rest; the file is read while it is sent. A state file has
/// the upload's URL. The next upload of the same file to the same URL continues the one before, also in another process, if file, metadata
/// and credentials are the same. If the server has lost the upload, it is begun again, once.
///
/// Starts with ``resume()``, or when ``response`` or ``value`` is awaited first. It retains the manager, and itself while it runs.
/// Cancelling a task that awaits it cancels the upload, which a later one continues.
public final class ResumableUpload: Sendable {
    private enum Phase {
        case idle
        case running
        case paused
        case finished(Result<Response, any Error>)
    }

    private struct State {
        var phase = Phase.idle
        var isCancelled = false
        var task: Task<Void, Never>?
        var deadline: Deadline?
        var waiters: [CheckedContinuation<Response, any Error>] = []
        /// By number, in order of their creation.
        var observers: [Int: AsyncStream<Progress>.Continuation] = [:]
        var observersMade = 0
        var progress = Progress(completed: 0, confirmed: 0, total: 0)
        var expires: Date?
        /// The bytes of all requests that have ended.
        var sent: Int64 = 0
    }

    /// The file.
    public let file: URL
    /// The URL to which uploads are begun.
    public let endpoint: any URLConvertible
    /// The settings.
    public let options: Options
    private let manager: SessionManager
    private let state = Lock(State())
    private let tally = Lock(UploadRun.Tally())

    init(_ manager: SessionManager, _ file: URL, to endpoint: any URLConvertible, _ options: Options) {
        self.manager = manager
        self.file = file
        self.endpoint = endpoint
        self.options = options
    }

    // MARK: The result

    /// The response, once the upload is complete. Starts it unless it is started or paused.
    ///
    /// - Throws: ``ResumableUploadError``, `CurlewError` of the request that failed last, or `CurlewError.cancelled`, `CocoaError` for
    ///   files, `CancellationError` if the awaiting task was cancelled.
    public var response: Response {
        get async throws {
            start(from: { if case .idle = $0 { true } else { false } })
            do {
                return try await withTaskCancellationHandler {
                    try await withCheckedThrowingContinuation { continuation in
                        let result = state.withLock { state -> Result<Response, any Error>? in
                            if case .finished(let result) = state.phase { return result }
                            state.waiters.append(continuation)
                            return nil
                        }
                        if let result { continuation.resume(with: result) }
                    }
                } onCancel: {
                    cancel()
                }
            } catch CurlewError.cancelled where Task.isCancelled {
                throw CancellationError()
            }
        }
    }

    /// The body of the ``response``; of a tus server usually empty.
    public var value: Data {
        get async throws { try await response.body }
    }

    // MARK: Progress

    /// How far the upload is.
    public var progress: Progress { state.withLock { $0.progress } }

    /// The progress from now on; ends with the upload. Each access returns a sequence of its own, which has the newest value only.
    public var progressUpdates: AsyncStream<Progress> {
        let (stream, continuation) = AsyncStream.makeStream(of: Progress.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state -> Int? in
            // Nothing waits for it yet. After unlocking, a newer one could have come before it.
            continuation.yield(state.progress)
            if case .finished = state.phase { return nil }
            state.observersMade += 1
            state.observers[state.observersMade] = continuation
            return state.observersMade
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in self?.state.withLock { _ = $0.observers.removeValue(forKey: number) } }
        return stream
    }

    /// The number of sequences of ``progressUpdates`` that are in use.
    package var observerCount: Int { state.withLock { $0.observers.count } }

    /// When the server removes the upload unless it is complete by then (tus's expiration extension); `nil` if it has not said so.
    public var expires: Date? { state.withLock { $0.expires } }

    // MARK: Control

    /// Starts the upload, or continues it after ``pause()``. Does nothing while it runs, and after its end.
    public func resume() {
        start(from: { phase in
            switch phase {
            case .idle, .paused: true
            case .running, .finished: false
            }
        })
    }

    /// Ends the current request and sends no other until ``resume()``. What the server has of it is not sent again. The state file is free
    /// for another upload meanwhile. Those who await the response wait.
    public func pause() {
        state.withLock { state in
            switch state.phase {
            case .idle, .running:
                state.phase = .paused
                return state.task
            case .paused, .finished: return nil
            }
        }?.cancel()
    }

    /// Ends the upload with `CurlewError.cancelled`. Its state is kept: the next upload continues it. Does nothing after its end.
    public func cancel() {
        let (task, isRunning) = state.withLock { state in
            state.isCancelled = true
            if case .running = state.phase { return (state.task, true) }
            return (nil, false)
        }
        task?.cancel()
        if !isRunning { finish(.failure(CurlewError.cancelled)) }
    }

    /// Ends the upload as ``cancel()``, waits for the end of its request, and removes it from the server (tus's termination extension),
    /// also if an earlier process has begun it, and if the file has changed since or is gone. Does nothing after a complete upload.
    ///
    /// - Parameter removingFromServer: whether it is removed; if not, the state is kept.
    /// - Throws: as ``response``, if the removal fails; the state is then kept. ``ResumableUploadError/Kind/otherCredentials`` for an upload
    ///   of another user, which is not removed.
    public func cancel(removingFromServer: Bool) async throws {
        cancel()
        await state.withLock { $0.task }?.value
        if case .finished(.success) = state.withLock({ $0.phase }) { return }
        guard removingFromServer else { return }
        try await withRun(asRecorded: true) { run, record in
            guard let record, record.isAbout(file, options) else { return }
            run.resume(record)
            try await run.remove()
        }
    }

    // MARK: The run

    private func start(from isStart: (Phase) -> Bool) {
        state.withLock { state in
            guard isStart(state.phase), !state.isCancelled else { return }
            if case .idle = state.phase { state.deadline = Deadline.earliest(options.deadline) }
            state.phase = .running
            let (previous, deadline) = (state.task, state.deadline)
            state.task = Task {
                await previous?.value
                let result: Result<Response, any Error>
                do {
                    try Task.checkCancellation()
                    result = .success(try await perform(until: deadline))
                } catch {
                    result = .failure(error)
                }
                end(result)
            }
        }
    }

    private func perform(until deadline: Deadline?) async throws -> Response {
        guard let deadline else { return try await perform() }
        return try await withDeadline(deadline) { try await perform() }
    }

    private func perform() async throws -> Response {
        let end = try await withRun { run, record in
            if let record { run.resume(record) }
            return (try await run.run(), run.upload)
        }
        let resumed = tally.withLock { $0.resumed ?? 0 }
        let (total, sent) = state.withLock { ($0.progress.total, $0.sent) }
        return Response(
            head: end.0.reply.head, body: end.0.reply.body, uploadURL: end.1, length: total, sent: sent, resumed: resumed)
    }

    /// Calls `body` with a run, and the record of an earlier upload.
    ///
    /// - Parameter asRecorded: whether it is a run of the file as it was when the recorded upload was begun.
    private func withRun<Value>(
        asRecorded: Bool = false, _ body: (inout UploadRun, UploadRecord?) async throws -> Value
    ) async throws -> Value {
        let url = try endpoint.asURL()
        let client = try UploadClient(manager, file, to: url, options) { [weak self] in self?.noteSent($1, of: $0, isEnd: $2) }
        let dialect = try options.makeDialect()
        let current = try asRecorded ? nil : UploadedFile(file)
        let store = UploadStore(options.stateFile ?? UploadStore.url(for: file, to: url))
        let record = try store.open()
        defer { store.close() }
        var uploaded = try current ?? record.map { UploadedFile(file, $0.file) } ?? UploadedFile(file)
        if options.verifiesContent, !asRecorded { uploaded = try await uploaded.withDigest() }
        let length = uploaded.length
        state.withLock { $0.progress.total = length }
        var run = UploadRun(client, uploaded, store, dialect, tally) { [weak self] in self?.note($0) }
        return try await body(&run, record)
    }

    private func end(_ result: Result<Response, any Error>) {
        let isPaused = state.withLock { !$0.isCancelled && Task.isCancelled }
        switch result {
        case .success: finish(result)
        // The phase may be another one by now.
        case .failure where isPaused: break
        case .failure(let error): finish(.failure(state.withLock { $0.isCancelled } ? CurlewError.cancelled : error))
        }
    }

    private func finish(_ result: Result<Response, any Error>) {
        let (waiters, observers) = state.withLock { state in
            if case .finished = state.phase {
                return ([CheckedContinuation<Response, any Error>](), [Int: AsyncStream<Progress>.Continuation]())
            }
            state.phase = .finished(result)
            defer { (state.waiters, state.observers) = ([], [:]) }
            return (state.waiters, state.observers)
        }
        for observer in observers.values { observer.finish() }
        for waiter in waiters { waiter.resume(with: result) }
    }

    // MARK: What is noted

    private func noteSent(_ count: Int64, of slice: UploadClient.Slice, isEnd: Bool) {
        report { state in
            if isEnd { state.sent += count }
            state.progress.completed = max(slice.offset + count, state.progress.confirmed)
        }
    }

    private func note(_ found: UploadState) {
        report { state in
            if let expires = found.expires { state.expires = expires }
            if let offset = found.offset { (state.progress.completed, state.progress.confirmed) = (offset, offset) }
        }
    }

    /// Changes the state, and shows the progress to those who observe it. Calls come one after the other.
    private func report(_ change: (inout State) -> Void) {
        let (progress, observers) = state.withLock { state in
            change(&state)
            return (state.progress, state.observers)
        }
        for observer in observers.values { observer.yield(progress) }
    }
}

extension SessionManager {
    /// Creates an upload of a file that is continued after lost connections, and by later uploads of the same file to the same URL.
    ///
    /// Needs `import CurlewUploads`.
    ///
    /// Nothing is sent until it is awaited, or ``ResumableUpload/resume()`` is called. It retains the manager.
    ///
    /// - Parameters:
    ///   - file: a regular file, which must not change until the upload is complete.
    ///   - endpoint: the URL to which uploads are begun.
    ///   - options: the settings.
    public func resumableUpload(
        _ file: URL, to endpoint: any URLConvertible, options: ResumableUpload.Options = ResumableUpload.Options()
    ) -> ResumableUpload {
        ResumableUpload(self, file, to: endpoint, options)
    }
}

// MARK: - CustomReflectable

extension ResumableUpload: CustomReflectable {
    /// The file, the URL, redacted, and the progress.
    public var customMirror: Mirror {
        .redacted(self, ["file": file.path, "endpoint": "\(endpoint)".redactedURL, "progress": progress])
    }
}

/// Reflection shows nothing, as metadata and fields may have secrets.
extension ResumableUpload.Options: RedactedReflectable {}
