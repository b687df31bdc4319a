// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// Receives the outcome of a request, on the callback queue, before its completion blocks.
///
/// Both methods have defaults that do nothing. A method that only nearly matches a requirement's signature is a different method and is
/// never called: the debug log (``RequestsConfiguration/debugLogEnabled``) names each type that uses a default, and the compiler warns of
/// near misses where the conformance is declared in an extension.
public protocol RequestDelegate: AnyObject, Sendable {
    /// Called when the request has succeeded. Optional.
    func requestFinished(_ request: BaseRequest)
    /// Called when the request has failed with its ``BaseRequest/error``. Optional.
    func requestFailed(_ request: BaseRequest)
}

/// An API call as an object: a subclass overrides what describes the call, and an instance can be started any number of times.
///
/// The description is read at each start on the thread that starts the request, and for each retry on the agent's queue. Callbacks run on
/// the ``RequestsConfiguration/callbackQueue``. The agent retains a running request; completion blocks are released after they have run, so
/// they may capture the request. All members are thread-safe; a subclass is responsible for the thread safety of what it adds and therefore
/// declares `@unchecked Sendable`.
open class BaseRequest: CompletableRequest, WaitableRequest, @unchecked Sendable {  // the state is behind a lock
    /// Called with the request when it has finished.
    public typealias CompletionBlock = @Sendable (BaseRequest) -> Void
    /// Adds parts to a multipart form.
    public typealias ConstructingBlock = @Sendable (MultipartFormData) -> Void
    /// Receives the progress of an upload or download.
    public typealias ProgressBlock = @Sendable (Progress) -> Void

    let state: Lock<RequestState>

    /// Creates a request sent by ``RequestAgent/shared`` unless ``agent`` is set.
    public init() {
        state = Lock(RequestState())
    }

    // MARK: Request

    /// The URL: absolute with scheme and host, which is used unchanged, or relative to the base URL. Empty by default.
    ///
    /// Resolved by RFC 3986, section 5, against a base that ends in a slash: with the base `https://h/v1`, `users` is `https://h/v1/users`,
    /// and `/users` is `https://h/users`.
    open func requestUrl() -> String { "" }
    /// The base URL of this request; empty, the default, for that of the configuration.
    open func baseUrl() -> String { "" }
    /// The CDN URL for this request; empty, the default, for that of the configuration.
    open func cdnUrl() -> String { "" }
    /// Whether the CDN URL is used in place of the base URL; `false` by default.
    open func useCDN() -> Bool { false }
    /// The method; GET by default.
    open func requestMethod() -> HTTPMethod { .get }
    /// The argument: a dictionary, or, with ``RequestSerializerType/json``, any JSON or `Encodable` value; `nil` by default.
    open func requestArgument() -> Any? { nil }
    /// How the argument is sent; ``RequestSerializerType/http`` by default.
    open func requestSerializerType() -> RequestSerializerType { .http }
    /// Header fields; `nil` by default. Read again for each retry.
    open func requestHeaderFieldValueDictionary() -> [String: String]? { nil }
    /// User name and password, as first and last element, sent without waiting for a challenge (Basic, RFC 7617); `nil` by default. A
    /// colon in the name, or a control character in either, fails the request, which is not sent.
    open func requestAuthorizationHeaderFieldArray() -> [String]? { nil }
    /// The longest pause between two bytes, in seconds, for each attempt; 60 by default, which leaves it to the session: Foundation's default
    /// can't be distinguished from one that was set. The `idleTimeout` of ``requestOptions`` takes precedence.
    open func requestTimeoutInterval() -> TimeInterval { 60 }
    /// How the session's HTTP cache is used; `nil`, the default, leaves it to the session.
    open func requestCachePolicy() -> URLRequest.CachePolicy? { nil }
    /// Whether the request may use cellular interfaces; `true` by default.
    open func allowsCellularAccess() -> Bool { true }
    /// A request that is sent unchanged: none of the other description is read, and no filter is applied. `nil` by default.
    open func buildCustomUrlRequest() -> URLRequest? { nil }
    /// Changes the request as the request's last step before it is sent, for each attempt, for example to sign it. Not called for a custom
    /// request.
    ///
    /// A large form is not part of `urlRequest`; a body set here replaces it.
    ///
    /// - Throws: the error the request fails with.
    open func filterUrlRequest(_ urlRequest: inout URLRequest) throws {}

    // MARK: Response

    /// The type of object made from the body; ``ResponseSerializerType/json`` by default.
    open func responseSerializerType() -> ResponseSerializerType { .json }
    /// The accepted content types; `nil` for any. By default those of the configuration.
    open func acceptableContentTypes() -> [String]? { agent.configuration.acceptableContentTypes[responseSerializerType()] }
    /// Whether ``responseStatusCode`` indicates success: by default 200 to 299. May be called on the session's queue.
    open func statusCodeValidator() -> Bool { (200...299).contains(responseStatusCode) }
    /// The shape the JSON must have; `nil`, the default, for any. See ``JSONShape``.
    open func jsonValidator() -> Any? { nil }
    /// Validates a response that has passed all other checks; called on the agent's queue.
    ///
    /// - Throws: the error the request fails with.
    open func filterResponse() throws {}
    /// Whether a failed request is to be mocked, if the configuration allows it; by default if the status is 404.
    open func responseMockValidator() -> Bool { responseStatusCode == 404 }
    /// Turns a failure into a success by setting ``responseData``, ``responseJSONObject`` and so on; called on the agent's queue.
    ///
    /// If both bytes and a JSON object are set, ``responseModel(of:decoder:)`` decodes the one set last. Mocked content is not cached.
    /// Returns whether the response was mocked; `false` by default.
    open func responseMockProcessor() -> Bool { false }

    // MARK: Retries

    /// The number of retries of a failed request; 0 by default, unlimited if negative.
    open func requestRetryCount() -> Int { 0 }
    /// The delay before a retry, in seconds; 0 by default.
    open func requestRetryInterval() -> TimeInterval { requestRetryInternval() }
    /// The historical misspelling of ``requestRetryInterval()``: an override has the same effect, but an override of
    /// ``requestRetryInterval()`` takes precedence.
    open func requestRetryInternval() -> TimeInterval { 0 }
    /// The time limit for retries, in seconds from the start: no retry is made whose delay would end later. 0, the default, for no limit.
    open func requestRetryTimeout() -> TimeInterval { 0 }
    /// Whether an attempt is to be retried, as far as count and time allow; by default if it failed or its status is outside 200 to 299.
    /// Called on the agent's queue.
    ///
    /// - Parameters:
    ///   - response: the response received, if any.
    ///   - responseObject: the body, a `Data`, as in ``responseData``; for a download its file, a `URL`.
    ///   - error: the transfer's error; the response has not been validated yet.
    open func requestRetryValidator(_ response: HTTPURLResponse?, responseObject: Any?, error: (any Error)?) -> Bool {
        error != nil || !(200...299).contains(response?.statusCode ?? 0)
    }
    /// Prepares a retry that the validator has requested, and decides whether it takes place; by default immediately that it does. Called
    /// on the agent's queue.
    ///
    /// - Parameters:
    ///   - response: the response received, if any.
    ///   - responseObject: the body, a `Data`, as in ``responseData``; for a download its file, a `URL`.
    ///   - error: the transfer's error, if it has failed.
    ///   - completionHandler: to be called once, from any thread; later calls have no effect. The request waits until it is called
    ///     or the request is stopped.
    open func requestRetryProcessor(
        _ response: HTTPURLResponse?, responseObject: Any?, error: (any Error)?, completionHandler: @escaping @Sendable (Bool) -> Void
    ) {
        completionHandler(true)
    }

    // MARK: Completion

    /// Called when the request has succeeded, before accessories, delegate and blocks, on the agent's queue; for a cached response on the
    /// callback queue. Overrides must call `super`.
    open func requestCompletePreprocessor() {}
    /// Called when the request has succeeded, before delegate and block and on the same queue.
    open func requestCompleteFilter() {}
    /// Called when the request has failed, before accessories, delegate and blocks, on the agent's queue; for a missing cached response
    /// (``CachedRequest/CacheUse/only``) on the callback queue. Overrides must call `super`.
    open func requestFailedPreprocessor() {}
    /// Called when the request has failed, before delegate and block and on the same queue.
    open func requestFailedFilter() {}

    // MARK: Caches

    /// The part of the argument that identifies a cached response, without what changes each time. The whole argument by default.
    open func cacheFileNameFilter(forRequestArgument argument: Any?) -> Any? { argument }

    // MARK: Settings

    // A subclass may override these as well, with a getter and a setter that may be empty.

    /// The agent that sends the request; ``RequestAgent/shared`` by default. Must not be changed while the request runs.
    open var agent: RequestAgent {
        get { state.withLock { $0.agent } }
        set { state.withLock { $0.agent = newValue } }
    }

    /// A number for the caller's use, 0 by default; ``RequestAgent/cancelRequests(tag:)`` finds requests by it.
    open var tag: Int {
        get { state.withLock { $0.tag } }
        set { state.withLock { $0.tag = newValue } }
    }

    /// Values attached by the caller; `nil` by default.
    open var userInfo: [String: any Sendable]? {
        get { state.withLock { $0.userInfo } }
        set { state.withLock { $0.userInfo = newValue } }
    }

    /// The delegate notified of the end; held weakly. ``stop()`` sets it to `nil`.
    open var delegate: (any RequestDelegate)? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { $0.delegate = newValue } }
    }

    /// Runs when the request has succeeded, after the delegate; released afterwards.
    open var successCompletionBlock: CompletionBlock? {
        get { state.withLock { $0.successCompletionBlock } }
        set { state.withLock { $0.successCompletionBlock = newValue } }
    }

    /// Runs when the request has failed, after the delegate; released afterwards.
    open var failureCompletionBlock: CompletionBlock? {
        get { state.withLock { $0.failureCompletionBlock } }
        set { state.withLock { $0.failureCompletionBlock = newValue } }
    }

    /// The accessories, in the order in which they are notified; `nil` until one is added.
    ///
    /// A run notifies the accessories that it was started with. An override adds to those added by ``addAccessory(_:)``, which are notified
    /// after the ones it returns.
    open var requestAccessories: [any RequestAccessory]? {
        get { state.withLock { $0.accessories } }
        set { state.withLock { $0.accessories = newValue } }
    }

    /// Appends an accessory.
    open func addAccessory(_ accessory: any RequestAccessory) {
        state.withLock { $0.accessories = ($0.accessories ?? []) + [accessory] }
    }

    /// Fills a form (RFC 7578) that becomes the body, for any method but GET and HEAD; `nil` by default.
    ///
    /// The argument's pairs become parts before those of the block. Such a request is built on the agent's queue: the block runs there once
    /// for each attempt, and the rest of the description is read there. Like the argument, the block is kept for further starts: if it
    /// captures the request, capture it weakly, or set the block to `nil` at the end.
    open var constructingBodyBlock: ConstructingBlock? {
        get { state.withLock { $0.constructingBodyBlock } }
        set { state.withLock { $0.constructingBodyBlock = newValue } }
    }

    /// Receives the progress of the upload, on the callback queue; released at the end.
    open var uploadProgressBlock: ProgressBlock? {
        get { state.withLock { $0.uploadProgressBlock } }
        set { state.withLock { $0.uploadProgressBlock = newValue } }
    }

    /// Makes the GET request a download to this path: a file, or an existing directory, in which the file is named after the last component
    /// of the URL. `nil` by default.
    ///
    /// An existing file is replaced only when the download has completed. Partial data is kept next to it after a stop, a failure and the
    /// end of the process, however it ended; a start with the same URL and path resumes from it, provided that the server's validator still
    /// matches (``DownloadRequest/DownloadOptions/resumePreviousDownload``). ``responseObject`` is then the file's URL.
    open var resumableDownloadPath: String? {
        get { state.withLock { $0.resumableDownloadPath } }
        set { state.withLock { $0.resumableDownloadPath = newValue } }
    }

    /// Receives the progress of a download, on the callback queue.
    ///
    /// Kept for further starts, which resume a stopped download: if the block captures the request, capture it weakly, or set the block to
    /// `nil` at the end.
    open var resumableDownloadProgressBlock: ProgressBlock? {
        get { state.withLock { $0.resumableDownloadProgressBlock } }
        set { state.withLock { $0.resumableDownloadProgressBlock = newValue } }
    }

    /// The priority among requests waiting for a connection to the same host; ``Priority/default`` by default.
    ///
    /// Any other value is also sent as the header field `Priority` (RFC 9218), unless the request has one, so that the server can take it
    /// into account.
    open var requestPriority: Priority {
        get { state.withLock { $0.requestPriority } }
        set { state.withLock { $0.requestPriority = newValue } }
    }

    /// The settings of this request, such as its timeouts and interceptor, read once for each start, before accessories are notified;
    /// `nil`, the default, for the session's.
    ///
    /// The deadline is that of a start, from the call to the response: with all attempts of the agent and of the interceptor, the delays and
    /// decisions between them, and a refresh of credentials. A start that has a deadline of its own, of its group, or of
    /// ``withDeadline(_:isolation:_:)-(Duration,_,_)`` around it, ends with the earliest; the request then fails with
    /// ``TransferFailure/Kind/deadline`` and is not retried. What is not set is that of the batch or chain that starts the request
    /// (``RequestGroup/requestOptions``). The interceptor adapts the request after ``filterUrlRequest(_:)``, and is asked about retries before
    /// ``requestRetryValidator(_:responseObject:error:)``.
    open var requestOptions: RequestOptions? {
        get { state.withLock { $0.requestOptions } }
        set { state.withLock { $0.requestOptions = newValue } }
    }

    /// Called when an attempt has been built, before it is sent with these options.
    func attemptIsBuilt(_ options: RequestOptions?) {}

    // MARK: Control

    /// Notifies the accessories and has the agent send the request. Has no effect on a running request, or while accessories are being
    /// notified of its start or its stop.
    open func start() {
        guard let start = claimStart() else { return }
        send(start)
    }

    /// Stops the request: no further callbacks run, and the delegate is released. Accessories that were notified of the start are notified
    /// of the stop.
    ///
    /// A download's partial data is kept, and the next start resumes from it. Calling this in a callback of the request suppresses the
    /// callbacks that have not run yet. A finished request keeps its result.
    open func stop() {
        agent.cancel(self) { delegate = nil }
    }

    /// Suspends the transfer until ``resume()``: nothing is sent or received. Has no effect while no transfer runs.
    public func suspend() {
        state.withLock { $0.run }?.transfer?.suspend()
    }

    /// Resumes a suspended transfer.
    public func resume() {
        state.withLock { $0.run }?.transfer?.resume()
    }

    // MARK: Result

    /// The body of the response, empty if it has none; `nil` without a response, and for a successful download.
    ///
    /// If the transfer of the body has failed, the part that was received until then; for a download, which keeps that part on disk, `nil`.
    /// A download whose status was rejected has the body of that response here, up to ``SessionConfiguration/maximumBodySize``.
    open var responseData: Data? {
        get { state.withLock { $0.result.data } }
        set {
            state.withLock {
                $0.result.data = newValue
                $0.result.givenJSON = nil
            }
        }
    }
    /// The body as text, in the encoding that a byte order mark, the charset of its content type or an XML declaration names; in UTF-8
    /// without any, and for an unknown one. `nil` if the bytes are invalid in it, and where ``responseData`` is.
    open var responseString: String? {
        get { state.withLock { $0.result.string } }
        set { state.withLock { $0.result.givenString = newValue } }
    }
    /// The object made by the serializer: `Data`, JSON, an `XMLParser`; for a download the file's `URL`.
    open var responseObject: Any? {
        get { state.withLock { $0.result.object } }
        set {
            state.withLock {
                $0.result.object = newValue
                $0.result.givenJSON = newValue is [String: Any] || newValue is [Any] ? newValue : nil
            }
        }
    }
    /// The JSON object, if the serializer is ``ResponseSerializerType/json``.
    open var responseJSONObject: Any? {
        get { state.withLock { $0.result.jsonObject } }
        set {
            state.withLock {
                $0.result.jsonObject = newValue
                $0.result.givenJSON = newValue
            }
        }
    }
    /// The response's status and header fields; `nil` before there is one. Set it when mocking a failure.
    open var response: HTTPURLResponse? {
        get { state.withLock { $0.result.response } }
        set { state.withLock { $0.result.response = newValue } }
    }
    /// The error the request failed with; `nil` if it has not failed.
    open var error: (any Error)? { state.withLock { $0.result.error } }

    /// The JSON object that was set, which ``responseModel(of:decoder:)`` decodes instead of the bytes.
    var givenJSON: Any? { state.withLock { $0.result.givenJSON } }

    /// Called before the agent sends the request by itself, and before the network's response is delivered and accessories are notified:
    /// subclasses stop reporting a cached one.
    func stopReportingCachedResponse() {}
}
