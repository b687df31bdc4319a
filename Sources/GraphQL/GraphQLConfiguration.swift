// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewWebSocket

/// The settings of a ``GraphQLClient``: how its requests are sent, and the connection of its subscriptions.
public struct GraphQLConfiguration: Sendable {
    /// What happens when a subscription's events are not read as fast as they are received.
    public enum OverflowPolicy: Sendable, Hashable {
        /// Nothing more is read from the connection until there is room, so that the server slows down. All subscriptions of the client wait
        /// meanwhile: each has to be read by a task of its own.
        case suspend
        /// The subscription ends with ``GraphQLClientError/eventBufferOverflow(limit:)``; the others continue.
        case fail
    }

    /// Header fields of each request, and of the handshake for subscriptions; none by default.
    ///
    /// Unless they have them, `Accept` has both media types of GraphQL, and `GraphQL-Require-Preflight` and `Apollo-Require-Preflight` are
    /// sent, which servers require that protect themselves from forms of other sites. Those that require another field need it here.
    public var headers: HTTPHeaders = [:]

    /// Adapts requests and handshakes, and decides about their retries; `nil`, the default, for none but the session's.
    ///
    /// A ``GraphQLRetryPolicy`` also retries queries by POST.
    public var interceptor: (any RequestInterceptor)?

    /// The settings of requests whose call has none, and of the handshake; `nil`, the default, for the session's.
    public var options: RequestOptions?

    /// Decodes responses and events; a `JSONDecoder` by default. It must not convert the names of ``GraphQLResponse``.
    public var decoder: any DataDecoder = JSONDecoder()

    /// Makes the encoder of a request's variables; a `JSONEncoder` by default. Called for each request.
    public var makeEncoder: @Sendable () -> JSONEncoder = { JSONEncoder() }

    /// Whether queries and mutations are first sent by their hash (automatic persisted queries); `false` by default.
    ///
    /// A server that does not know the hash gets the document as well, and one that does not support hashes is sent none any more. One that
    /// does not say so, and refuses the hash with 400 or 422, is noticed by a query only: a mutation fails with the refusal until then, since
    /// it may have been executed.
    public var usesPersistedQueries = false

    /// The URL for subscriptions, with the scheme `ws`, `wss`, `http` or `https`; `nil`, the default, for the client's.
    public var subscriptionURL: (any URLConvertible)?

    /// Returns the payload of `connection_init`, such as a token; called for each connection. `nil`, the default, sends none.
    ///
    /// Its task is cancelled after the WebSocket's `handshakeTimeout`, and the connection fails with
    /// ``/CurlewWebSocket/WebSocketError/timedOut(_:)``.
    public var connectionPayload: (@Sendable () async throws -> [String: JSONValue])?

    /// The longest time from the open WebSocket to the server's `connection_ack`; 10 seconds by default, `nil` for no limit.
    public var acknowledgementTimeout: Duration? = .seconds(10)

    /// The configuration of the WebSocket.
    ///
    /// Its ``/CurlewWebSocket/WebSocketConfiguration/reconnection`` decides whether subscriptions are requested again on a new connection
    /// after theirs was lost; never by default. The events in between are lost. Connections that end before an event, and within
    /// the maximum delay, are consecutive failures.
    ///
    /// The policy is asked with the error of the WebSocket, which is `timedOut(.handshake)` for an acknowledgement that is missing and for
    /// ``/CurlewWebSocket/WebSocketCloseCode/graphQLInitialisationTimeout``. A server that closes with 1000 or without a code is not lost by
    /// default: reconnecting then takes a `shouldReconnect` of your own.
    public var webSocket = WebSocketConfiguration()

    /// The size of the events of a subscription that may wait to be read, in bytes; 256 KiB by default. Each counts with its size plus 64
    /// bytes, and one is always accepted.
    public var eventBufferSize = 256 << 10

    /// What happens beyond ``eventBufferSize``; ``OverflowPolicy/suspend`` by default.
    public var overflow = OverflowPolicy.suspend

    /// Creates a configuration with the defaults.
    public init() {}
}

// MARK: - CustomReflectable

/// Reflection shows nothing: the subscriptions' URL and the header fields may have secrets.
extension GraphQLConfiguration: RedactedReflectable {}
