// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewCookies
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading
import Dispatch

/// The settings of a session: the header fields of its requests, their transfer options, its connections, storages and queues.
///
/// The members of ``TransferOptions`` and ``TransportConfiguration`` are its own as well: `configuration.idleTimeout = .seconds(5)`.
public struct SessionConfiguration: Sendable {
    /// The options of each transfer: timeouts, HTTP version, TLS, proxy, decoding.
    public var options = TransferOptions()

    /// How the session uses connections.
    public var connections = TransportConfiguration()

    /// Header fields that are added to requests without a field of that name; none by default.
    public var headers: HTTPHeaders = [:]

    /// Which redirects are followed, and with which header fields.
    public var redirects = RedirectPolicy() {
        didSet { Redaction(headers: redirects.sensitiveHeaders).register() }
    }

    /// Header fields and query items to redact in addition to those that always are; none by default.
    ///
    /// Their values are redacted in descriptions, errors, logs and ``Request/cURLDescription(redacting:)`` of all sessions from the moment
    /// they are set: an error or a header field does not know its session. The fields in ``RedirectPolicy/sensitiveHeaders`` are redacted
    /// too.
    public var redaction = Redaction() {
        didSet { redaction.register() }
    }

    /// The largest body that a data or upload request buffers in memory, in bytes after decoding; 64 MiB by default.
    ///
    /// A larger body fails with ``TransferFailure/Kind/tooLarge``: at the head if its `Content-Length` exceeds the limit (by 64 KiB if it
    /// has a content coding), else when the limit is exceeded. Downloads and streamed bodies have no limit.
    public var maximumBodySize = 64 * 1024 * 1024

    /// Observers of the session's requests; none by default.
    public var eventMonitors: [any EventMonitor] = []

    /// Carry contexts of the callers, such as task-local values, to the code that is called for their requests; none by default.
    public var contextCarriers: [any ContextCarrier] = []

    /// Take part in each exchange of the session's requests, to trace, measure or log it; none by default.
    ///
    /// The context carrier and the monitor of an instrument are installed with it, so that one line is enough:
    /// `configuration.instruments.append(…)`.
    public var instruments: [any ExchangeInstrument] = []

    /// Transports that layers above Core put in front of the session's, the first one outermost; none by default.
    package var layers: [any TransportLayer] = []

    /// Has to agree to each retry that a retrier has decided on; `nil`, the default, for none.
    package var retryGate: (any RetryGate)?

    /// The clock of delays before retries, deadlines and grace periods; `nil`, the default, for the system's.
    package var clock: (any SessionClock)?

    /// Whether ``LayerMonitor`` is notified of the requests' events; `false` by default.
    package var notifiesLayerMonitor = false

    /// The cookies of the session (RFC 6265bis); with `nil`, the default, ``cookieStorage`` counts, and without that cookies are neither sent
    /// nor stored.
    ///
    /// In memory with `.memory`, in a file that several processes may share with `.file(_:)`. Sessions with the same object share its cookies.
    /// They are those of all requests, redirects and handshakes of WebSockets, unless a request's `httpShouldHandleCookies` is `false`.
    public var cookies: CookieStore? {
        get { storages.cookieStore }
        set { storages.cookieStore = newValue }
    }

    /// The hosts that are connected to over TLS only, as they have asked for with `Strict-Transport-Security` (RFC 6797); with `nil`, the
    /// default, the field is ignored.
    ///
    /// In memory with `.memory`, in a file with `.file(_:)`. A request to a known host with the scheme `http`, the first, a redirect or a retry,
    /// is made with `https`. There is no list of hosts to begin with. The certificates of known hosts are evaluated even if
    /// ``TLSOptions/verifiesServer`` or ``ServerTrustPolicy/disableEvaluation`` says otherwise; policies that pin or evaluate themselves count.
    /// Hosts are noted only if their certificate is valid and names them.
    public var hsts: HSTSStore? {
        get { storages.hsts }
        set { storages.hsts = newValue }
    }

    /// Foundation's storage as the place of the session's cookies, unless there is a store in ``cookies``; `nil`, the default, for none.
    public var cookieStorage: HTTPCookieStorage? {
        get { storages.cookies }
        set { storages.cookies = newValue }
    }

    /// Which cookies of responses are stored; by default those of the domain of the request's `mainDocumentURL`, or all without one.
    ///
    /// A storage whose own policy is `never` stores none.
    public var cookieAcceptPolicy = HTTPCookie.AcceptPolicy.onlyFromMainDocumentDomain

    /// Whether stored cookies are sent; `true` by default.
    public var sendsCookies = true

    /// The cache for responses (RFC 9111); with `nil`, the default, ``urlCache`` counts, and without that none are cached.
    ///
    /// In memory with `.memory()`, on disk with `.disk()` of the product CurlewCaching, in a store of your own with `.storage(_:)`. Sessions
    /// with the same cache share its responses. Responses are stored as HTTP allows a private cache, those to requests with `Authorization`
    /// for the same credentials only. Downloads and streamed requests fill the cache as well, and are served from it. The closure
    /// `dataTaskWillCacheResponse` is not called.
    public var cache: ResponseCache? {
        get { storages.responses }
        set { storages.responses = newValue }
    }

    /// Foundation's cache, as the store of a cache under the same rules as ``cache``, which has precedence; `nil`, the default, for none.
    ///
    /// It has room for one variant of a response. On Linux it does not distinguish URLs by their query: those with one are cached under
    /// other keys, which ``Session/cachedResponse(for:)`` and ``Session/removeCachedResponse(for:)`` find and the cache's own methods do not.
    public var urlCache: URLCache? {
        get { storages.cache }
        set { storages.cache = newValue }
    }

    /// Whether responses are cached.
    package var hasCache: Bool { cache != nil || urlCache != nil }

    /// The cache policy of requests that have none of their own; `useProtocolCachePolicy` by default.
    public var cachePolicy = CachePolicy.useProtocolCachePolicy

    /// Whether requests, raw connections and WebSockets may use cellular interfaces; `true` by default.
    ///
    /// If not, and the system's default route is over a cellular interface, they use another interface with a default route; without one
    /// they fail with ``TransferFailure/Kind/cellularNotAllowed``.
    public var allowsCellularAccess = true

    /// `URLProtocol` classes that load requests in place of the network; the first that accepts a request loads it. None by default.
    ///
    /// They are called on a queue of the session. The class that accepts a request is asked for its canonical form, which its instance
    /// loads: Foundation requires that a class overrides `canonicalRequest(for:)`. Their responses are not cached, and their redirects and
    /// challenges are handled like those of the network, but that a redirect is followed with the request that the class gives;
    /// ``SessionConfiguration/options`` do not apply to them. Requests with other schemes than those of HTTP are offered as well.
    public var protocolClasses: [URLProtocol.Type] = []

    /// The classes of a layer above, in place of ``protocolClasses``; `nil`, the default, for those.
    package var protocolSource: (any ProtocolSource)?

    /// The storage from which challenges are answered, and in which accepted credentials are stored unless their persistence is `none`;
    /// `nil`, the default, for neither.
    ///
    /// A request's own credential has precedence.
    public var credentialStorage: URLCredentialStorage? {
        get { storages.credentials }
        set { storages.credentials = newValue }
    }

    /// Signs each exchange of the requests that have no ``RequestOptions/signer``; `nil`, the default, for none. Each request is signed for
    /// the origin of its own URL, whichever that is.
    public var signer: (any ExchangeSigner)?

    /// The queue of handlers that are added without one; `.main` by default.
    ///
    /// On Linux the main queue runs only under `RunLoop.main`, `dispatchMain()` or an asynchronous `@main`: set another queue in a program
    /// without one of those.
    public var callbackQueue: DispatchQueue = .main

    /// The directory for downloads without a destination URL and for large multipart forms; the system's temporary directory by default.
    public var temporaryDirectory = FileManager.default.temporaryDirectory

    private var storages = Storages()

    /// Lists the system's network interfaces; called only if cellular access is not allowed.
    var interfaces: any InterfaceProvider = SystemInterfaces()

    /// Creates a configuration with the defaults.
    public init() {}
}

// MARK: - Objects with secrets

extension SessionConfiguration {
    /// Storages, compared by identity. Redacted in reflection, which would find cookies, responses and passwords in them.
    struct Storages: Hashable, Sendable, CustomReflectable {
        var cookies: HTTPCookieStorage?
        var cookieStore: CookieStore?
        var hsts: HSTSStore?
        var cache: URLCache?
        var responses: ResponseCache?
        var credentials: URLCredentialStorage?

        private var identifiers: [ObjectIdentifier?] {
            [
                cookies.map { ObjectIdentifier($0) }, cookieStore.map { ObjectIdentifier($0) }, hsts.map { ObjectIdentifier($0) },
                cache.map { ObjectIdentifier($0) }, responses.map { ObjectIdentifier($0) },
                credentials.map { ObjectIdentifier($0) },
            ]
        }

        var customMirror: Mirror {
            .redacted(
                self,
                [
                    "cookies": cookies != nil || cookieStore != nil, "hsts": hsts != nil, "cache": cache != nil || responses != nil,
                    "credentials": credentials != nil,
                ])
        }

        static func == (lhs: Storages, rhs: Storages) -> Bool { lhs.identifiers == rhs.identifiers }

        func hash(into hasher: inout Hasher) { hasher.combine(identifiers) }
    }
}
