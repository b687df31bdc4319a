// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport

/// The response to an operation, or an event of a subscription: data, errors, or both (GraphQL, section 7.1).
public struct GraphQLResponse<Value: Sendable>: Sendable {
    /// The data; `nil` if there is none, as after an error in a field that can't be null.
    public let data: Value?
    /// The errors: none if the operation has succeeded. With ``data``, each explains a `null` in it.
    public let errors: [GraphQLError]
    /// The server's own entries beside data and errors.
    public let extensions: [String: JSONValue]
    /// The status and the header fields; `nil` for an event of a subscription.
    public let head: ResponseHead?
    /// Returns the data of an operation that has succeeded.
    ///
    /// - Throws: ``GraphQLClientError/errors(_:)`` if there are errors, also beside data, or if there is neither.
    public func get() throws(GraphQLClientError) -> Value {
        guard errors.isEmpty, let value = data ?? Serializers.none(of: Value.self) else { throw .errors(errors) }
        return value
    }
}

/// An error in a response (GraphQL, section 7.1.2).
public struct GraphQLError: Error, Sendable, Hashable {
    /// A place in the document.
    public struct Location: Sendable, Hashable, Decodable {
        /// The line, from 1.
        public let line: Int
        /// The column, from 1.
        public let column: Int
    }

    /// A step on the way to the field of a response that has failed.
    public enum PathElement: Sendable, Hashable {
        /// The name of a field, or its alias.
        case field(String)
        /// The index in a list, from 0.
        case index(Int)
    }

    /// What is wrong, for developers; empty if the server does not say.
    public let message: String
    /// What in the document the error is about; often empty.
    public let locations: [Location]
    /// The field of the response that the error is about; empty if it is about the whole operation.
    public let path: [PathElement]
    /// The server's own entries.
    public let extensions: [String: JSONValue]

    /// The entry `code` of ``extensions``, by which most servers distinguish errors; `nil` if it is no string.
    public var code: String? { if case .string(let code)? = extensions["code"] { code } else { nil } }

    /// Creates an error.
    public init(message: String, locations: [Location] = [], path: [PathElement] = [], extensions: [String: JSONValue] = [:]) {
        self.message = message
        self.locations = locations
        self.path = path
        self.extensions = extensions
    }
}

extension GraphQLError: Decodable {
    private enum Key: String, CodingKey { case message, locations, path, extensions }

    /// Decodes an error. Never throws: an entry of another type than the specification's is empty, so that it does not cost the data.
    public init(from decoder: any Decoder) {
        let container = try? decoder.container(keyedBy: Key.self)
        message = (try? container?.decode(String.self, forKey: .message)) ?? ""
        locations = (try? container?.decode([Location].self, forKey: .locations)) ?? []
        path = (try? container?.decode([PathElement].self, forKey: .path)) ?? []
        extensions = (try? container?.decode([String: JSONValue].self, forKey: .extensions)) ?? [:]
    }
}

extension GraphQLError.PathElement: Decodable {
    /// Decodes a string or an index. Throws `DecodingError` for anything else.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        switch try container.decode(JSONValue.self) {
        case .string(let name): self = .field(name)
        case .integer(let index) where index >= 0: self = .index(index)
        default:
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "An element of a path is a string or an index.")
        }
    }
}

// MARK: - Bodies

/// What has errors of GraphQL in it, whichever the type of the data.
protocol GraphQLErrorCarrier {
    var errors: [GraphQLError] { get }
    /// Whether the operation was executed: there is an entry `data`, if only `null`.
    var wasExecuted: Bool { get }
    /// Whether there is data other than `null`, of any type.
    var hasData: Bool { get }
}

/// A response as it is received. Errors that can be read are kept where the data can't be.
struct GraphQLBody<Value: Decodable & Sendable>: Decodable, Sendable, GraphQLErrorCarrier {
    private enum Key: String, CodingKey { case data, errors, extensions }

    /// `nil` for `null`.
    let data: Result<Value, any Error>?
    let errors: [GraphQLError]
    let extensions: [String: JSONValue]
    let wasExecuted: Bool
    var hasData: Bool { data != nil }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        errors = try container.decodeIfPresent([GraphQLError].self, forKey: .errors) ?? []
        // Some servers send an empty list in place of an empty object.
        extensions = (try? container.decode([String: JSONValue].self, forKey: .extensions)) ?? [:]
        wasExecuted = container.contains(.data)
        guard wasExecuted || !errors.isEmpty else {
            throw DecodingError.keyNotFound(
                Key.data, .init(codingPath: container.codingPath, debugDescription: "There are neither data nor errors."))
        }
        let hasData = try wasExecuted && !container.decodeNil(forKey: .data)
        data = hasData ? Result { try container.decode(Value.self, forKey: .data) } : nil
    }

    /// - Parameter raw: the bytes that were decoded.
    func response(_ head: ResponseHead?, of raw: Data) throws(GraphQLClientError) -> GraphQLResponse<Value> {
        do {
            return GraphQLResponse(data: try data?.get(), errors: errors, extensions: extensions, head: head)
        } catch {
            throw .undecodableData(error: error, errors: errors, body: raw)
        }
    }
}

// MARK: - Descriptions

extension GraphQLError: CustomStringConvertible, LocalizedError, CustomReflectable {
    /// The path and the message, with control characters escaped. A server's message may have values of variables in it.
    public var description: String {
        let place = path.map(\.description).joined(separator: ".")
        let message = message.isEmpty ? "an error without a message" : message
        return Redaction.escaped(Redaction.current.url(place.isEmpty ? message : "\(place): \(message)"))
    }

    /// The same text.
    public var errorDescription: String? { description }

    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["description": description]) }
}

extension GraphQLError.PathElement: CustomStringConvertible {
    /// The name or the index.
    public var description: String {
        switch self {
        case .field(let name): name
        case .index(let index): "\(index)"
        }
    }
}
