// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// A client of a GraphQL server: queries and mutations by HTTP (the draft GraphQL over HTTP, as of September 2026), subscriptions by
/// `graphql-transport-ws`.
///
/// ```swift
/// let client = GraphQLClient("https://api.example.org/graphql", manager: manager)
/// let page = try await client.response(to: GraphQLRequest("{ heroes { name } }"), as: Page.self).get()
/// ```
///
/// Requests are those of the manager, with its interceptors, cache, deadlines and limits. Thread-safe.
public final class GraphQLClient: Sendable {
    /// The server's URL.
    public let url: any URLConvertible
    /// Sends the requests, and opens the connections for subscriptions.
    public let manager: SessionManager
    /// The settings.
    public let configuration: GraphQLConfiguration
    /// Whether the server does not support persisted queries.
    private let lacksPersistedQueries = Lock(false)
    /// The connection of the subscriptions; the last one may have ended.
    private let connection = Lock<SubscriptionConnection?>(nil)

    /// Creates a client; nothing is sent.
    public init(
        _ url: any URLConvertible, manager: SessionManager, configuration: GraphQLConfiguration = GraphQLConfiguration()
    ) {
        self.url = url
        self.manager = manager
        self.configuration = configuration
    }

    // MARK: Queries and mutations

    /// Executes a query or a mutation, and returns its data and its errors.
    ///
    /// A response of type `application/graphql-response+json` is returned with any status; with one other than 2xx, up to a size of 1 MiB.
    /// Another one with a status other than 2xx is a refusal: its `CurlewError` is thrown, whose `graphQLErrors` has what is in the body.
    /// Retriers are asked about both.
    /// Cancelling the task cancels the request.
    ///
    /// - Parameters:
    ///   - request: the operation.
    ///   - type: the type of the data. Its properties that may be `null` after an error are optional.
    ///   - options: the settings of this request; `nil`, the default, for ``GraphQLConfiguration/options``. The deadline bounds all that
    ///     is sent for the operation.
    /// - Throws: ``GraphQLClientError``, but not ``GraphQLClientError/errors(_:)``; the errors of ``/CurlewCore/DataTask/value``.
    public func response<Value: Decodable & Sendable>(
        to request: GraphQLRequest, as type: Value.Type = Value.self, options: RequestOptions? = nil
    ) async throws -> GraphQLResponse<Value> {
        if request.kind == .subscription { throw GraphQLClientError.invalidRequest(reason: .wrongKind) }
        if request.usesGET, request.kind != .query { throw GraphQLClientError.invalidRequest(reason: .notAQuery) }
        var options = options ?? configuration.options ?? RequestOptions()
        // Of all requests together.
        let deadline = Deadline.earliest(options.deadline)
        options.deadline = nil
        options.graphQLKind = request.kind
        options.name = options.name ?? request.description
        let parameters = try GraphQLParameters(request, configuration.makeEncoder(), allowsUploads: !request.usesGET)
        let exchange = GraphQLExchange<Value>(client: self, usesGET: request.usesGET, options: options, deadline: deadline)
        guard configuration.usesPersistedQueries, !lacksPersistedQueries.withLock({ $0 }) else {
            return try await exchange.send(parameters).outcome.get()
        }
        let (outcome, lacksSupport) = await exchange.sendPersisted(parameters)
        if lacksSupport { lacksPersistedQueries.withLock { $0 = true } }
        return try outcome.get()
    }

    // MARK: Subscriptions

    /// Returns the events of a subscription, which is requested when iteration starts.
    ///
    /// All subscriptions of a client share a connection, which is opened for the first one, and closed after the last. One that begins while
    /// the connection is being lost has another. See ``GraphQLSubscription``.
    ///
    /// A query may be sent in this way too. Mutations, and operations of which it is not clear what they do, fail with
    /// ``GraphQLClientError/InvalidRequestReason/wrongKind``, as a lost connection may have them sent again.
    public func subscribe<Value: Decodable & Sendable>(
        to request: GraphQLRequest, as type: Value.Type = Value.self
    ) -> GraphQLSubscription<Value> {
        GraphQLSubscription(client: self, request: request)
    }

    /// Adds a subscription to the connection, or to a new one.
    func begin(_ payload: Data) -> SubscriptionConnection.Handle {
        connection.withLock { current in
            while true {
                if let handle = current?.begin(payload) { return handle }
                current = SubscriptionConnection(self)
            }
        }
    }
}

// MARK: - CustomReflectable

extension GraphQLClient: CustomReflectable {
    /// The redacted URL.
    public var customMirror: Mirror {
        .redacted(self, ["url": (try? url.asURL()).map { Redaction.escaped($0.absoluteString.redactedURL) } as Any])
    }
}
