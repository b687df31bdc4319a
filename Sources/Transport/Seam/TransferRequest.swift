// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A request for one exchange with a host, and the options of its transfer.
///
/// A value type; copies share their storage until one of them is changed, because requests are passed along often and have many parts.
public struct TransferRequest: Sendable {
    private struct Parts {
        var url: String
        var method: HTTPMethod
        var headers: HTTPHeaders
        var body: (any BodySource)?
        var prepared: PreparedOptions
        var ownLimits: OwnLimits?
        var authentication: ConnectionAuthentication?
        var mayPause = false
        var expectsLargeBody = false
        var opensConnectionOnly = false
        var cachePolicy = CachePolicy.useProtocolCachePolicy
        var handlesCookies = true
        var isUpgraded = false
        var isServerWide = false
        var mainDocumentURL: String?
        var allowsCellularAccess = true
        var source: (any AnyObject & Sendable)?
        var jarCookies: JarCookies?
        var signing: RequestSigning?
    }

    /// Where the cookies of a request come from, if a session has added its own.
    package final class JarCookies: Sendable {
        /// The jar of the session, by a random text.
        let jar: String
        /// The cookies that the program has given the request; `nil` for none.
        let given: String?
        /// The names of those that the session has added.
        let names: String

        package init(jar: String, given: String?, names: [String]) {
            self.jar = jar
            self.given = given
            self.names = names.sorted().joined(separator: ";")
        }
    }

    private final class Storage: @unchecked Sendable {  // mutated only while uniquely referenced
        @exclusivity(unchecked) var parts: Parts

        init(_ parts: Parts) { self.parts = parts }
    }

    private var storage: Storage

    private var parts: Parts {
        _read { yield storage.parts }
        _modify {
            if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage.parts) }
            yield &storage.parts
        }
    }

    /// The absolute URL; its scheme is `http` or `https`.
    public var url: String {
        get { parts.url }
        set { parts.url = newValue }
    }
    /// Whether the URL's scheme is `https`, by its fifth byte.
    package var isSecure: Bool {
        var url = url
        return url.withUTF8 { $0.count > 4 && $0[4].asciiLowercased == UInt8(ascii: "s") }
    }
    /// The method.
    public var method: HTTPMethod {
        get { parts.method }
        set { parts.method = newValue }
    }
    /// The header fields to send. `Content-Length` and `Transfer-Encoding` are derived from the body instead.
    public var headers: HTTPHeaders {
        get { parts.headers }
        set { parts.headers = newValue }
    }
    /// The body; `nil` for none.
    public var body: (any BodySource)? {
        get { parts.body }
        set { parts.body = newValue }
    }
    /// The options of the transfer.
    public var options: TransferOptions {
        get { parts.ownLimits?.applied(to: parts.prepared.options) ?? parts.prepared.options }
        set {
            parts.prepared = PreparedOptions(newValue, transportPartition: parts.prepared.transportPartition)
            parts.ownLimits = nil
        }
    }
    /// The authentication of the connection; `nil`, the default, for none.
    package var authentication: ConnectionAuthentication? {
        get { parts.authentication }
        set { parts.authentication = newValue }
    }
    /// Whether the observer may pause the transfer for long: it then doesn't share a multiplexed connection with others. `false` by
    /// default.
    package var mayPause: Bool {
        get { parts.mayPause }
        set { parts.mayPause = newValue }
    }
    /// Whether large bodies are expected, for which libcurl uses larger buffers. `false` by default.
    package var expectsLargeBody: Bool {
        get { parts.expectsLargeBody }
        set { parts.expectsLargeBody = newValue }
    }
    /// Whether a connection is opened and pooled, and no request sent. `false` by default.
    var opensConnectionOnly: Bool {
        get { parts.opensConnectionOnly }
        set { parts.opensConnectionOnly = newValue }
    }
    /// How the session's cache is used. The event loop has no cache: this is for transports that wrap it.
    public var cachePolicy: CachePolicy {
        get { parts.cachePolicy }
        set { parts.cachePolicy = newValue }
    }
    /// Whether the session's cookies are sent, and the response's cookies stored; `true` by default.
    package var handlesCookies: Bool {
        get { parts.handlesCookies }
        set { parts.handlesCookies = newValue }
    }
    /// The source of the cookies, if the session has added its own.
    package var jarCookies: JarCookies? {
        get { parts.jarCookies }
        set { parts.jarCookies = newValue }
    }
    /// Whether the URL had a scheme without TLS, and its host is known to want that; `false` by default.
    package var isUpgraded: Bool {
        get { parts.isUpgraded }
        set { parts.isUpgraded = newValue }
    }
    /// Whether an `OPTIONS` request is about the server as a whole, and not about its URL's path: sent with the target `*` (RFC 9112,
    /// section 3.2.4). `false` by default.
    public var isServerWide: Bool {
        get { parts.isServerWide }
        set { parts.isServerWide = newValue }
    }
    /// The URL of the document that the request belongs to, if the user has set one: it determines whether cookies are accepted as
    /// first-party.
    package var mainDocumentURL: String? {
        get { parts.mainDocumentURL }
        set { parts.mainDocumentURL = newValue }
    }
    /// Whether the transfer may use a cellular interface; `true` by default. If not, ``TransferOptions/interface`` names the interface to
    /// use when the system would choose a cellular one.
    package var allowsCellularAccess: Bool {
        get { parts.allowsCellularAccess }
        set { parts.allowsCellularAccess = newValue }
    }
    /// What the session's instruments need to know of the request, passed through the transports above them; `nil` by default.
    package var source: (any AnyObject & Sendable)? {
        get { parts.source }
        set { parts.source = newValue }
    }
    /// Who signs the request when it is sent; `nil`, the default, for no signature.
    package var signing: RequestSigning? {
        get { parts.signing }
        set { parts.signing = newValue }
    }
    var prepared: PreparedOptions { parts.prepared }
    /// Whether there is a client certificate without origins of its own; cheaper than reading the options.
    package var hasUnboundCertificate: Bool { storage.parts.prepared.hasUnboundCertificate }
    /// Whether files of the options have to be read (``readFiles()``).
    package var hasFiles: Bool { storage.parts.prepared.hasFiles && (isSecure || storage.parts.prepared.hasAuthorityFile) }
    var limits: TimeLimits { parts.ownLimits?.limits ?? parts.prepared.limits }
    var connectTimeoutMilliseconds: Int { parts.ownLimits?.connectMilliseconds ?? parts.prepared.connectTimeoutMilliseconds }

    /// Replaces timeouts, where they are not `nil`; the transfer otherwise shares the options of others.
    package mutating func setTimeouts(connect: Duration? = nil, firstByte: Duration? = nil, idle: Duration? = nil, total: Duration? = nil) {
        setOwnLimits(connect, firstByte, idle, total)
    }

    private mutating func setOwnLimits(
        _ connect: Duration? = nil, _ firstByte: Duration? = nil, _ idle: Duration? = nil, _ total: Duration? = nil,
        deadlineField: String? = nil
    ) {
        let own = parts.ownLimits
        parts.ownLimits = OwnLimits(
            connect: connect ?? own?.connect, firstByte: firstByte ?? own?.firstByte, idle: idle ?? own?.idle,
            total: total ?? own?.total, otherwise: parts.prepared.limits, deadlineField: deadlineField ?? own?.deadlineField)
    }

    /// Sets the header field by which the server is informed of the time that remains until the request's deadline.
    package mutating func setDeadline(_ value: String, inField name: String) {
        parts.headers.update(name: name, value: value)
        setOwnLimits(deadlineField: name)
    }

    /// Replaces the limits of one caller by those of a session, so that the request can be sent on behalf of all: its timeouts, and the
    /// field that informs the server of its deadline.
    package mutating func setLimits(_ limits: TransferOptions) {
        if let name = parts.ownLimits?.deadlineField { parts.headers.remove(name: name) }
        var shared = options
        (shared.connectTimeout, shared.firstByteTimeout) = (limits.connectTimeout, limits.firstByteTimeout)
        (shared.idleTimeout, shared.totalTimeout) = (limits.idleTimeout, limits.totalTimeout)
        options = shared
    }

    /// Whether another request without a body would be sent in the same way, to the same place, with the same fields, and the same timeouts.
    package func isEquivalent(to other: TransferRequest) -> Bool {
        let (lhs, rhs) = (parts, other.parts)
        return lhs.method == rhs.method && lhs.url == rhs.url && lhs.headers == rhs.headers && lhs.cachePolicy == rhs.cachePolicy
            // Byte by byte: texts are equal too if they are written with different scalars.
            && lhs.headers.elementsEqual(rhs.headers) { $0.value.utf8.elementsEqual($1.value.utf8) }
            && lhs.handlesCookies == rhs.handlesCookies && lhs.mainDocumentURL == rhs.mainDocumentURL
            && lhs.allowsCellularAccess == rhs.allowsCellularAccess && lhs.isServerWide == rhs.isServerWide
            && (lhs.signing == nil && rhs.signing == nil || lhs.signing?.isSameSigner(as: rhs.signing) == true)
            && limits == other.limits && connectTimeoutMilliseconds == other.connectTimeoutMilliseconds
            && (lhs.prepared === rhs.prepared || lhs.prepared.options == rhs.prepared.options && hasEqualPartition(other))
    }

    /// Whether the request has no body; cheaper than reading that.
    package var isWithoutBody: Bool { storage.parts.body == nil }

    /// Whether the request is one for a document, received whole, that is the same for all who send it: `GET` or `HEAD`, without a body and
    /// without an authentication of the connection.
    package var isForDocument: Bool {
        storage.parts.body == nil && !storage.parts.mayPause && storage.parts.authentication == nil
            && (storage.parts.method == .get || storage.parts.method == .head)
    }

    /// Whether the method is idempotent (RFC 9110, section 9.2.2); cheaper than reading that.
    package var isIdempotent: Bool { storage.parts.method == .get || storage.parts.method.isIdempotent }

    /// Calls `body` with the bytes of the URL; cheaper than a copy of the string.
    package func withURLBytes(_ body: (UnsafeRawBufferPointer) -> Int) -> Int {
        // As all strings that are Swift's own are stored.
        if let number = storage.parts.url.utf8.withContiguousStorageIfAvailable({ body(UnsafeRawBufferPointer($0)) }) { return number }
        var url = storage.parts.url
        return url.withUTF8 { body(UnsafeRawBufferPointer($0)) }
    }

    /// Whether the bytes of the URL begin with others.
    package func urlBegins(with prefix: UnsafeRawBufferPointer) -> Bool {
        withURLBytes { bytes in
            guard bytes.count >= prefix.count, let start = bytes.baseAddress, let other = prefix.baseAddress else { return 0 }
            return memcmp(start, other, prefix.count) == 0 ? 1 : 0
        } == 1
    }

    /// Creates a request.
    public init(
        url: String, method: HTTPMethod = .get, headers: HTTPHeaders = [:], body: (any BodySource)? = nil,
        options: TransferOptions = TransferOptions()
    ) {
        self.init(url: url, method: method, headers: headers, body: body, prepared: PreparedOptions(options))
    }

    /// Creates a request whose options are shared with other requests.
    package init(url: String, method: HTTPMethod, headers: HTTPHeaders, body: (any BodySource)?, prepared: PreparedOptions) {
        storage = Storage(Parts(url: url, method: method, headers: headers, body: body, prepared: prepared))
    }
}

extension TransferRequest {
    /// Replaces the files of authorities and of the client certificate by their contents.
    package mutating func readFiles() { parts.prepared = prepared.read }

    /// The priority with which the transfer gets a connection when others wait: from 0, the most urgent, to 7. The member `u` of the
    /// header field `Priority`, otherwise 3 (RFC 9218, section 4.1).
    package var urgency: Int {
        guard let field = headers.value(for: "Priority"), let members = try? StructuredFields.dictionary(from: field),
            case .item(let item)? = members["u"], case .integer(let urgency) = item.value, (0...7).contains(urgency)
        else { return 3 }
        return urgency
    }
}

// MARK: - Descriptions

extension TransferRequest: LineConvertible, RedactedReflectable {
    /// Method and URL, redacted (``Redaction``).
    package var line: String { "\(method) \(url.redactedURL)" }

    /// Method, URL and header fields, redacted, the length of the body, and the options.
    package var shownParts: KeyValuePairs<String, Any> {
        let length = body.map { $0.length.map { "\($0) bytes" } ?? "unknown length" } ?? "none"
        return ["method": method, "url": url.redactedURL, "headers": headers, "body": length, "options": options]
    }
}

/// A request for a raw stream to a host: TCP, or TLS over TCP.
public struct StreamTransferRequest: Sendable {
    /// The host's name or address.
    public var host: String
    /// The port, 1 to 65,535.
    public var port: Int
    /// Whether to use TLS.
    public var isSecure: Bool
    /// The connect timeout, TLS and proxy settings; the other options have no effect, so that a stream may be idle indefinitely.
    public var options: TransferOptions

    /// Creates a request.
    public init(host: String, port: Int, isSecure: Bool, options: TransferOptions = TransferOptions()) {
        self.host = host
        self.port = port
        self.isSecure = isSecure
        self.options = options
    }

    /// The request with the contents of its files: a session reads those of transfers, whose partition depends on them.
    var prepared: StreamTransferRequest {
        var request = self
        request.options.tls = request.options.tls.read
        return request
    }

    /// The peer's URL for libcurl. An IPv6 address is put in brackets (RFC 3986, section 3.2.2).
    package var url: String { "\(isSecure ? "https" : "http")://\(host.bracketed):\(port)" }
}
