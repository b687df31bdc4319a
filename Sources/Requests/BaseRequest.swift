// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// Is told how a request ended, on the callback queue, before its blocks.
///
/// Both methods have defaults that do nothing. A method that nearly has the signature of one is another method, which is never called: the
/// debug log (``RequestsConfiguration/debugLogEnabled``) names each type that leaves one to its default, and the compiler warns of near
/// misses where the conformance is an extension.
public protocol RequestDelegate: AnyObject, Sendable {
    /// The request has succeeded. Optional.
    func requestFinished(_ request: BaseRequest)
    /// The request has failed with its ``BaseRequest/error``. Optional.
    func requestFailed(_ request: BaseRequest)
}

/// A call of an API as an object: a subclass overrides what makes the call, and an instance is started, as often as one likes.
///
/// What describes the request is asked anew at each start, on the thread that starts it, and for each retry, on the agent's queue. It
/// calls back on the ``RequestsConfiguration/callbackQueue``. A running request is kept alive by its agent; the blocks that tell of
/// its end are released when they have run, so that they may capture the request. All members may be used from any thread; what a subclass adds is its own matter,
/// which is why it says `@unchecked Sendable`.
open class BaseRequest: RunnableRequest, @unchecked Sendable {  // the state is behind a lock
    /// Is given the request when it is over.
    public typealias CompletionBlock = @Sendable (BaseRequest) -> Void
    /// Puts parts into a form.
    public typealias ConstructingBlock = @Sendable (MultipartFormData) -> Void
    /// Is told how much was sent or has come.
    public typealias ProgressBlock = @Sendable (Progress) -> Void

    let state: Lock<RequestState>

    /// Makes a request that ``RequestAgent/shared`` will send, unless ``agent`` is set.
    public init() {
        state = Lock(RequestState())
    }

    // MARK: What is sent

    /// The URL: a whole one with scheme and host, which is used as it is; or one relative to the base URL. Empty by default.
    ///
    /// Resolved as RFC 3986, section 5, has it, against a base that ends in a slash: with the base `https://h/v1`, `users` is
    /// `https://h/v1/users`, and `/users` is `https://h/users`.
    open func requestUrl() -> String { "" }
    /// The base URL of this request; empty, the default, for that of the configuration.
    open func baseUrl() -> String { "" }
    /// The CDN's URL for this request; empty, the default, for that of the configuration.
    open func cdnUrl() -> String { "" }
    /// Whether the CDN's URL takes the base URL's place; `false` by default.
    open func useCDN() -> Bool { false }
    /// The method; GET by default.
    open func requestMethod() -> HTTPMethod { .get }
    /// The argument: a dictionary, or, with ``RequestSerializerType/json``, anything JSON can hold or `Encodable`; `nil` by default.
    open func requestArgument() -> Any? { nil }
    /// How the argument is sent; ``RequestSerializerType/http`` by default.
    open func requestSerializerType() -> RequestSerializerType { .http }
    /// Header fields; `nil` by default. Asked anew for each retry.
    open func requestHeaderFieldValueDictionary() -> [String: String]? { nil }
    /// User name and password, first and last, that are sent without being asked for (Basic, RFC 7617); `nil` by default.
    open func requestAuthorizationHeaderFieldArray() -> [String]? { nil }
    /// The longest pause between two bytes, in seconds, for each attempt; 60 by default, which leaves it to the session.
    open func requestTimeoutInterval() -> TimeInterval { 60 }
    /// How the session's HTTP cache takes part; `nil`, the default, leaves it to the session.
    open func requestCachePolicy() -> URLRequest.CachePolicy? { nil }
    /// Whether the request may go over cellular interfaces; `true` by default.
    open func allowsCellularAccess() -> Bool { true }
    /// A request that is sent as it is: of what else is described here nothing is asked, and no filter changes it. `nil` by default.
    open func buildCustomUrlRequest() -> URLRequest? { nil }
    /// Changes the request at last, for each attempt: to sign it. Not called for a custom request.
    ///
    /// A large form is not in the request; a body that is set here is sent in its place.
    ///
    /// - Throws: what the request is to fail with.
    open func filterUrlRequest(_ urlRequest: inout URLRequest) throws {}

    // MARK: What comes back

    /// What is made of the body; ``ResponseSerializerType/json`` by default.
    open func responseSerializerType() -> ResponseSerializerType { .json }
    /// Which content types are accepted; `nil` for any. By default what the configuration says.
    open func acceptableContentTypes() -> [String]? { agent.configuration.acceptableContentTypes[responseSerializerType()] }
    /// Whether ``responseStatusCode`` is one of a success: by default 200 to 299. May be called on the session's queue.
    open func statusCodeValidator() -> Bool { (200...299).contains(responseStatusCode) }
    /// The shape that the JSON has to have; `nil`, the default, for any. See ``JSONShape``.
    open func jsonValidator() -> Any? { nil }
    /// Judges an answer that has passed the other checks; on the agent's queue, only for successes.
    ///
    /// - Throws: what the request is to fail with.
    open func filterResponse() throws {}
    /// Whether a failed request is to be mocked, if the configuration allows it; by default if the status is 404.
    open func responseMockValidator() -> Bool { responseStatusCode == 404 }
    /// Makes a success of a failure, by setting ``responseData``, ``responseJSONObject`` and so on; on the agent's queue.
    ///
    /// Of bytes and JSON object ``responseModel(of:decoder:)`` decodes the one that was set last. Nothing of it is cached. Returns whether
    /// it did; `false` by default.
    open func responseMockProcessor() -> Bool { false }

    // MARK: Trying again

    /// How often a failed request is tried again; 0 by default, a negative number for ever.
    open func requestRetryCount() -> Int { 0 }
    /// How long it waits before it is tried again, in seconds; 0 by default.
    open func requestRetryInterval() -> TimeInterval { requestRetryInternval() }
    /// The same as it was once spelled: overriding it has the same effect as overriding ``requestRetryInterval()``, which goes before.
    open func requestRetryInternval() -> TimeInterval { 0 }
    /// For how long it is tried again, in seconds from the start: not if the wait would end later. 0, the default, for ever.
    open func requestRetryTimeout() -> TimeInterval { 0 }
    /// Whether an attempt is to be repeated, as far as count and time allow; by default if it has failed or its status is not one of a
    /// success (200 to 299). On the agent's queue.
    ///
    /// - Parameters:
    ///   - response: what has come.
    ///   - responseObject: the body as it came, a `Data`; a download's file, a `URL`.
    ///   - error: why the transfer failed: the answer was not judged yet.
    open func requestRetryValidator(_ response: HTTPURLResponse?, responseObject: Any?, error: (any Error)?) -> Bool {
        error != nil || !(200...299).contains(response?.statusCode ?? 0)
    }
    /// Prepares for another attempt that the validator has asked for, and says whether it shall take place; by default at once that it
    /// shall. On the agent's queue.
    ///
    /// - Parameter completionHandler: to be called once, from any thread; later calls do nothing. As long as it is not called the request
    ///   waits, until it is stopped.
    open func requestRetryProcessor(
        _ response: HTTPURLResponse?, responseObject: Any?, error: (any Error)?, completionHandler: @escaping @Sendable (Bool) -> Void
    ) {
        completionHandler(true)
    }

    // MARK: When it is over

    /// Called when the request has succeeded, before anybody is told, on the agent's queue. Overriding it calls `super`.
    open func requestCompletePreprocessor() {}
    /// Called when the request has succeeded, before delegate and block, where those are called.
    open func requestCompleteFilter() {}
    /// Called when the request has failed, before anybody is told, on the agent's queue. Overriding it calls `super`.
    open func requestFailedPreprocessor() {}
    /// Called when the request has failed, before delegate and block, where those are called.
    open func requestFailedFilter() {}

    // MARK: Caches

    /// The part of the argument by which a cached answer is found: without what changes each time. The argument itself by default.
    open func cacheFileNameFilter(forRequestArgument argument: Any?) -> Any? { argument }

    // MARK: What the user sets

    // A subclass may override these too: with a getter, and a setter that may be empty.

    /// Sends the request; ``RequestAgent/shared`` by default. Not to be changed while the request runs.
    open var agent: RequestAgent {
        get { state.withLock { $0.agent } }
        set { state.withLock { $0.agent = newValue } }
    }

    /// A number of the user's, 0 by default; ``RequestAgent/cancelRequests(tag:)`` finds requests by it.
    open var tag: Int {
        get { state.withLock { $0.tag } }
        set { state.withLock { $0.tag = newValue } }
    }

    /// Values of the user's that belong to the request; `nil` by default.
    open var userInfo: [String: any Sendable]? {
        get { state.withLock { $0.userInfo } }
        set { state.withLock { $0.userInfo = newValue } }
    }

    /// Is told of the end; not kept alive. ``stop()`` sets it to `nil`.
    open var delegate: (any RequestDelegate)? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { $0.delegate = newValue } }
    }

    /// Runs when the request has succeeded, behind the delegate; released then.
    open var successCompletionBlock: CompletionBlock? {
        get { state.withLock { $0.successCompletionBlock } }
        set { state.withLock { $0.successCompletionBlock = newValue } }
    }

    /// Runs when the request has failed, behind the delegate; released then.
    open var failureCompletionBlock: CompletionBlock? {
        get { state.withLock { $0.failureCompletionBlock } }
        set { state.withLock { $0.failureCompletionBlock = newValue } }
    }

    /// The accessories, in the order in which they are told; `nil` as long as none was added.
    ///
    /// An override adds to those that ``addAccessory(_:)`` has added, which are told behind the ones it returns.
    open var requestAccessories: [any RequestAccessory]? {
        get { state.withLock { $0.accessories } }
        set { state.withLock { $0.accessories = newValue } }
    }

    /// Adds an accessory behind those that are there.
    open func addAccessory(_ accessory: any RequestAccessory) {
        state.withLock { $0.accessories = ($0.accessories ?? []) + [accessory] }
    }

    /// Fills a form (RFC 7578) that becomes the body, of any method but GET and HEAD; `nil` by default.
    ///
    /// The argument's pairs become parts in front. Such a request is built on the agent's queue: the block runs there, once for each
    /// attempt, and so does what else describes the request. Like the argument, it is kept for further starts: a block that captures the
    /// request captures it weakly, or is set to `nil` at the end.
    open var constructingBodyBlock: ConstructingBlock? {
        get { state.withLock { $0.constructingBodyBlock } }
        set { state.withLock { $0.constructingBodyBlock = newValue } }
    }

    /// Is told how much of the body was sent, on the callback queue; released at the end.
    open var uploadProgressBlock: ProgressBlock? {
        get { state.withLock { $0.uploadProgressBlock } }
        set { state.withLock { $0.uploadProgressBlock = newValue } }
    }

    /// Makes a download of a GET request: the path of the file, or of a directory that is there, in which the file is named as the last
    /// part of the URL. `nil` by default.
    ///
    /// A file that is there is replaced when the download is whole, and not before. What has come is kept beside it after a stop, a
    /// failure and the end of the process, whatever that was; a start for the same URL and path resumes from there if the server still has
    /// the same (``DownloadRequest/DownloadOptions/resumePreviousDownload``). ``responseObject`` is the file's URL then.
    open var resumableDownloadPath: String? {
        get { state.withLock { $0.resumableDownloadPath } }
        set { state.withLock { $0.resumableDownloadPath = newValue } }
    }

    /// Is told how much of a download has come, on the callback queue.
    ///
    /// Kept for further starts, which resume what was stopped: a block that captures the request captures it weakly, or is set to `nil` at
    /// the end.
    open var resumableDownloadProgressBlock: ProgressBlock? {
        get { state.withLock { $0.resumableDownloadProgressBlock } }
        set { state.withLock { $0.resumableDownloadProgressBlock = newValue } }
    }

    /// Whether the request goes before others that wait for a connection to the same host; ``RequestPriority/default`` by default.
    ///
    /// Another one is sent as the header field `Priority` (RFC 9218), unless the request has one, so that the server may know too.
    open var requestPriority: RequestPriority {
        get { state.withLock { $0.requestPriority } }
        set { state.withLock { $0.requestPriority = newValue } }
    }

    // MARK: Control

    /// Tells the accessories, and has the agent send the request. A request that runs is left alone.
    open func start() {
        guard let start = claimStart() else { return }
        send(start)
    }

    /// Ends the request: no callback follows, and the delegate is let go of. The accessories are told.
    ///
    /// Of a download what has come is kept, and the next start goes on from there. From a callback of this request it makes the callbacks
    /// that are left stay away. A request that is over is left as it is.
    open func stop() {
        let (isOver, isBeingStopped) = state.withLock { state in
            defer { if !state.isOver { state.stage = .stopping } }
            return (state.isOver, state.stage == .stopping)
        }
        // By another thread, or the accessory that is told of it.
        if isBeingStopped { return }
        if !isOver { toggleAccessoriesWillStop() }
        delegate = nil
        agent.cancelRequest(self)
        if !isOver { toggleAccessoriesDidStop() }
    }

    /// Holds the transfer up, until ``resume()``: nothing is sent or received. Without effect while none runs.
    public func suspend() {
        state.withLock { $0.run }?.transfer?.suspend()
    }

    /// Lets a transfer go on that was held up.
    public func resume() {
        state.withLock { $0.run }?.transfer?.resume()
    }

    // MARK: What it brought

    /// The body of the answer; `nil` before there is one, and for a download that succeeded.
    open var responseData: Data? {
        get { state.withLock { $0.answer.data } }
        set {
            state.withLock {
                $0.answer.data = newValue
                $0.answer.givenJSON = nil
            }
        }
    }
    /// The body as text, in the charset of its content type, else in UTF-8.
    open var responseString: String? {
        get { state.withLock { $0.answer.string } }
        set { state.withLock { $0.answer.givenString = newValue } }
    }
    /// What the serializer has made of the body: `Data`, JSON, an `XMLParser`; the file's `URL` of a download.
    open var responseObject: Any? {
        get { state.withLock { $0.answer.object } }
        set {
            state.withLock {
                $0.answer.object = newValue
                $0.answer.givenJSON = newValue is [String: Any] || newValue is [Any] ? newValue : nil
            }
        }
    }
    /// The JSON, if that is what the serializer makes.
    open var responseJSONObject: Any? {
        get { state.withLock { $0.answer.jsonObject } }
        set {
            state.withLock {
                $0.answer.jsonObject = newValue
                $0.answer.givenJSON = newValue
            }
        }
    }
    /// The answer's status and header fields; `nil` before there is one. To be set where a failure is mocked.
    open var response: HTTPURLResponse? {
        get { state.withLock { $0.answer.response } }
        set { state.withLock { $0.answer.response = newValue } }
    }
    /// Why the request failed; `nil` for one that did not.
    open var error: (any Error)? { state.withLock { $0.answer.error } }

    /// The JSON object that was set, which ``responseModel(of:decoder:)`` decodes in place of the bytes.
    var givenJSON: Any? { state.withLock { $0.answer.givenJSON } }

    /// Called when the network's answer is going to be delivered, before accessories: for who has a cached one in its place until then.
    func networkAnswerWillBeDelivered() {}
}
