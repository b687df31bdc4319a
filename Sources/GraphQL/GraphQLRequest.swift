// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// A request to a GraphQL server: a document, and the values of its variables.
///
/// ```swift
/// let request = GraphQLRequest("query Hero($id: ID!) { hero(id: $id) { name } }", variables: ["id": "7"])
/// ```
public struct GraphQLRequest: Sendable {
    /// What an operation does (GraphQL, section 2.3).
    public enum Kind: String, Sendable, Hashable {
        /// Reads, without side effects.
        case query
        /// Writes.
        case mutation
        /// Delivers events; sent by ``GraphQLClient/subscribe(to:as:)``.
        case subscription
    }

    /// The document: one or more operations, and the fragments that they use. The parameter `query` of the GraphQL-over-HTTP specification.
    public let query: String
    /// The name of the operation to execute; `nil` if the document has only one.
    public let operationName: String?
    /// The variables' values, which are encoded as a JSON object; `nil` for none. A ``GraphQLUpload`` in them is sent as a file.
    public let variables: (any Encodable & Sendable)?
    /// Entries for the server's own extensions of the protocol; empty by default.
    public var extensions: [String: JSONValue] = [:]
    /// Whether a query is sent by GET, so that its response can be cached and it is retried as other GETs are; `false` by default.
    ///
    /// Document and variables are then in the URL, which servers log. Mutations fail with ``GraphQLClientError/InvalidRequestReason/notAQuery``.
    public var usesGET = false
    /// What the operation does, as the document says; `nil` if that is not clear, as for several operations without a name.
    ///
    /// Only a `query` is ever sent by GET. A `query` and a `subscription` may be repeated; other operations by a retrier only.
    public let kind: Kind?
    /// The operation's name, also where it is only in the document.
    let name: String?

    /// Creates a request with variables of different types. Their names are sent as they are, also by an encoder that converts keys.
    public init(_ query: String, operationName: String? = nil, variables: [String: any Encodable & Sendable] = [:]) {
        self.init(query, operationName, variables.isEmpty ? nil : VariableTable(values: variables))
    }

    /// Creates a request whose variables are the members of a value.
    @_disfavoredOverload
    public init(_ query: String, operationName: String? = nil, variables: some Encodable & Sendable) {
        self.init(query, operationName, variables)
    }

    private init(_ query: String, _ operationName: String?, _ variables: (any Encodable & Sendable)?) {
        self.query = query
        self.operationName = operationName
        self.variables = variables
        let operation = DocumentOperation.executed(in: query, named: operationName)
        kind = operation?.kind
        name = operationName ?? operation?.name
    }
}

// MARK: - Descriptions

extension GraphQLRequest: CustomStringConvertible, CustomReflectable {
    /// The operation's kind and name, without document and variables, which may have secrets.
    public var description: String { Redaction.escaped([kind?.rawValue ?? "operation", name].compactMap(\.self).joined(separator: " ")) }

    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["description": description]) }
}

// MARK: - Encoding

/// Variables of different types. Encoded as a dictionary, whose names an encoder does not convert.
private struct VariableTable: Encodable, Sendable {
    private struct Variable: Encodable {
        let value: any Encodable

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(value)
        }
    }

    let values: [String: any Encodable & Sendable]

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(values.mapValues { Variable(value: $0) })
    }
}

/// The parameters of a request as they are sent (GraphQL over HTTP, "Request Parameters").
struct GraphQLParameters: Sendable {
    /// `nil` for a persisted query, of which only the hash is sent.
    var query: String?
    var operationName: String?
    /// A JSON object.
    var variables: Data?
    var extensions: [String: JSONValue]
    /// The files in the variables, with their places.
    var uploads: [GraphQLUpload.Placed] = []

    /// - Throws: ``CurlewError/parameterEncodingFailed(reason:in:)``; ``GraphQLClientError/invalidRequest(reason:)``.
    init(_ request: GraphQLRequest, _ encoder: JSONEncoder, allowsUploads: Bool) throws {
        query = request.query
        operationName = request.operationName
        extensions = request.extensions
        guard let values = request.variables else { return }
        let placed = Lock<[GraphQLUpload.Placed]>([])
        if allowsUploads, let key = GraphQLUpload.placesKey { encoder.userInfo[key] = placed }
        // The URL of a query by GET is what caches know it by.
        encoder.outputFormatting.insert(.sortedKeys)
        let json = try Self.encode(values, encoder)
        uploads = placed.withLock { $0 }
        if !uploads.isEmpty {
            guard case .useDefaultKeys = encoder.keyEncodingStrategy else {
                throw GraphQLClientError.invalidRequest(reason: .convertedKeys)
            }
        }
        if json == Data("null".utf8) { return }
        guard json.first == UInt8(ascii: "{") else { throw GraphQLClientError.invalidRequest(reason: .variablesNotAnObject) }
        variables = json
    }

    /// The parameters as a JSON object.
    func json() throws -> Data {
        var fields: [(String, Data)] = []
        if let query { fields.append(("query", try Self.encode(query))) }
        if let operationName { fields.append(("operationName", try Self.encode(operationName))) }
        if let variables { fields.append(("variables", variables)) }
        if !extensions.isEmpty { fields.append(("extensions", try Self.encode(extensions))) }
        // Joined as text: the variables are encoded by the program's encoder, which would convert these names too.
        return Data("{\(fields.map { "\"\($0)\":\(String(decoding: $1, as: UTF8.self))" }.joined(separator: ","))}".utf8)
    }

    /// The parameters as items of a URL's query, where document and name are plain text.
    func items() throws -> HTTPQuery {
        let extensions = extensions.isEmpty ? nil : try Self.encode(extensions)
        return [
            "query": query, "operationName": operationName, "variables": variables.map { String(decoding: $0, as: UTF8.self) },
            "extensions": extensions.map { String(decoding: $0, as: UTF8.self) },
        ]
    }

    static func encode(_ value: some Encodable, _ encoder: JSONEncoder = JSONEncoder()) throws(CurlewError) -> Data {
        do {
            encoder.outputFormatting.insert(.sortedKeys)
            return try encoder.encode(value)
        } catch {
            throw .parameterEncodingFailed(reason: .jsonEncodingFailed(error: error))
        }
    }
}
