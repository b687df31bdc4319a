// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// How a session works: what its requests carry, how they travel, and where their answers arrive.
///
/// The members of ``TransferOptions`` and ``TransportConfiguration`` can be read and set here too: `configuration.idleTimeout = .seconds(5)`.
@dynamicMemberLookup
public struct SessionConfiguration: Sendable {
    /// How each request travels: timeouts, version of HTTP, TLS, proxy, decoding.
    public var options = TransferOptions()

    /// How the session uses connections.
    public var connections = TransportConfiguration()

    /// Header fields that every request carries unless it has a field of that name itself; none by default.
    public var headers: HTTPHeaders = [:]

    /// What is done with redirects.
    public var redirects = RedirectPolicy() {
        didSet { Redaction(headers: redirects.sensitiveHeaders).register() }
    }

    /// Which header fields and query items are secret, beside those that always are; none by default.
    ///
    /// The values are left out of descriptions, errors, logs and ``Request/cURLDescription(redacting:)``, of this session and of others,
    /// from the moment they are set. The fields in ``RedirectPolicy/sensitiveHeaders`` count as well.
    public var redaction = Redaction() {
        didSet { redaction.register() }
    }

    /// The largest body that a data or upload request takes into memory, in bytes after decoding; 64 MiB by default.
    ///
    /// A larger one fails with ``TransferFailure/Kind/tooLarge``, before a byte of it is received if its length is announced (for a body
    /// with a content coding: with 64 KiB to spare). Downloads and streamed bodies have no limit.
    public var maximumBodySize = 64 * 1024 * 1024

    /// Are told what happens to the session's requests; none by default.
    public var eventMonitors: [any EventMonitor] = []

    /// Whether what happens to requests is posted as the notifications of `Notification.Name.Task`, `false` by default: that costs each
    /// request some microseconds, whether anybody observes it or not.
    public var postsNotifications = false

    /// Where cookies are kept (RFC 6265); `nil`, the default, neither sends nor keeps any.
    public var cookieStorage: HTTPCookieStorage? {
        get { storages.cookies }
        set { storages.cookies = newValue }
    }

    /// Which cookies of responses are kept; by default those of the request's `mainDocumentURL` where it has one, else all.
    ///
    /// A storage whose own policy is `never` takes none in any case.
    public var cookieAcceptPolicy = HTTPCookie.AcceptPolicy.onlyFromMainDocumentDomain

    /// Whether the cookies that are kept are sent; `true` by default.
    public var sendsCookies = true

    /// Where answers are kept (RFC 9111); `nil`, the default, keeps none.
    ///
    /// Requests with `Authorization` or `Range`, downloads and streamed bodies are not kept. On Linux Foundation's cache confuses URLs that
    /// differ in their query: answers to those are kept under keys of our own, which ``Session/cachedResponse(for:)`` finds and the
    /// cache's own method does not.
    public var urlCache: URLCache? {
        get { storages.cache }
        set { storages.cache = newValue }
    }

    /// How the cache takes part in requests that don't say; `useProtocolCachePolicy` by default.
    public var cachePolicy = CachePolicy.useProtocolCachePolicy

    /// Whether requests may go over cellular interfaces; `true` by default.
    ///
    /// If not, and the system's route is a cellular one, they take another interface with a route; without one they fail with
    /// ``TransferFailure/Kind/cellularNotAllowed``.
    public var allowsCellularAccess = true

    /// Classes that answer requests in place of the network, asked in this order whether they do; none by default.
    ///
    /// All that they do is called on a queue of the session's. Their answers are not kept in the cache, and their redirects and challenges
    /// are passed on as the responses that they are; ``SessionConfiguration/options`` have no effect on them.
    public var protocolClasses: [URLProtocol.Type] = []

    /// Where credentials are looked up for servers that ask for them, and accepted ones are kept, unless they are for one request alone;
    /// `nil`, the default, neither looks up nor keeps any.
    ///
    /// A request's own credential goes before.
    public var credentialStorage: URLCredentialStorage? {
        get { storages.credentials }
        set { storages.credentials = newValue }
    }

    /// Where closures run that are given no queue of their own; `.main` by default.
    ///
    /// On Linux the main queue runs only under `RunLoop.main`, `dispatchMain()` or an asynchronous `@main`: a program without one of
    /// those sets a queue of its own here.
    public var callbackQueue: DispatchQueue = .main

    /// Where downloads without a destination URL are written; the system's directory for temporary files by default.
    public var temporaryDirectory = FileManager.default.temporaryDirectory

    private var storages = Storages()

    /// Knows the system's network interfaces; asked only when cellular ones are not allowed.
    var interfaces: any InterfaceProvider = SystemInterfaces()

    /// Makes a configuration with the defaults.
    public init() {}

    /// An option of the transfers.
    public subscript<Value>(dynamicMember member: WritableKeyPath<TransferOptions, Value>) -> Value {
        get { options[keyPath: member] }
        set { options[keyPath: member] = newValue }
    }

    /// A setting of the connections.
    public subscript<Value>(dynamicMember member: WritableKeyPath<TransportConfiguration, Value>) -> Value {
        get { connections[keyPath: member] }
        set { connections[keyPath: member] = newValue }
    }
}

// MARK: - Objects with secrets

extension SessionConfiguration {
    /// Foundation's objects, equal by their identity: reflection would find cookies, responses and passwords in them.
    struct Storages: Hashable, Sendable, CustomReflectable {
        var cookies: HTTPCookieStorage?
        var cache: URLCache?
        var credentials: URLCredentialStorage?

        private var identifiers: [ObjectIdentifier?] {
            [cookies.map { ObjectIdentifier($0) }, cache.map { ObjectIdentifier($0) }, credentials.map { ObjectIdentifier($0) }]
        }

        var customMirror: Mirror {
            .redacted(self, ["cookies": cookies != nil, "cache": cache != nil, "credentials": credentials != nil])
        }

        static func == (lhs: Storages, rhs: Storages) -> Bool { lhs.identifiers == rhs.identifiers }

        func hash(into hasher: inout Hasher) { hasher.combine(identifiers) }
    }
}
