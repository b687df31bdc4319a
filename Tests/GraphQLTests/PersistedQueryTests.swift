// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@testable import CurlewGraphQL

/// A server of persisted queries in memory.
private final class PersistedServer: Sendable {
    struct Sent: Sendable, Equatable {
        let method: String
        let hasQuery: Bool
        let hash: String?
    }

    let known = Monitor<Set<String>>([])
    let sent = Log<Sent>()
    private let server: LoopbackServer

    /// - Parameters:
    ///   - refusal: answers a request with a hash, before the server looks at it; `nil` from the closure to let it.
    init(refusal: @escaping @Sendable (_ hasQuery: Bool, _ number: Int) -> ServerResponse? = { _, _ in nil }) throws {
        server = try LoopbackServer { [known, sent] request, _ in
            var parameters = request.parameters
            if request.method == "GET" {
                parameters["query"] = request.query("query").map { .string($0) }
                let extensions = Data((request.query("extensions") ?? "{}").utf8)
                parameters["extensions"] = .object((try? JSONDecoder().decode([String: JSONValue].self, from: extensions)) ?? [:])
            }
            var hash: String?
            if case .object(let extensions)? = parameters["extensions"], case .object(let entry)? = extensions["persistedQuery"],
                case .string(let digest)? = entry["sha256Hash"], entry["version"] == .integer(1)
            {
                hash = digest
            }
            let hasQuery = parameters["query"] != nil
            sent.append(Sent(method: request.method, hasQuery: hasQuery, hash: hash))
            if hash != nil || !hasQuery, let refusal = refusal(hasQuery, sent.count) { return refusal }
            if let hash {
                if case .string(let query)? = parameters["query"] {
                    guard SHA256.digest(of: Data(query.utf8)).hexDigits == hash else { return .status(400) }
                    known.update { _ = $0.insert(hash) }
                }
                guard known.read({ $0.contains(hash) }) else {
                    return .graphQL(#"{"errors":[{"message":"PersistedQueryNotFound"}]}"#, type: "application/json")
                }
            }
            return .graphQL(#"{"data":{"count":1}}"#)
        }
    }

    func client(
        _ manager: SessionManager = makeManager(), _ change: (inout GraphQLConfiguration) -> Void = { _ in }
    ) -> GraphQLClient {
        GraphQLClient(server, manager: manager) {
            $0.usesPersistedQueries = true
            change(&$0)
        }
    }
}

// A2.3
@Suite(.timeLimit(.minutes(1))) struct PersistedQueryTests {
    private static let document = "{ count }"
    /// By another implementation: `printf '{ count }' | sha256sum`.
    private static let hash = "083a576f8f3f8836b17447b0f690abd8a7e340f71c16878ffd558fc55de8dae4"

    private func count(_ client: GraphQLClient, _ document: String = document, usesGET: Bool = false) async throws -> Int {
        var request = GraphQLRequest(document)
        request.usesGET = usesGET
        return try await client.response(to: request, as: Count.self).get().count
    }

    @Test(arguments: [false, true]) func `the document follows once, and then the hash alone is sent`(usesGET: Bool) async throws {
        let server = try PersistedServer()
        let client = server.client()
        for _ in 0..<3 { #expect(try await count(client, usesGET: usesGET) == 1) }
        let method = usesGET ? "GET" : "POST"
        #expect(
            server.sent.elements
                == [false, true, false, false].map { PersistedServer.Sent(method: method, hasQuery: $0, hash: Self.hash) })
    }

    @Test(arguments: ["PersistedQueryNotFound", "unknown"], [200, 404]) func `a server may say so by a code, with any status`(
        message: String, status: Int
    ) async throws {
        let body = "{\"errors\":[{\"message\":\"\(message)\",\"extensions\":{\"code\":\"PERSISTED_QUERY_NOT_FOUND\"}}]}"
        let server = try PersistedServer { hasQuery, _ in hasQuery ? nil : .graphQL(body, status: status, type: "application/json") }
        #expect(try await count(server.client(), "mutation { count }") == 1)
        #expect(server.sent.elements.map(\.hasQuery) == [false, true])
    }

    @Test func `a server that supports no hashes is sent none any more`() async throws {
        let server = try PersistedServer { _, _ in .graphQL(#"{"errors":[{"message":"PersistedQueryNotSupported"}]}"#, status: 400) }
        let client = server.client()
        for _ in 0..<2 { #expect(try await count(client) == 1) }
        #expect(server.sent.elements.map(\.hasQuery) == [false, true, true])
        #expect(server.sent.elements.map { $0.hash != nil } == [true, false, false])
    }

    @Test(arguments: [400, 422]) func `a server that misses the document supports none either`(status: Int) async throws {
        let server = try PersistedServer { _, _ in ServerResponse(status: status, body: .data(Data("No query".utf8))) }
        let client = server.client()
        for _ in 0..<2 { #expect(try await count(client) == 1) }
        #expect(server.sent.elements.map { $0.hash != nil } == [true, false, false])
    }

    private static let refusals: [(String, String)] = [
        // PHP's empty map.
        (#"{"data":{"count":2},"errors":[{"message":"x","extensions":[]}]}"#, "application/json"),
        (#"{"data":null,"errors":[{"message":"x"}]}"#, "application/json"), (#"{"errors":[{"message":"x"}]}"#, "application/json"),
        (#"{"errors":[{"message":"x"}]}"#, "application/graphql-response+json"), ("no JSON", "text/plain"), ("", "application/json"),
        ("{\"data\":{\"count\":2},\"filler\":\"\(String(repeating: "x", count: 2 << 20))\"}", "application/json"),
    ]

    @Test("a mutation does not follow a refusal that says nothing about hashes", arguments: refusals, [400, 422])
    func mutation(refusal: (String, String), status: Int) async throws {
        let server = try PersistedServer { _, _ in .graphQL(refusal.0, status: status, type: refusal.1) }
        for document in ["mutation { count }", "query A { count } mutation B { count }"] {
            _ = await error { try await server.client().response(to: GraphQLRequest(document), as: Count.self) }
        }
        #expect(server.sent.elements.map(\.hasQuery) == [false, false])
    }

    private static let nested: [String] = [
        #"{"data":{"count":2},"errors":[{"message":"PersistedQueryNotFound"}]}"#,
        #"{"data":{"count":2},"errors":[{"message":"PersistedQueryNotSupported"}]}"#,
        #"{"data":{"count":"x"},"errors":[{"message":"PersistedQueryNotFound"}]}"#,
        #"{"data":null,"errors":[{"message":"PersistedQueryNotFound","path":["count"]}]}"#,
    ]

    @Test("an error of a field is not about the request's hash", arguments: nested, [200, 400])
    func field(body: String, status: Int) async throws {
        for type in ["application/json", "application/graphql-response+json"] {
            let server = try PersistedServer { _, _ in .graphQL(body, status: status, type: type) }
            _ = await error { try await server.client().response(to: GraphQLRequest("mutation { count }"), as: Count.self) }
            #expect(server.sent.elements.map(\.hasQuery) == [false])
        }
    }

    @Test func `a server that has data null beside the unknown hash gets the document`() async throws {
        let server = try PersistedServer { hasQuery, _ in
            hasQuery ? nil : .graphQL(#"{"data":null,"errors":[{"message":"PersistedQueryNotFound"}]}"#)
        }
        #expect(try await count(server.client(), "mutation { count }") == 1)
    }

    @Test func `a session that translates its errors has the responses, and the document follows`() async throws {
        let server = try PersistedServer { hasQuery, _ in
            hasQuery ? nil : .graphQL(#"{"errors":[{"message":"PersistedQueryNotFound"}]}"#, status: 400, type: "application/json")
        }
        let manager = makeManager()
        manager.session.deliverErrors { _ in TestError("translated") }
        #expect(try await count(server.client(manager), "mutation { count }") == 1)
        let refusing = try LoopbackServer { request, _ in
            .graphQL(
                #"{"errors":[{"message":"m"}]}"#, status: 403,
                type: request.path == "/own" ? "application/graphql-response+json" : "application/json")
        }
        defer { refusing.stop() }
        let own = GraphQLClient(refusing.url("/own"), manager: manager)
        #expect(try await own.response(to: GraphQLRequest("{ a }"), as: Count.self).errors.map(\.message) == ["m"])
        let other = GraphQLClient(refusing.url("/other"), manager: manager)
        #expect(await error { try await other.response(to: GraphQLRequest("{ a }"), as: Count.self) } is TestError)
    }

    @Test func `a request that is invalid with its document too says nothing about hashes`() async throws {
        let server = try LoopbackServer { _, _ in .graphQL(#"{"errors":[{"message":"invalid"}]}"#, status: 400) }
        defer { server.stop() }
        let client = GraphQLClient(server) { $0.usesPersistedQueries = true }
        for _ in 0..<2 {
            let response = try await client.response(to: GraphQLRequest(Self.document), as: Count.self)
            #expect(response.errors.map(\.message) == ["invalid"])
        }
        #expect(server.requests.map { $0.parameters["extensions"] != nil } == [true, false, true, false])
    }

    @Test(arguments: [#"{"data":null,"errors":[{"message":"m"}]}"#, #"{"data":{"count":2},"errors":[{"message":"m"}]}"#])
    func `an operation that was executed is not sent again`(body: String) async throws {
        for type in ["application/json", "application/graphql-response+json"] {
            let server = try PersistedServer { _, _ in .graphQL(body, status: 400, type: type) }
            let request = GraphQLRequest("mutation { count }")
            let client = server.client()
            let errors = await Result { try await client.response(to: request, as: Count.self) }
            switch errors {
            case .success(let response): #expect(response.errors.count == 1)
            case .failure(let error): #expect(error.graphQLErrors.count == 1)
            }
            #expect(server.sent.elements.map(\.hasQuery) == [false])
        }
    }

    @Test func `hash and document are retried by a retrier, each by itself`() async throws {
        let server = try PersistedServer { _, number in number % 2 == 1 ? .status(503) : nil }
        let client = server.client { $0.interceptor = GraphQLRetryPolicy(exponentialBackoffScale: 0) }
        #expect(try await count(client) == 1)
        #expect(server.sent.elements.map(\.hasQuery) == [false, false, true, true])
    }

    @Test func `a mutation's hash is not retried`() async throws {
        let server = try PersistedServer { _, _ in .status(503) }
        let client = server.client { $0.interceptor = GraphQLRetryPolicy(exponentialBackoffScale: 0) }
        #expect(await error { try await count(client, "mutation { count }") } != nil)
        #expect(server.sent.count == 1)
    }

    @Test func `one deadline bounds hash and document`() async throws {
        let server = try PersistedServer { hasQuery, _ in
            var response = ServerResponse.graphQL(#"{"errors":[{"message":"PersistedQueryNotFound"}]}"#)
            response.delay = .milliseconds(hasQuery ? 60_000 : 100)
            return response
        }
        let client = server.client { $0.options = RequestOptions(deadline: .milliseconds(1500)) }
        let start = ContinuousClock.now
        let failure = await error { try await count(client) }
        guard case CurlewError.transferFailed(let transfer)? = failure, transfer.kind == .deadline else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(start.duration(to: .now) < .seconds(20))
        #expect(server.sent.elements.map(\.hasQuery) == [false, true])
    }
}

extension Result where Failure == any Error {
    init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}
