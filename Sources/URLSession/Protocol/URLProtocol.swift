// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading

/// Loads requests in place of the network: subclass it, and register the class or list it in a configuration's `protocolClasses`.
///
/// The first class that accepts a task loads it. Not a subclass of Foundation's class of this name, whose `task` is of another type; classes
/// of Foundation's can be in `protocolClasses`, too, and are asked with the request. Stream tasks and WebSockets are not offered, nor are
/// `data:` and `file:` URLs. Requests with other schemes than `http` and `https` are offered, and fail with `URLError.unsupportedURL` if no
/// class accepts them. A session calls its classes on one thread at a time; one that waits there holds up the others.
/// One that reports nothing for the request's timeout fails the task with `URLError.timedOut`.
///
/// What differs on Linux: a subclass that overrides `init(request:cachedResponse:client:)` has to declare it `required`; the bytes of a body
/// are the request's `httpBody`, and a body from a file or a stream is its `httpBodyStream`.
open class URLProtocol: NSObject {
    private static let registry = Lock<[AnyClass]>([])

    /// The last registered first.
    static var registeredClasses: [AnyClass] { registry.withLock { $0 } }

    private let loaded: URLRequest
    private let cached: CachedURLResponse?
    private let receiver: (any URLProtocolClient)?
    private var owner: URLSessionTask?

    /// Creates an instance for a request. Sessions call it with the ``canonicalRequest(for:)`` of a task's current request.
    ///
    /// - Parameters:
    ///   - request: the request to load.
    ///   - cachedResponse: a stored response; sessions pass `nil`.
    ///   - client: receives what is loaded.
    public required init(request: URLRequest, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?) {
        loaded = request
        cached = cachedResponse
        receiver = client
        super.init()
    }

    /// Creates an instance for the current request of a task; one without a request counts as one for `about:blank`.
    ///
    /// Sessions call ``init(request:cachedResponse:client:)``, and set the ``task`` after it.
    public convenience init(task: URLSessionTask, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?) {
        let request = task.currentRequest ?? URLRequest(url: URL(string: "about:blank") ?? URL(fileURLWithPath: "/"))
        self.init(request: request, cachedResponse: cachedResponse, client: client)
        owner = task
    }

    /// Returns an instance that loads the request of a task.
    static func make(_ request: URLRequest, of task: URLSessionTask?, _ client: any URLProtocolClient) -> URLProtocol {
        let instance = self.init(request: canonicalRequest(for: request), cachedResponse: nil, client: client)
        instance.owner = task
        return instance
    }

    /// Receives what is loaded, on any thread.
    open var client: (any URLProtocolClient)? { receiver }

    /// The request to load.
    open var request: URLRequest { loaded }

    /// The stored response with which the instance was created.
    open var cachedResponse: CachedURLResponse? { cached }

    /// The task that is loaded; `nil` for an instance that was made with a request.
    open var task: URLSessionTask? { owner }

    // MARK: For subclasses

    /// Whether the class loads a request: to be overridden. `false` by default.
    open class func canInit(with request: URLRequest) -> Bool { false }

    /// Whether the class loads a task; by default, what ``canInit(with:)-(URLRequest)`` says of its current request.
    open class func canInit(with task: URLSessionTask) -> Bool {
        guard let request = task.offeredRequest ?? task.currentRequest else { return false }
        return canInit(with: request)
    }

    /// Returns the request that an instance loads in place of a request; by default the same.
    open class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    /// Whether two requests have the same stored response. Not asked; by default, whether they are equal.
    open class func requestIsCacheEquivalent(_ a: URLRequest, to b: URLRequest) -> Bool { a == b }

    /// Starts the load: to be overridden. Fails with `URLError.unsupportedURL` by default.
    open func startLoading() {
        client?.urlProtocol(self, didFailWithError: URLError(.unsupportedURL))
    }

    /// The load has ended, or is no longer wanted; called once for each instance that was started. Does nothing by default.
    open func stopLoading() {}

    // MARK: Registration

    /// Offers requests to a class: those of ``URLSession/shared``, and those of sessions whose configuration is made from now on. The last
    /// registered class is asked first. Returns `false` for a class that is no `URLProtocol`.
    @discardableResult
    open class func registerClass(_ protocolClass: AnyClass) -> Bool {
        guard protocolClass is URLProtocol.Type || protocolClass is CurlewURLLoading.URLProtocol.Type else { return false }
        registry.withLock { classes in
            classes.removeAll { $0 == protocolClass }
            classes.insert(protocolClass, at: 0)
        }
        return true
    }

    /// Undoes ``registerClass(_:)``; requests that the class loads continue.
    open class func unregisterClass(_ protocolClass: AnyClass) {
        registry.withLock { classes in classes.removeAll { $0 == protocolClass } }
    }

    // MARK: Properties of requests

    /// The value that was stored with a request; `nil` for none.
    open class func property(forKey key: String, in request: URLRequest) -> Any? {
        RequestProperties.value(forKey: key, in: request)
    }

    /// Stores a value with a request, under a key: sessions keep it, also in redirects, and do not send it.
    open class func setProperty(_ value: Any, forKey key: String, in request: NSMutableURLRequest) {
        RequestProperties.set(value, forKey: key, in: request)
    }

    /// Removes what was stored with a request under a key.
    open class func removeProperty(forKey key: String, in request: NSMutableURLRequest) {
        RequestProperties.set(nil, forKey: key, in: request)
    }
}

@available(*, unavailable)
extension URLProtocol: @unchecked Sendable {}  // unavailable: an instance belongs to its load

extension URLProtocol: ProtocolLoader {}

/// Receives what a ``URLProtocol`` has loaded: implemented by sessions. Its methods may be called on any thread.
public protocol URLProtocolClient: NSObjectProtocol, Sendable {
    /// The load is redirected, and ends here: the task's delegate is asked, and the request is then loaded, also if another class, or none,
    /// accepts it.
    func urlProtocol(_ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse)

    /// A stored response is the response, with its body, and the load ends here.
    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse)

    /// The response: the task's ``URLSessionTask/response`` is this object. Only the first counts. It is not stored in a cache by the session.
    func urlProtocol(_ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy)

    /// A piece of the body.
    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data)

    /// The end of the body. What comes after it is ignored.
    func urlProtocolDidFinishLoading(_ protocol: URLProtocol)

    /// The load has failed, and so does the task, with this error. What comes after it is ignored.
    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error)

    /// The task's delegate and then the session's are asked for an answer, with which a method of the challenge's sender is called:
    /// `performDefaultHandling` if none answers.
    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge)

    /// A challenge needs no answer any more.
    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge)
}
