// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// One exchange with a host: what to send, and how.
///
/// A value; copies share their storage until one of them is changed, as requests go from hand to hand and have many parts.
public struct TransferRequest: Sendable {
    private struct Parts {
        var url: String
        var method: HTTPMethod
        var headers: HTTPHeaders
        var body: (any BodySource)?
        var prepared: PreparedOptions
        var authentication: ConnectionAuthentication?
        var mayPause = false
        var expectsLargeBody = false
        var cachePolicy = CachePolicy.useProtocolCachePolicy
        var handlesCookies = true
        var mainDocumentURL: String?
        var allowsCellularAccess = true
    }

    private final class Storage: @unchecked Sendable {  // changed only by the one value that has it
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

    /// The absolute URL; `http` or `https`.
    public var url: String {
        get { parts.url }
        set { parts.url = newValue }
    }
    /// The method.
    public var method: HTTPMethod {
        get { parts.method }
        set { parts.method = newValue }
    }
    /// The header fields as they go out. `Content-Length` and `Transfer-Encoding` follow from the body instead.
    public var headers: HTTPHeaders {
        get { parts.headers }
        set { parts.headers = newValue }
    }
    /// The body; `nil` for none.
    public var body: (any BodySource)? {
        get { parts.body }
        set { parts.body = newValue }
    }
    /// How to send it.
    public var options: TransferOptions {
        get { parts.prepared.options }
        set { parts.prepared = PreparedOptions(newValue) }
    }
    /// How the connection is to be authenticated; `nil`, as at first, not at all.
    public var authentication: ConnectionAuthentication? {
        get { parts.authentication }
        set { parts.authentication = newValue }
    }
    /// Whether its observer may pause it for long: such a transfer does not share a multiplexed connection with others.
    public var mayPause: Bool {
        get { parts.mayPause }
        set { parts.mayPause = newValue }
    }
    /// Whether large bodies are expected, which larger buffers suit.
    public var expectsLargeBody: Bool {
        get { parts.expectsLargeBody }
        set { parts.expectsLargeBody = newValue }
    }
    /// How the session's cache takes part. The event loop has no cache: this is for what stands before it.
    public var cachePolicy: CachePolicy {
        get { parts.cachePolicy }
        set { parts.cachePolicy = newValue }
    }
    /// Whether the session's cookies are sent, and those of the response kept; `true` by default.
    public var handlesCookies: Bool {
        get { parts.handlesCookies }
        set { parts.handlesCookies = newValue }
    }
    /// The URL of the document that the request is a part of, where the user has named one: it decides whose cookies are accepted.
    public var mainDocumentURL: String? {
        get { parts.mainDocumentURL }
        set { parts.mainDocumentURL = newValue }
    }
    /// Whether the transfer may go over a cellular interface; `true` by default. If not, ``TransferOptions/interface`` says which one it
    /// takes when the system would choose such.
    public var allowsCellularAccess: Bool {
        get { parts.allowsCellularAccess }
        set { parts.allowsCellularAccess = newValue }
    }
    var prepared: PreparedOptions { parts.prepared }

    /// Makes a request.
    public init(
        url: String, method: HTTPMethod = .get, headers: HTTPHeaders = [:], body: (any BodySource)? = nil,
        options: TransferOptions = TransferOptions(), mayPause: Bool = false, expectsLargeBody: Bool = false
    ) {
        self.init(url: url, method: method, headers: headers, body: body, prepared: PreparedOptions(options))
        self.mayPause = mayPause
        self.expectsLargeBody = expectsLargeBody
    }

    /// Makes a request with options that other requests have, too.
    package init(url: String, method: HTTPMethod, headers: HTTPHeaders, body: (any BodySource)?, prepared: PreparedOptions) {
        storage = Storage(Parts(url: url, method: method, headers: headers, body: body, prepared: prepared))
    }
}

extension TransferRequest {
    /// How soon the transfer is to get a connection when others wait, too: from 0, at first, to 7. What `u` in the header field `Priority`
    /// says, else 3 (RFC 9218, section 4.1).
    var urgency: Int {
        guard let field = headers.value(for: "Priority") else { return 3 }
        let urgencies = field.split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }.filter { $0.hasPrefix("u=") }
        // Of a member that is there twice the last counts; a parameter may follow (RFC 9651, section 3.2).
        guard let last = urgencies.last, let urgency = Int(last.dropFirst(2).prefix { $0 != ";" }), (0...7).contains(urgency) else {
            return 3
        }
        return urgency
    }
}

// MARK: - Descriptions

extension TransferRequest: CustomStringConvertible, CustomReflectable {
    /// Method and URL, redacted (``Redaction``).
    public var description: String { "\(method) \(url.redactedURL)" }

    /// Method, URL and header fields, redacted, the length of the body, and the options.
    public var customMirror: Mirror {
        let length = body.map { $0.length.map { "\($0) bytes" } ?? "unknown length" } ?? "none"
        return .redacted(
            self, ["method": method, "url": url.redactedURL, "headers": headers, "body": length, "options": options])
    }
}

/// A raw stream to a host: TCP, or TLS over it.
public struct StreamTransferRequest: Sendable {
    /// The host's name or address.
    public var host: String
    /// The port, 1 to 65,535.
    public var port: Int
    /// Whether to speak TLS.
    public var isSecure: Bool
    /// The connect timeout, TLS and proxy settings; the others have no effect, so that a stream may be silent for as long as it likes.
    public var options: TransferOptions

    /// Makes a request.
    public init(host: String, port: Int, isSecure: Bool, options: TransferOptions = TransferOptions()) {
        self.host = host
        self.port = port
        self.isSecure = isSecure
        self.options = options
    }

    /// The URL by which libcurl knows the peer. An IPv6 address goes in brackets (RFC 3986, section 3.2.2).
    package var url: String {
        let name = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
        return "\(isSecure ? "https" : "http")://\(name):\(port)"
    }
}
