// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewCore
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@testable import CurlewGraphQL

// A2.3
@Suite(.timeLimit(.minutes(1))) struct GraphQLResponseTests {
    private static let ownType: String = "application/graphql-response+json; charset=utf-8"
    private static let plainType: String = "application/json"

    private func response(
        _ body: String, status: Int = 200, type: String = ownType, _ request: GraphQLRequest = GraphQLRequest("{ count }")
    ) async throws -> GraphQLResponse<Count> {
        let server = try LoopbackServer { _, _ in .graphQL(body, status: status, type: type) }
        defer { server.stop() }
        return try await GraphQLClient(server).response(to: request, as: Count.self)
    }

    @Test(arguments: [200, 203, 294], [ownType, plainType]) func `data is returned`(status: Int, type: String) async throws {
        let response = try await response(#"{"data":{"count":1},"extensions":{"cost":[1]}}"#, status: status, type: type)
        #expect(try response.get() == Count(count: 1))
        #expect(response.extensions == ["cost": .array([.integer(1)])])
        #expect(response.head?.statusCode == status)
    }

    @Test func `errors are beside data`() async throws {
        let response = try await response(
            #"{"errors":[{"message":"m","locations":[{"line":2,"column":3}],"path":["a",1],"extensions":{"code":"C"}},{"message":"n","path":null}],"data":{"count":1}}"#
        )
        #expect(response.data == Count(count: 1))
        let error = GraphQLError(
            message: "m", locations: [.init(line: 2, column: 3)], path: [.field("a"), .index(1)], extensions: ["code": .string("C")])
        #expect(response.errors == [error, GraphQLError(message: "n")])
        #expect(response.errors.first?.code == "C" && "\(error)" == "a.1: m")
        #expect {
            try response.get()
        } throws: {
            $0.graphQLErrors.count == 2
        }
    }

    @Test(arguments: [200, 400, 503]) func `data null with errors, and no data, at any status`(status: Int) async throws {
        for body in [#"{"data":null,"errors":[{"message":"m"}]}"#, #"{"errors":[{"message":"m"}]}"#] {
            let response = try await response(body, status: status)
            #expect(response.data == nil && response.errors.map(\.message) == ["m"] && response.head?.statusCode == status)
        }
    }

    @Test func `a status of JSON is a refusal, whose errors can be read`() async throws {
        let refusal = await error { try await response(#"{"errors":[{"message":"m"}]}"#, status: 403, type: Self.plainType) }
        let error = try #require(refusal?.asCurlewError)
        #expect(error.request?.statusCode == 403 && error.graphQLErrors.map(\.message) == ["m"])
        let gateway = await self.error { try await response("<html>", status: 502, type: "text/html") }
        #expect(gateway?.asCurlewError?.request?.statusCode == 502 && gateway?.graphQLErrors.isEmpty == true)
        let portal = await self.error { try await response("<html>", type: "text/html") }
        guard case CurlewError.responseValidationFailed(.unacceptableContentType, _)? = portal else {
            Issue.record("\(String(describing: portal))")
            return
        }
    }

    private func error(_ operation: () async throws -> some Any) async -> (any Error)? {
        await GraphQLTests.error(of: operation)
    }

    private static let malformed: [(String, String)] = [
        ("", "the body: it is not valid"), ("{", "the body: it is not valid"), ("[]", "the body: it is not of the type"),
        ("{}", "data: there is no such entry"), (#"{"errors":[]}"#, "data: there is no such entry"),
        (#"{"errors":"m"}"#, "errors"), (#"{"data":{"count":1},"errors":{}}"#, "errors"),
    ]

    @Test("what is no response of GraphQL is a typed error that says where", arguments: malformed)
    func isMalformed(body: String, place: String) async throws {
        let error = await error { try await response(body) }
        guard case GraphQLClientError.invalidResponse(_, let raw)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(raw == Data(body.utf8))
        #expect("\(error.map { "\($0)" } ?? "")".contains(place), "\(String(describing: error))")
    }

    private static let odd: [(String, String)] = [
        (#"{"message":"m","extensions":[]}"#, "m"), (#"{"message":"m","path":[{}]}"#, "m"), (#"{"message":"m","path":[1.5]}"#, "m"),
        (#"{"message":"m","path":[-1]}"#, "m"), (#"{"message":"m","path":"a"}"#, "m"), (#"{"message":"m","locations":[{"line":1}]}"#, "m"),
        (#"{"message":null}"#, ""), (#"{"message":1}"#, ""), (#"{"mesage":"m"}"#, ""), ("{}", ""), ("null", ""), ("7", ""), ("[]", ""),
    ]

    @Test("an error with an odd entry costs neither the data nor the other errors", arguments: odd)
    func isOdd(error: String, message: String) async throws {
        let response = try await response("{\"data\":{\"count\":1},\"errors\":[\(error),{\"message\":\"n\"}],\"extensions\":[]}")
        #expect(response.data == Count(count: 1))
        #expect(response.errors == [GraphQLError(message: message), GraphQLError(message: "n")])
        #expect(response.errors.allSatisfy { !"\($0)".isEmpty })
    }

    @Test func `extensions that are nested without end are an error`() async throws {
        let deep = String(repeating: "[", count: 10_000) + String(repeating: "]", count: 10_000)
        let error = await error { try await response("{\"data\":{\"count\":1},\"extensions\":{\"a\":\(deep)}}") }
        guard case GraphQLClientError.invalidResponse? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func `data of another type is an error with the server's errors`() async throws {
        let body = #"{"data":{"count":null},"errors":[{"message":"m","path":["count"]}]}"#
        let failure = await error { try await response(body) }
        guard case GraphQLClientError.undecodableData(_, let errors, let raw)? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(errors.map(\.message) == ["m"] && raw == Data(body.utf8))
        #expect("\(failure.map { "\($0)" } ?? "")".contains("data.count") && failure?.graphQLErrors.count == 1)
    }

    private enum Level: String, Decodable, Sendable { case low }
    private static let undecodable: [(String, String)] = [
        (#""s3cret""#, "data.level: it is not valid"), ("7", "data.level: it is not of the type String"),
    ]

    @Test("a text names the place of undecodable data, and no value", arguments: undecodable)
    func isUndecodable(value: String, text: String) async throws {
        let server = try LoopbackServer { _, _ in .graphQL("{\"data\":{\"level\":\(value)}}") }
        defer { server.stop() }
        let failure = await error { try await GraphQLClient(server).response(to: GraphQLRequest("{ a }"), as: [String: Level].self) }
        let shown = failure.map { "\($0)" } ?? ""
        #expect(shown.contains(text) && !shown.contains("s3cret"), "\(shown)")
    }

    @Test func `data null without errors is a value of an optional type only`() async throws {
        let server = try LoopbackServer { _, _ in .graphQL(#"{"data":null}"#) }
        defer { server.stop() }
        let client = GraphQLClient(server)
        #expect(try await client.response(to: GraphQLRequest("{ a }"), as: Count?.self).get() == nil)
        #expect("\(GraphQLClientError.errors([]))".contains("neither data nor errors"))
        let response = try await client.response(to: GraphQLRequest("{ a }"), as: Count.self)
        #expect(throws: GraphQLClientError.self) { try response.get() }
    }

    @Test func `control characters of a server are escaped`() {
        let error = GraphQLError(message: "a\u{1B}[2Jb\n", path: [.field("\u{202E}")])
        for text in ["\(error)", "\(GraphQLClientError.errors([error]))", String(reflecting: error)] {
            #expect(!text.unicodeScalars.contains { $0.value == 0x1B || $0.value == 0x202E || $0 == "\n" })
        }
    }

    // MARK: Requests

    @Test func `a request is JSON by POST, with the media types of GraphQL`() async throws {
        let server = try LoopbackServer { _, _ in .graphQL(#"{"data":{"count":1}}"#) }
        defer { server.stop() }
        let client = GraphQLClient(server) { $0.headers = ["X-Api-Key": "k"] }
        let own = GraphQLClient(server) { $0.headers = ["apollo-require-preflight": "own"] }
        let request = GraphQLRequest("query A($a: Int) { count }", variables: ["a": 1])
        _ = try await client.response(to: request, as: Count.self)
        _ = try await own.response(to: request, as: Count.self)
        #expect(server.requests.last?.headers.filter { $0.name.lowercased() == "apollo-require-preflight" }.map(\.value) == ["own"])
        let sent = try #require(server.requests.first)
        #expect(sent.method == "POST" && sent.header("Content-Type") == "application/json" && sent.header("X-Api-Key") == "k")
        #expect(sent.header("Accept") == "application/graphql-response+json, application/json;q=0.9")
        #expect(sent.header("GraphQL-Require-Preflight") == "1" && sent.header("Apollo-Require-Preflight") == "true")
        #expect(sent.parameters == ["query": .string(request.query), "variables": .object(["a": .integer(1)])])
    }

    @Test func `a query by GET has its parameters in the URL, and its response is cached`() async throws {
        let server = try LoopbackServer { _, _ in
            var response = ServerResponse.graphQL(#"{"data":{"count":1}}"#)
            response.headers.append(ServerField("Cache-Control", "max-age=60"))
            return response
        }
        defer { server.stop() }
        let manager = makeManager { $0.cache = ResponseCache(storage: MemoryCacheStorage()) }
        let client = GraphQLClient(server.url("/graphql?v=1#f"), manager: manager)
        var request = GraphQLRequest("query A($a: String, $b: Int) { count }", operationName: "A", variables: ["a": "x+&y", "b": 2])
        request.usesGET = true
        for _ in 0..<3 { #expect(try await client.response(to: request, as: Count.self).get() == Count(count: 1)) }
        #expect(server.requestCount == 1)
        let sent = try #require(server.requests.first)
        #expect(sent.header("Apollo-Require-Preflight") == "true")
        #expect(sent.method == "GET" && sent.query("v") == "1" && sent.query("query") == request.query)
        #expect(sent.query("operationName") == "A" && sent.query("variables") == #"{"a":"x+&y","b":2}"#)
        #expect(sent.header("Content-Type") == nil)
    }

    @Test func `a subscription is sent by subscribe only`() async throws {
        let failure = await error { try await response(#"{"data":{"count":1}}"#, GraphQLRequest("subscription { count }")) }
        guard case GraphQLClientError.invalidRequest(.wrongKind)? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
    }

    @Test(arguments: ["mutation { a }", "query A { a } mutation B { b }"])
    func `only a query is sent by GET`(document: String) async throws {
        let server = try LoopbackServer { _, _ in .status(500) }
        defer { server.stop() }
        var request = GraphQLRequest(document)
        request.usesGET = true
        let failure = await error { try await GraphQLClient(server).response(to: request, as: Count.self) }
        guard case GraphQLClientError.invalidRequest(.notAQuery)? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(server.requestCount == 0)
    }

    // MARK: Retries, deadlines, cancellation

    private static let retried: [(String, HTTPHeaders, Int)] = [
        ("{ count }", [:], 3), ("mutation { count }", [:], 1), ("mutation { count }", ["Idempotency-Key": "k"], 3),
        ("query A { a } mutation B { b }", [:], 1),
    ]

    @Test("queries are retried, and mutations with a key", arguments: retried)
    func retries(document: String, headers: HTTPHeaders, attempts: Int) async throws {
        let server = try LoopbackServer { _, _ in .graphQL(#"{"errors":[{"message":"busy"}]}"#, status: 503) }
        defer { server.stop() }
        let client = GraphQLClient(server) {
            $0.interceptor = GraphQLRetryPolicy(exponentialBackoffScale: 0)
            $0.headers = headers
        }
        let response = try await client.response(to: GraphQLRequest(document), as: Count.self)
        #expect(response.errors.map(\.message) == ["busy"])
        #expect(server.requestCount == attempts)
    }

    @Test func `the plain policy retries no query by POST, and the session's may be GraphQL's`() async throws {
        let server = try LoopbackServer { _, _ in .status(503) }
        defer { server.stop() }
        let plain = GraphQLClient(server) { $0.interceptor = RetryPolicy(exponentialBackoffScale: 0) }
        #expect(await error { try await plain.response(to: GraphQLRequest("{ count }"), as: Count.self) } != nil)
        #expect(server.requestCount == 1)
        let manager = makeManager()
        manager.interceptor = GraphQLRetryPolicy(retryLimit: 1, exponentialBackoffScale: 0)
        #expect(
            await error { try await GraphQLClient(server, manager: manager).response(to: GraphQLRequest("{ count }"), as: Count.self) }
                != nil)
        #expect(server.requestCount == 3)
        #expect(await error { try await manager.request(server.url("/"), method: .post).validate().serializingData().value } != nil)
        #expect(server.requestCount == 4)
        #expect(await error { try await manager.request(server.url("/")).validate().serializingData().value } != nil)
        #expect(server.requestCount == 6)
    }

    @Test func `an interceptor adapts, and a request has the operation's name`() async throws {
        let server = try LoopbackServer { _, _ in .status(503) }
        defer { server.stop() }
        let names = Log<String?>()
        let retrier = Retrier { _, request, _, completion in
            names.append(request.name)
            completion(false, 0)
        }
        let adapter = Adapter { request in
            var request = request
            request.setValue("Bearer t", forHTTPHeaderField: "Authorization")
            return request
        }
        let client = GraphQLClient(server) { $0.interceptor = Interceptor(adapter: adapter, retrier: retrier) }
        #expect(await error { try await client.response(to: GraphQLRequest("query Counting { count }"), as: Count.self) } != nil)
        #expect(server.requests.first?.header("Authorization") == "Bearer t")
        #expect(names.elements == ["query Counting"])
    }

    @Test func `a deadline ends an operation, and so does cancelling its task`() async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            gate.arrive()
            connection.waitUntilClosed()
            return nil
        }
        defer { server.stop() }
        let client = GraphQLClient(server)
        let late = await error {
            try await client.response(
                to: GraphQLRequest("{ count }"), as: Count.self, options: RequestOptions(deadline: .seconds(1)))
        }
        guard case CurlewError.transferFailed(let failure)? = late, failure.kind == .deadline else {
            Issue.record("\(String(describing: late))")
            return
        }
        let task = Task { try await client.response(to: GraphQLRequest("{ count }"), as: Count.self) }
        #expect(await gate.arrivals(2))
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(await server.waitForConnectionsToClose())
    }
}
