// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewWebSocket

/// A request for a WebSocket (RFC 6455) as a value: its URL, and the types of its messages in both directions.
///
/// ```swift
/// struct Chat: JSONServiceStreamRequest {
///     typealias Message = Post
///     typealias Result = Post
///     let room: String
///     var routes: HTTPRoute { ["rooms", room] }
/// }
///
/// let chat = Chat(room: "birds").schedule(with: api)
/// try await chat.send(Post(text: "A curlew!"))
/// for try await result in chat.results { … }
/// ```
///
/// URL, query and header fields are built as those of a ``ServiceRequest``, with the schemes `wss` and `ws`. Retriers are not used:
/// ``webSocketConfiguration`` determines whether a lost connection is re-established.
///
/// All members but ``Result`` have a default, ``encode(_:)`` and ``decode(_:)`` for some types: one of another name or type than a
/// requirement's is a different member and is never used.
public protocol ServiceStreamRequest: NetworkServiceRequest {
    /// The type of sent messages; `Void` by default.
    associatedtype Message: Sendable = Void
    /// The type that received messages are decoded as.
    associatedtype Result: Sendable

    /// Encodes a message. There is a default for `Data`, `String`, ``WebSocketMessage``, and `Void`.
    ///
    /// An error thrown here, other than a ``ServiceError``, becomes the cause of ``ServiceError/encodingFailed(_:)``; nothing is sent.
    func encode(_ message: Message) throws -> WebSocketMessage

    /// Decodes a received message. There is a default for `Data`, `String`, ``WebSocketMessage``, and `Void`.
    ///
    /// An error thrown here fails that message only; other than a ``ServiceError``, it becomes the cause of ``ServiceError/unknown(_:)``.
    func decode(_ message: WebSocketMessage) throws -> Result

    /// The subprotocols to offer, in order of preference; none by default.
    var subprotocols: [String] { get }

    /// The WebSocket's configuration: limits, compression, pings, and whether a lost connection is re-established, which it is not by
    /// default. A ``NetworkServiceRequest/timeout`` overrides its `handshakeTimeout`.
    var webSocketConfiguration: WebSocketConfiguration { get }
}

extension ServiceStreamRequest {
    /// No subprotocols.
    public var subprotocols: [String] { [] }
    /// The default configuration.
    public var webSocketConfiguration: WebSocketConfiguration { WebSocketConfiguration() }

    /// Returns the stream of this request from a service. There is no other way to get one.
    ///
    /// Nothing is built or sent until results are read or a message is sent. See ``ServiceStream``.
    public func schedule<Service: HTTPService>(with service: Service) -> ServiceStream<Self, Service> {
        ServiceStream(request: self, service: service)
    }
}

// MARK: - Messages without a coding of their own

/// A type that can be sent and received as a WebSocket message without a coding: `Data`, `String`, and ``WebSocketMessage``.
public protocol WebSocketMessageConvertible: Sendable {
    /// Makes a value of a message.
    ///
    /// - Throws: ``ServiceError/decodingFailed`` if the message doesn't represent one.
    init(webSocketMessage: WebSocketMessage) throws(ServiceError)

    /// The value as a message.
    var webSocketMessage: WebSocketMessage { get }
}

extension Data: WebSocketMessageConvertible {
    /// Makes data of the message's bytes; for a text message, its UTF-8.
    public init(webSocketMessage: WebSocketMessage) throws(ServiceError) { self = webSocketMessage.data }
    /// The bytes.
    public var webSocketMessage: WebSocketMessage { .binary(self) }
}

extension String: WebSocketMessageConvertible {
    /// Makes a string of a text message, or of a binary one in UTF-8.
    public init(webSocketMessage: WebSocketMessage) throws(ServiceError) {
        switch webSocketMessage {
        case .text(let text): self = text
        case .binary(let data):
            guard let text = String(data: data, encoding: .utf8) else { throw .decodingFailed }
            self = text
        }
    }
    /// The text.
    public var webSocketMessage: WebSocketMessage { .text(self) }
}

extension WebSocketMessage: WebSocketMessageConvertible {
    /// Makes a copy of the message.
    public init(webSocketMessage: WebSocketMessage) throws(ServiceError) { self = webSocketMessage }
    /// The message itself.
    public var webSocketMessage: WebSocketMessage { self }
}

extension ServiceStreamRequest where Message: WebSocketMessageConvertible {
    /// Returns the value as a message.
    public func encode(_ message: Message) throws -> WebSocketMessage { message.webSocketMessage }
}

extension ServiceStreamRequest where Message == Void {
    /// Returns an empty binary message.
    public func encode(_ message: Void) throws -> WebSocketMessage { .binary(Data()) }
}

extension ServiceStreamRequest where Result: WebSocketMessageConvertible {
    /// Converts the message to the result.
    public func decode(_ message: WebSocketMessage) throws -> Result { try Result(webSocketMessage: message) }
}

extension ServiceStreamRequest where Result == Void {
    /// Accepts any message.
    public func decode(_ message: WebSocketMessage) throws {}
}

// MARK: - JSON

/// A request for a WebSocket whose messages are JSON (RFC 8259), sent as text messages.
///
/// All members but ``ServiceStreamRequest/Result`` have a default, ``ServiceStreamRequest/encode(_:)`` for messages that are `Encodable`:
/// one of another name or type than a requirement's is a different member and is never used.
public protocol JSONServiceStreamRequest: ServiceStreamRequest where Result: Decodable {
    /// Whether property names are converted to snake case; `true` by default.
    var encodesSnakeCase: Bool { get }

    /// Whether keys in snake case are converted to camel case; `true` by default.
    var decodesSnakeCase: Bool { get }
}

extension JSONServiceStreamRequest {
    /// `true`: property names are converted to snake case.
    public var encodesSnakeCase: Bool { true }
    /// `true`: keys in snake case are converted to camel case.
    public var decodesSnakeCase: Bool { true }

    /// Decodes the message as JSON.
    public func decode(_ message: WebSocketMessage) throws -> Result {
        try JSONDecoder.forServices(fromSnakeCase: decodesSnakeCase).decode(Result.self, from: message.data)
    }
}

extension JSONServiceStreamRequest where Message: Encodable {
    /// Returns the message as JSON text.
    public func encode(_ message: Message) throws -> WebSocketMessage {
        let json = try JSONEncoder.forServices(toSnakeCase: encodesSnakeCase).encode(message)
        return .text(String(decoding: json, as: UTF8.self))
    }
}

// MARK: - Any

/// A request for a WebSocket without its own type, whose messages are not encoded or decoded.
public struct AnyServiceStreamRequest: ServiceStreamRequest {
    /// A text or binary message.
    public typealias Message = WebSocketMessage
    /// A text or binary message.
    public typealias Result = WebSocketMessage

    /// Whether to use TLS.
    public let usesSecureProtocol: Bool?
    /// The URL that replaces the service's.
    public let url: (any URLConvertible)?
    /// The path after the URL's.
    public let routes: HTTPRoute
    /// Items for the URL's query.
    public let query: HTTPQuery
    /// Header fields.
    public let header: HTTPHeaders
    /// The request's priority.
    public let priority: RequestPriority
    /// The timeout until the stream is connected.
    public let timeout: Duration?
    /// The stream's own settings.
    public let requestOptions: RequestOptions?
    /// The subprotocols to offer, in order of preference.
    public let subprotocols: [String]
    /// The WebSocket's configuration.
    public let webSocketConfiguration: WebSocketConfiguration

    /// Makes a request from its parts; each has the default of ``ServiceStreamRequest``.
    ///
    /// A request with a URL needs no service: see ``schedule()``. The URL's scheme then applies, `wss` if it has none.
    public init(
        url: (any URLConvertible)? = nil, usesSecureProtocol: Bool? = nil, routes: HTTPRoute = [], query: HTTPQuery = [:],
        header: HTTPHeaders = [:], priority: RequestPriority = .userInitiated, timeout: Duration? = nil, subprotocols: [String] = [],
        webSocketConfiguration: WebSocketConfiguration = WebSocketConfiguration(), requestOptions: RequestOptions? = nil
    ) {
        self.usesSecureProtocol = usesSecureProtocol
        self.url = url
        self.routes = routes
        self.query = query
        self.header = header
        self.priority = priority
        self.timeout = timeout
        self.requestOptions = requestOptions
        self.subprotocols = subprotocols
        self.webSocketConfiguration = webSocketConfiguration
    }

    /// Returns the stream without a service: at the request's URL, with nothing added, by ``SessionManager/default``.
    ///
    /// Fails with ``ServiceError/invalidURL`` if the request has no URL.
    public func schedule() -> ServiceStream<AnyServiceStreamRequest, AnyHTTPService> {
        schedule(with: AnyHTTPService(at: url ?? "", usesSecureProtocol: nil))
    }
}

// MARK: - CustomReflectable

extension AnyServiceStreamRequest: RedactedReflectable {
    /// The request's parts, redacted.
    package var shownParts: KeyValuePairs<String, Any> {
        ["url": url.map { "\($0)".redactedURL } ?? "the service's", "routes": routes, "query": query, "header": header]
    }
}
