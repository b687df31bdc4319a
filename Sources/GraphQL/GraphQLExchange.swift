// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// The requests that are sent for an operation.
struct GraphQLExchange<Value: Decodable & Sendable>: Sendable {
    typealias Outcome = Result<GraphQLResponse<Value>, any Error>

    private static var mediaTypes: [String] { ["application/graphql-response+json", "application/json"] }

    let client: GraphQLClient
    let usesGET: Bool
    let options: RequestOptions
    let deadline: Deadline?

    /// Sends a request, and returns its response, or why there is none.
    func send(_ parameters: GraphQLParameters) async -> (outcome: Outcome, answer: HashAnswer) {
        let request: DataRequest
        do {
            request = try Deadline.with(deadline) { try makeRequest(parameters) }
        } catch {
            return (.failure(error), .final)
        }
        let decoder = client.configuration.decoder
        request.validate(decoding: GraphQLBody<Value>.self, decoder: decoder).validate(contentType: Self.mediaTypes)
        do {
            let data = try await request.serializingData().value
            do {
                let body = try decoder.decode(GraphQLBody<Value>.self, from: data)
                return (
                    Result { try body.response(request.responseHead, of: data) }, HashAnswer(body, status: request.responseHead?.statusCode)
                )
            } catch {
                return (.failure(GraphQLClientError.invalidResponse(error: error, body: data)), .final)
            }
        } catch {
            // A session may translate errors, as for Alamofire's `AFError`; `ownError` is the original.
            let own = error as? CurlewError ?? request.delegate.ownError as? CurlewError
            let answer = HashAnswer(own?.graphQLBody, status: own?.request?.statusCode)
            // Only this type says that the status is that of the server, and not of a gateway (GraphQL over HTTP, "Processing the response").
            guard let body = own?.graphQLBody as? GraphQLBody<Value>, let refused = own?.request,
                refused.contentType.flatMap({ MediaType($0) })?.isGraphQLResponse == true
            else { return (.failure(error), answer) }
            return (Result { try body.response(request.responseHead, of: refused.bodyData ?? Data()) }, answer)
        }
    }

    private func makeRequest(_ parameters: GraphQLParameters) throws -> DataRequest {
        let (manager, interceptor) = (client.manager, client.configuration.interceptor)
        var headers = client.configuration.headers
        if headers["Accept"] == nil { headers["Accept"] = "\(Self.mediaTypes[0]), \(Self.mediaTypes[1]);q=0.9" }
        if headers["GraphQL-Require-Preflight"] == nil { headers["GraphQL-Require-Preflight"] = "1" }
        if headers["Apollo-Require-Preflight"] == nil { headers["Apollo-Require-Preflight"] = "true" }
        if usesGET {
            // Not by `URLComponents`, which leaves `+` as it is: a form's decoder reads it as a space.
            let url = try client.url.asURL().absoluteString.prefixScalars { $0 != "#" }
            let target = "\(url)\(url.unicodeScalars.contains("?") ? "&" : "?")\(try parameters.items().encoded)"
            return manager.request(target, method: .get, headers: headers, interceptor: interceptor, options: options)
        }
        guard parameters.uploads.isEmpty else {
            return manager.upload(
                try parameters.form(), to: client.url, method: .post, headers: headers, interceptor: interceptor, options: options)
        }
        headers["Content-Type"] = "application/json"
        return manager.upload(
            try parameters.json(), to: client.url, method: .post, headers: headers, interceptor: interceptor, options: options)
    }
}

extension MediaType {
    /// Whether a body of this type is a GraphQL server's response, with any status.
    fileprivate var isGraphQLResponse: Bool {
        type.equalsIgnoringASCIICase("application") && subtype.equalsIgnoringASCIICase("graphql-response+json")
    }
}

// MARK: - Persisted queries

/// How a server has answered a request that has only the hash of its document (automatic persisted queries).
enum HashAnswer {
    /// It has executed the operation, or failed in another way.
    case final
    /// It does not know the hash, and will if it gets the document with it.
    case unknownHash
    /// It does not support hashes, and says so.
    case unsupported
    /// It may not have been executed, because the server has missed the document.
    case notExecuted

    init(_ body: (any GraphQLErrorCarrier)?, status: Int?) {
        // One of a field is not about the request.
        let errors = body?.hasData == true ? [] : body?.errors.filter(\.path.isEmpty) ?? []
        if errors.contains(where: { $0.message == "PersistedQueryNotFound" || $0.code == "PERSISTED_QUERY_NOT_FOUND" }) {
            self = .unknownHash
        } else if errors.contains(where: { $0.message == "PersistedQueryNotSupported" || $0.code == "PERSISTED_QUERY_NOT_SUPPORTED" }) {
            self = .unsupported
        } else {
            self = (status == 400 || status == 422) && body?.wasExecuted != true ? .notExecuted : .final
        }
    }
}

extension GraphQLExchange {
    /// Sends the hash of the document, and the document as well if the server needs it.
    ///
    /// No mutation is executed twice: its document follows only what says that the hash is the reason. A refusal that does not say so may be
    /// that of an operation that was executed and has failed.
    ///
    /// - Returns: the outcome, and whether the server does not support hashes.
    func sendPersisted(_ parameters: GraphQLParameters) async -> (Outcome, lacksSupport: Bool) {
        var hashed = parameters
        let hash = SHA256.digest(of: Data((parameters.query ?? "").utf8)).hexDigits
        hashed.extensions["persistedQuery"] = .object(["version": .integer(1), "sha256Hash": .string(hash)])
        var both = hashed
        hashed.query = nil
        both.query = parameters.query
        let (outcome, answer) = await send(hashed)
        switch answer {
        case .unknownHash: return (await send(both).outcome, false)
        case .unsupported: return (await send(parameters).outcome, true)
        case .notExecuted where options.graphQLKind == .query:
            let full = await send(parameters)
            // A request that is refused with its document too says nothing about hashes.
            if case .notExecuted = full.answer { return (full.outcome, false) }
            return (full.outcome, (try? full.outcome.get()) != nil)
        case .final, .notExecuted: return (outcome, false)
        }
    }
}
