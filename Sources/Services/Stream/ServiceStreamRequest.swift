// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewWebSocket

/// A request for a WebSocket (RFC 6455) as a value: where it goes, and what its messages are in both directions.
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
/// URL, query and header fields are put together as those of a ``ServiceRequest``, with the schemes `wss` and `ws`. Retriers are not asked:
/// ``webSocketConfiguration`` says whether a lost connection is made again.
public protocol ServiceStreamRequest: NetworkServiceRequest {
    /// What is sent; nothing by default.
    associatedtype Message: Sendable = Void
    /// What the server's messages become.
    associatedtype Result: Sendable

    /// Makes what is sent of a message. There is a default for `Data`, `String`, ``WebSocketMessage``, and `Void`.
    ///
    /// What it throws, other than a ``ServiceError``, is the cause of ``ServiceError/encodingFailed(_:)``; nothing is sent then.
    func encode(_ message: Message) throws -> WebSocketMessage

    /// Makes a result of a message of the server's. There is a default for `Data`, `String`, ``WebSocketMessage``, and `Void`.
    ///
    /// What it throws fails that message only; other than a ``ServiceError``, it is the cause of ``ServiceError/unknown(_:)``.
    func decode(_ message: WebSocketMessage) throws -> Result

    /// The subprotocols to choose from, the best first; none by default.
    var subprotocols: [String] { get }

    /// How the WebSocket works: limits, compression, pings, and whether a connection that was lost is made again; not by default. A
    /// ``NetworkServiceRequest/timeout`` goes before its `handshakeTimeout`.
    var webSocketConfiguration: WebSocketConfiguration { get }
}

extension ServiceStreamRequest {
    /// None.
    public var subprotocols: [String] { [] }
    /// The defaults.
    public var webSocketConfiguration: WebSocketConfiguration { WebSocketConfiguration() }

    /// The stream of this request from a service; the only way to get one.
    ///
    /// Nothing is built or sent before somebody wants results, or sends. See ``ServiceStream``.
    public func schedule<Service: HTTPService>(with service: Service) -> ServiceStream<Self, Service> {
        ServiceStream(request: self, service: service)
    }
}

// MARK: - Messages without a coding of their own

/// What is a message of a WebSocket by itself: `Data`, `String`, and ``WebSocketMessage``.
public protocol WebSocketMessageConvertible: Sendable {
    /// The value of a message.
    ///
    /// - Throws: ``ServiceError/decodingFailed`` when it has none.
    init(webSocketMessage: WebSocketMessage) throws(ServiceError)

    /// The value as a message.
    var webSocketMessage: WebSocketMessage { get }
}

extension Data: WebSocketMessageConvertible {
    /// The message's bytes; of a text, its UTF-8.
    public init(webSocketMessage: WebSocketMessage) throws(ServiceError) { self = webSocketMessage.data }
    /// The bytes.
    public var webSocketMessage: WebSocketMessage { .binary(self) }
}

extension String: WebSocketMessageConvertible {
    /// The text, or the bytes as text in UTF-8.
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
    /// The message as it is.
    public init(webSocketMessage: WebSocketMessage) throws(ServiceError) { self = webSocketMessage }
    /// The message as it is.
    public var webSocketMessage: WebSocketMessage { self }
}

extension ServiceStreamRequest where Message: WebSocketMessageConvertible {
    /// The message as it is.
    public func encode(_ message: Message) throws -> WebSocketMessage { message.webSocketMessage }
}

extension ServiceStreamRequest where Message == Void {
    /// A message of no bytes.
    public func encode(_ message: Void) throws -> WebSocketMessage { .binary(Data()) }
}

extension ServiceStreamRequest where Result: WebSocketMessageConvertible {
    /// The message as it is.
    public func decode(_ message: WebSocketMessage) throws -> Result { try Result(webSocketMessage: message) }
}

extension ServiceStreamRequest where Result == Void {
    /// Whatever came.
    public func decode(_ message: WebSocketMessage) throws {}
}

// MARK: - JSON

/// A request for a WebSocket whose messages are JSON (RFC 8259), sent as texts.
public protocol JSONServiceStreamRequest: ServiceStreamRequest where Result: Decodable {
    /// Whether names of properties are sent in snake case; `true` by default.
    var encodesSnakeCase: Bool { get }

    /// Whether names in snake case become those of properties in camel case; `true` by default.
    var decodesSnakeCase: Bool { get }
}

extension JSONServiceStreamRequest {
    /// `true`.
    public var encodesSnakeCase: Bool { true }
    /// `true`.
    public var decodesSnakeCase: Bool { true }

    /// Decodes the message.
    public func decode(_ message: WebSocketMessage) throws -> Result {
        try JSONDecoder.forServices(fromSnakeCase: decodesSnakeCase).decode(Result.self, from: message.data)
    }
}

extension JSONServiceStreamRequest where Message: Encodable {
    /// The message as JSON.
    public func encode(_ message: Message) throws -> WebSocketMessage {
        let json = try JSONEncoder.forServices(toSnakeCase: encodesSnakeCase).encode(message)
        return .text(String(decoding: json, as: UTF8.self))
    }
}

// MARK: - Any

/// A request for a WebSocket without a type of its own, whose messages are taken as they are.
public struct AnyServiceStreamRequest: ServiceStreamRequest {
    /// A text, or bytes.
    public typealias Message = WebSocketMessage
    /// A text, or bytes.
    public typealias Result = WebSocketMessage

    /// Whether to use TLS.
    public let usesSecureProtocol: Bool?
    /// The URL in place of the service's.
    public let url: (any URLConvertible)?
    /// The path behind the URL.
    public let routes: HTTPRoute
    /// Items for the URL's query.
    public let query: HTTPQuery
    /// Header fields.
    public let header: HTTPHeaders
    /// How urgent it is.
    public let priority: RequestPriority
    /// The longest time until it is connected.
    public let timeout: Duration?
    /// The subprotocols to choose from.
    public let subprotocols: [String]
    /// How the WebSocket works.
    public let webSocketConfiguration: WebSocketConfiguration

    /// Makes a request of its parts; each has the default of ``ServiceStreamRequest``.
    ///
    /// With a URL it can do without a service: ``schedule()``. Its scheme then counts, `wss` if it has none.
    public init(
        url: (any URLConvertible)? = nil, usesSecureProtocol: Bool? = nil, routes: HTTPRoute = [], query: HTTPQuery = [:],
        header: HTTPHeaders = [:], priority: RequestPriority = .userInitiated, timeout: Duration? = nil, subprotocols: [String] = [],
        webSocketConfiguration: WebSocketConfiguration = WebSocketConfiguration()
    ) {
        self.usesSecureProtocol = usesSecureProtocol
        self.url = url
        self.routes = routes
        self.query = query
        self.header = header
        self.priority = priority
        self.timeout = timeout
        self.subprotocols = subprotocols
        self.webSocketConfiguration = webSocketConfiguration
    }

    /// The stream without a service: at the request's URL, with nothing added, by ``SessionManager/default``.
    ///
    /// Fails with ``ServiceError/invalidURL`` if it has no URL.
    public func schedule() -> ServiceStream<AnyServiceStreamRequest, AnyHTTPService> {
        schedule(with: AnyHTTPService(at: url ?? "", usesSecureProtocol: nil))
    }
}
