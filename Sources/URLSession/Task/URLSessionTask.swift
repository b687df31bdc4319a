// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading

/// A task of a ``URLSession``: suspended until ``resume()``, and retained by its session until it has completed. Thread-safe.
///
/// Sessions make the subclasses; programs make their own only to test what uses a task.
open class URLSessionTask: NSObject, NSCopying, ProgressReporting, @unchecked Sendable {  // everything mutable is behind a lock
    /// The state of a task.
    public enum State: Int, Sendable {
        /// It runs, or waits for a connection.
        case running
        /// It was not started, or is suspended.
        case suspended
        /// It was cancelled, and has not completed yet.
        case canceling
        /// It has completed, and does not change any more.
        case completed
    }

    /// What the task loads.
    enum Work {
        case request(URLRequest)
        case upload(URLRequest, UploadedBody)
        case resumedDownload(Data)
        /// A GET whose body is read as it is received.
        case streamed(URLRequest)
        /// A connection, which the subclass makes.
        case connection(URLRequest?)

        var request: URLRequest? {
            switch self {
            case .request(let request), .upload(let request, _), .streamed(let request): request
            case .connection(let request): request
            case .resumedDownload: nil
            }
        }
    }

    /// The body of an upload.
    enum UploadedBody {
        case data(Data)
        case file(URL)
        /// The stream for which the delegate is asked.
        case asked
        case stream(InputStream)
    }

    /// What receives the result of the task.
    enum Completion {
        case delegate
        case data(URLSession.DataHandler)
        case file(URLSession.FileHandler)
        /// A task that awaits it.
        case awaited
    }

    struct Values {
        var state = State.suspended
        var isStarted = false
        /// Whether the last calls about the task were made, or are about to be.
        var hasEnded = false
        /// The request of Core; `nil` before the start.
        var request: Request?
        var response: URLResponse?
        var error: (any Error)?
        var delegate: (any URLSessionTaskDelegate)?
        var earliestBeginDate: Date?
        /// In place of the original, by the delegate's decision about a delayed start.
        var replacement: URLRequest?
        /// The request that was chosen for the last redirect.
        var chosen: URLRequest?
        /// The request while it is offered to classes.
        var offered: URLRequest?
        var description: String?
        var priority = URLSessionTask.defaultPriority
        var expectedToSend = NSURLSessionTransferSizeUnknown
        var expectedToReceive = NSURLSessionTransferSizeUnknown
        var prefersIncrementalDelivery = true
        var progress: ShownProgress?
        var closures: RequestClosures?
        /// Whether the last calls about the task were made.
        var isOver = false
        /// The tasks that await the end, or the body if it is read as it is received.
        var waiter: UnsafeContinuation<Void, Never>?
        var otherWaiters: [UnsafeContinuation<Void, Never>] = []
        /// A body that is read as it is received, until it is taken.
        var body: ReadBody?
        /// The next piece of such a body that is loaded without a network, until it is taken.
        var localPiece: Data?
        /// The complete file of a download.
        var file: URL?
        var data: Data?
        /// The body of a task that delivers it at the end.
        var collected: Data?
        /// Why the task fails, where Core's error does not say so.
        var failure: (any Error)?
        /// The download that has taken the place of a data task.
        var successor: URLSessionDownloadTask?
        var written = WrittenBytes()
        /// The counts of a task without a request of Core.
        var localCounts: (sent: Int64, received: Int64)?
        /// Continues a task without a request of Core that has found itself suspended.
        var resumption: (@Sendable () -> Void)?
        /// The wait for a network before the first exchange.
        var wait: ConnectivityWait?
        /// How long that was, in seconds.
        var waited: TimeInterval = 0
        /// What was measured of a task without a request of Core.
        var metrics: TaskMetrics?
        /// The server about which a delegate was last asked, and whether that has ended the task.
        var askedTrust: (trust: ServerTrust, isCancelled: Bool)?
        var creation = Date()
    }

    /// The number of the task, unique in its session.
    public let taskIdentifier: Int
    let session: URLSession
    let work: Work
    let completion: Completion
    let values: Lock<Values>

    init(_ session: URLSession, _ identifier: Int, _ work: Work, _ completion: Completion) {
        self.session = session
        taskIdentifier = identifier
        self.work = work
        self.completion = completion
        values = Lock(Values())
        super.init()
    }

    /// Makes a task of no session, as a base of those that stand in for tasks in tests: it fails with `URLError.cancelled` when it is resumed.
    public override init() {
        session = .shared
        taskIdentifier = 0
        work = .connection(nil)
        completion = .delegate
        values = Lock(Values())
        super.init()
    }

    /// Returns the task itself: tasks are not copied.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    /// Returns the task itself.
    open override func copy() -> Any { self }

    // MARK: Properties

    /// The request of Curlew that does the work; `nil` before the task is started, and for `data:` and `file:` URLs.
    public var curlew: Request? { values.withLock { $0.request } }

    /// The request with which the task was made; `nil` for one that resumes a download.
    open var originalRequest: URLRequest? { work.request }

    /// The request of the current exchange: after a redirect, the one that followed.
    open var currentRequest: URLRequest? {
        let (request, replacement) = values.withLock { ($0.request, $0.replacement) }
        return (request?.task?.currentRequest).map { shown($0) } ?? replacement ?? work.request
    }

    /// The response; `nil` until its head is received.
    open var response: URLResponse? {
        let (response, request) = values.withLock { ($0.response, $0.request) }
        if let response { return response }
        guard let made = request?.protocolResponse ?? request?.response else { return nil }
        return values.withLock { values in
            // Kept once it can't change any more.
            if values.hasEnded, values.response == nil { values.response = made }
            return values.response ?? made
        }
    }

    /// Why the task has failed; `nil` while it has not.
    open var error: (any Error)? { values.withLock { $0.error } }

    /// The state.
    open var state: State { values.withLock { $0.state } }

    /// The delegate of this task, which is called before the session's; retained until the task has completed. To be set before
    /// ``resume()``; `nil` by default.
    open var delegate: (any URLSessionTaskDelegate)? {
        get { values.withLock { $0.delegate } }
        set { values.withLock { values in if !values.isStarted { values.delegate = newValue } } }
    }

    /// When the task begins at the earliest; `nil`, the default, for at once. To be set before ``resume()``.
    open var earliestBeginDate: Date? {
        get { values.withLock { $0.earliestBeginDate } }
        set { values.withLock { $0.earliestBeginDate = newValue } }
    }

    /// How many bytes the program expects to be sent; −1 (`NSURLSessionTransferSizeUnknown`) by default. Has no effect.
    open var countOfBytesClientExpectsToSend: Int64 {
        get { values.withLock { $0.expectedToSend } }
        set { values.withLock { $0.expectedToSend = newValue } }
    }

    /// How many bytes the program expects to be received; −1 (`NSURLSessionTransferSizeUnknown`) by default. Has no effect.
    open var countOfBytesClientExpectsToReceive: Int64 {
        get { values.withLock { $0.expectedToReceive } }
        set { values.withLock { $0.expectedToReceive = newValue } }
    }

    /// Whether the body is delivered as it comes, `true` by default; with `false` the delegate of a data task gets it in one piece at the
    /// end. To be set before ``resume()``.
    open var prefersIncrementalDelivery: Bool {
        get { values.withLock { $0.prefersIncrementalDelivery } }
        set { values.withLock { $0.prefersIncrementalDelivery = newValue } }
    }

    /// A text for the program's own use; `nil` by default.
    open var taskDescription: String? {
        get { values.withLock { $0.description } }
        set { values.withLock { $0.description = newValue } }
    }

    /// From 0 to 1, ``defaultPriority`` by default: the order in which tasks get connections, and the field `Priority` (RFC 9218) of a task
    /// with another one. To be set before ``resume()``.
    open var priority: Float {
        get { values.withLock { $0.priority } }
        set { values.withLock { $0.priority = newValue } }
    }

    /// The ``priority`` of a task whose priority was not set: 0.5.
    public static let defaultPriority: Float = 0.5
    /// A low ``priority``: 0.25.
    public static let lowPriority: Float = 0.25
    /// A high ``priority``: 0.75.
    public static let highPriority: Float = 0.75

    // MARK: Counts

    private var sessionTask: SessionTask? { values.withLock { $0.request }?.task }

    /// The number of bytes of the body that were sent.
    open var countOfBytesSent: Int64 { sessionTask?.countOfBytesSent ?? values.withLock { $0.localCounts }?.sent ?? 0 }

    /// The number of bytes of the body that were received: decoded while the task runs, as on the wire once it has completed.
    open var countOfBytesReceived: Int64 { sessionTask?.countOfBytesReceived ?? values.withLock { $0.localCounts }?.received ?? 0 }

    /// The length of the body to be sent; −1 (`NSURLSessionTransferSizeUnknown`) if it is unknown.
    open var countOfBytesExpectedToSend: Int64 { sessionTask?.countOfBytesExpectedToSend ?? 0 }

    /// The length of the body to be received; −1 (`NSURLSessionTransferSizeUnknown`) if it is unknown.
    open var countOfBytesExpectedToReceive: Int64 {
        sessionTask?.countOfBytesExpectedToReceive ?? values.withLock { $0.localCounts }?.received ?? 0
    }

    /// The progress of sending the body of an upload, else of receiving the body, in bytes; the total is −1 while it is unknown. Final when
    /// the task completes. Cancelling, pausing and resuming it does so to the task.
    open var progress: Progress {
        let (progress, isNew, request) = values.withLock { values -> (ShownProgress, Bool, Request?) in
            if let progress = values.progress { return (progress, false, nil) }
            let progress = ShownProgress(values.localProgress)
            values.progress = progress
            return (progress, true, values.request)
        }
        let shown = progress.value
        guard isNew else { return shown }
        shown.isCancellable = true
        shown.isPausable = true
        shown.cancellationHandler = { [weak self] in self?.cancel() }
        shown.pausingHandler = { [weak self] in self?.suspend() }
        shown.resumingHandler = { [weak self] in self?.resume() }
        if let request { follow(request, with: progress) }
        return shown
    }

    // MARK: Control

    /// Starts the task, or resumes it after ``suspend()``. Does nothing for one that runs, or was cancelled.
    open func resume() {
        let (isFirst, request, resumption) = values.withLock { values -> (Bool, Request?, (@Sendable () -> Void)?) in
            guard values.state == .suspended else { return (false, nil, nil) }
            values.state = .running
            defer { values.isStarted = true }
            return (!values.isStarted, values.request, values.resumption.take())
        }
        if isFirst { begin() } else { request?.resume() }
        resumption?()
    }

    /// Suspends the task, which then neither sends nor receives. Does nothing unless it runs.
    open func suspend() {
        let request = values.withLock { values -> Request? in
            guard values.state == .running else { return nil }
            values.state = .suspended
            return values.request
        }
        request?.suspend()
    }

    /// Cancels the task, which fails with `URLError.cancelled`, unless it has completed.
    open func cancel() {
        cancel { $0.cancel() }
    }

    /// Cancels the task, and its request with a closure.
    ///
    /// - Parameter resumeData: for the error of a task without a request; `nil`, the default, for none.
    func cancel(resumeData: Data? = nil, _ cancelRequest: (Request) -> Void) {
        let (isFresh, request) = values.withLock { values -> (Bool, Request?) in
            guard values.state == .running || values.state == .suspended else { return (false, nil) }
            values.state = .canceling
            return (true, values.request)
        }
        guard isFresh else { return }
        if let request { return cancelRequest(request) }
        endUnstarted(with: URLError.of(CurlewError.cancelled, self, resumeData: resumeData))
    }

    // MARK: For subclasses

    /// What was measured of the task's exchanges, and what was sent and received in them.
    var measured: (metrics: TaskMetrics, records: [ExchangeRecord]) {
        let (request, known) = values.withLock { ($0.request, $0.metrics) }
        return (known ?? request?.delegate.metrics ?? TaskMetrics(), request?.delegate.exchanges ?? [])
    }

    /// Starts the task, on the thread that resumes it.
    func begin() { startWhenDue() }

    /// Where the task first connects to; `nil` if that is not known.
    var destination: URL? {
        if case .resumedDownload(let data) = work { return DownloadRequest.url(ofResumeData: data) }
        return (values.withLock { $0.replacement } ?? work.request)?.url
    }

    /// The data of the download that the task resumes, which resumes it until there is a request; `nil` if it resumes none, or can't.
    var givenResumeData: Data? {
        guard case .resumedDownload(let data) = work, DownloadRequest.url(ofResumeData: data) != nil else { return nil }
        return data
    }

    /// Makes the connection of a task whose work is one, when it is due.
    func connect(_ request: URLRequest?) {}

    /// Ends a task that has no request, which is not running.
    func endUnstarted(with error: any Error) {
        let resumption = values.withLock { $0.resumption.take() }
        // Released after unlocking, as it may remove a file.
        withExtendedLifetime(resumption) { end(Outcome(error: error)) }
    }
}

/// How a task has ended.
struct Outcome {
    var error: (any Error)?
    var response: URLResponse?
    var data: Data?
    var file: URL?
}

/// The written bytes of a download that are to be reported to the delegate.
struct WrittenBytes {
    var unreported: Int64 = 0
    var total: Int64 = 0
    var expected: Int64 = -1
    var isScheduled = false
}
