// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewWebSocket

/// Why there is no data of a GraphQL server.
///
/// Errors of requests and connections are ``/CurlewHTTP/CurlewError`` and ``/CurlewWebSocket/WebSocketError``, and what the program's own
/// closures throw is passed on unchanged.
///
/// Later versions may add cases, so a `switch` needs a `default`.
public enum GraphQLClientError: Error, Sendable {
    /// The request can't be sent.
    case invalidRequest(reason: InvalidRequestReason)
    /// The operation has failed, at least in part; the list is empty for a response with neither data nor errors.
    case errors([GraphQLError])
    /// The data is not of the type that the program expects; `errors` may say why. `body` is the response; of one with a status other than
    /// 2xx the first 64 KiB.
    case undecodableData(error: any Error, errors: [GraphQLError], body: Data)
    /// The response is not one of GraphQL: `error` is a `DecodingError` that names the entry. `body` is the whole response.
    case invalidResponse(error: any Error, body: Data)
    /// The server has sent a message that the protocol of subscriptions does not allow, and the connection was closed with 4400.
    case invalidMessage(reason: String)
    /// The server has accepted a WebSocket, but not for `graphql-transport-ws`; the value is what it has chosen instead.
    case subprotocolNotAccepted(String?)
    /// The server has not acknowledged the connection within ``GraphQLConfiguration/acknowledgementTimeout``, and it was closed with 4504.
    case acknowledgementTimedOut
    /// The server has closed the connection of a subscription, whose events were not complete. Its codes from 4400 on are those of
    /// `graphql-transport-ws`, such as ``/CurlewWebSocket/WebSocketCloseCode/graphQLForbidden``.
    case closed(WebSocketClosure)
    /// A subscription's events were not read fast enough: more than ``GraphQLConfiguration/eventBufferSize`` were waiting, with
    /// ``GraphQLConfiguration/OverflowPolicy/fail``.
    case eventBufferOverflow(limit: Int)

    /// Why a request can't be sent.
    ///
    /// Later versions may add cases, so a `switch` needs a `default`.
    public enum InvalidRequestReason: Sendable, Hashable {
        /// The variables are not encoded as a JSON object.
        case variablesNotAnObject
        /// Only an operation that is known to be a query can be sent by GET.
        case notAQuery
        /// A subscription is sent by ``GraphQLClient/subscribe(to:as:)`` only. That sends nothing but operations that are known to be
        /// subscriptions or queries, as it may have to send them again.
        case wrongKind
        /// With files, the encoder must not convert keys: the server is sent where they are by the original ones.
        case convertedKeys
    }
}

extension Error {
    /// The errors in the body of a GraphQL server's response, also in that of a refused one; empty if there are none.
    ///
    /// A refused response of type `application/json` may be that of a gateway, which has the form by chance.
    public var graphQLErrors: [GraphQLError] {
        switch self as? GraphQLClientError {
        case .errors(let errors), .undecodableData(_, let errors, _): errors
        default: graphQLBody?.errors ?? []
        }
    }

    /// The decoded body of a refused response.
    var graphQLBody: (any GraphQLErrorCarrier)? { asCurlewError?.request?.decodedBody as? any GraphQLErrorCarrier }
}

extension WebSocketCloseCode {
    /// 4400: the peer has received a message that is not one of the protocol.
    public static let graphQLBadRequest = WebSocketCloseCode(rawValue: 4400)
    /// 4401: an operation was requested before the connection was acknowledged.
    public static let graphQLUnauthorized = WebSocketCloseCode(rawValue: 4401)
    /// 4403: the server refuses the connection, such as for its payload (``GraphQLConfiguration/connectionPayload``).
    public static let graphQLForbidden = WebSocketCloseCode(rawValue: 4403)
    /// 4406: the server does not speak the subprotocol.
    public static let graphQLSubprotocolNotAcceptable = WebSocketCloseCode(rawValue: 4406)
    /// 4408: the server has not received `connection_init` in time.
    public static let graphQLInitialisationTimeout = WebSocketCloseCode(rawValue: 4408)
    /// 4409: two operations have the same number.
    public static let graphQLSubscriberAlreadyExists = WebSocketCloseCode(rawValue: 4409)
    /// 4429: the server has received `connection_init` twice.
    public static let graphQLTooManyInitialisationRequests = WebSocketCloseCode(rawValue: 4429)
    /// 4504, sent by the client: the server has not acknowledged the connection in time.
    public static let graphQLAcknowledgementTimeout = WebSocketCloseCode(rawValue: 4504)
}

// MARK: - Descriptions

extension GraphQLClientError: CustomStringConvertible, LocalizedError, CustomReflectable {
    /// What has failed, and why. Of a response, only the messages of its errors are shown, which may have values of variables in them.
    public var description: String {
        switch self {
        case .invalidRequest(.variablesNotAnObject): "The request's variables are not encoded as a JSON object."
        case .invalidRequest(.notAQuery): "Only an operation that is known to be a query can be sent by GET."
        case .invalidRequest(.wrongKind):
            "A subscription can be sent by subscribe(to:) only, and only an operation that is known to be one, or a query."
        case .invalidRequest(.convertedKeys): "An encoder that converts keys can't be used with files."
        case .errors(let errors) where errors.isEmpty: "The response has neither data nor errors."
        case .errors(let errors): "The operation has failed: \(Self.text(of: errors))"
        case .undecodableData(let error, let errors, _):
            "The response's data can't be decoded: \(Self.text(of: error))\(errors.isEmpty ? "" : "; its errors: \(Self.text(of: errors))")"
        case .invalidResponse(let error, let body):
            "The response, of \(body.count) bytes, is not one of GraphQL: \(Self.text(of: error))"
        case .invalidMessage(let reason): "The server has violated graphql-transport-ws: \(Redaction.escaped(reason))"
        case .subprotocolNotAccepted(let name):
            "The server has accepted the WebSocket for \(Redaction.escaped(name ?? "no subprotocol")), not for graphql-transport-ws."
        case .acknowledgementTimedOut: "The server has not acknowledged the connection in time."
        case .closed(let closure): "The server has closed the connection of the subscription with code \(closure)"
        case .eventBufferOverflow(let limit):
            "The subscription's events were not read fast enough: more than \(limit) bytes were waiting."
        }
    }

    /// The same sentence.
    public var errorDescription: String? { description }

    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["description": description]) }

    /// The first errors.
    private static func text(of errors: [GraphQLError]) -> String {
        errors.prefix(3).map(\.description).joined(separator: "; ") + (errors.count > 3 ? "; and \(errors.count - 3) more" : "")
    }

    /// Where and why decoding has failed, without values, which a decoder's own text may have.
    private static func text(of error: any Error) -> String {
        guard let error = error as? DecodingError else { return "\(type(of: error))" }
        let (steps, reason): ([any CodingKey], String)
        switch error {
        case .keyNotFound(let key, let place): (steps, reason) = (place.codingPath + [key], "there is no such entry")
        case .typeMismatch(let type, let place): (steps, reason) = (place.codingPath, "it is not of the type \(type)")
        case .valueNotFound(let type, let place): (steps, reason) = (place.codingPath, "it is null, not of the type \(type)")
        case .dataCorrupted(let place): (steps, reason) = (place.codingPath, "it is not valid")
        @unknown default: return "\(type(of: error))"
        }
        return Redaction.escaped("\(steps.isEmpty ? "the body" : steps.map(\.step).joined(separator: ".")): \(reason)")
    }
}
