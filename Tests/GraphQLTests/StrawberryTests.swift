// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewWebSocket
import Testing

@testable import CurlewGraphQL

/// A GraphQL server by another implementation: the package strawberry-graphql for Python.
final class StrawberryServer: Sendable {
    /// One for all tests, as it takes seconds to start. Ends when its input does, with this process.
    private static let started = Task { try await StrawberryServer() }

    private let process: ChildProcess
    private let port: UInt16
    var url: String { "http://127.0.0.1:\(port)/graphql" }

    static func shared() async throws -> StrawberryServer { try await started.value }

    /// Whether tests with it are to be run.
    static func isInstalled() async throws -> Bool {
        if Servers.areRequired { return true }
        guard ChildProcess.path(of: Servers.python) != nil else { return false }
        return try await ChildProcess(Servers.python, "-W", "ignore", "-c", "import strawberry, uvicorn, wsproto, multipart").finish()
            .status == 0
    }

    private init() async throws {
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("strawberry-server.py").path
        process = try ChildProcess(Servers.python, "-W", "ignore", script)
        guard let port = await process.readLine().flatMap({ UInt16($0) }) else { throw TestError("the server has not started") }
        self.port = port
    }

    func client(_ change: (inout GraphQLConfiguration) -> Void = { _ in }) -> GraphQLClient {
        var configuration = GraphQLConfiguration()
        change(&configuration)
        return GraphQLClient(url, manager: makeManager(), configuration: configuration)
    }
}

// A2.3
@Suite(
    .serialized, .timeLimit(.minutes(2)),
    .enabled("needs Python's strawberry-graphql, uvicorn and wsproto") { try await StrawberryServer.isInstalled() }
)
struct StrawberryTests {
    private struct Seen: Decodable, Sendable {
        struct Counts: Decodable, Sendable {
            let bumps: Int
            let active: Int
            let connections: Int
        }

        let seen: Counts
    }

    private struct Heroes: Decodable, Sendable {
        struct Hero: Decodable, Sendable {
            let name: String
            let friend: Friend?
        }

        struct Friend: Decodable, Sendable {
            let name: String
        }

        let heroes: [Hero]
    }

    private let server: StrawberryServer
    private let client: GraphQLClient

    init() async throws {
        server = try await .shared()
        client = server.client()
    }

    private func seen() async throws -> Seen.Counts {
        try await client.response(to: GraphQLRequest("{ seen { bumps active connections } }"), as: Seen.self).get().seen
    }

    @Test func `a query has variables, and an operation of several, by POST and by GET`() async throws {
        var request = GraphQLRequest(
            "query A { seen { bumps } } query B($first: Int!) { heroes(first: $first) { name } }", operationName: "B",
            variables: ["first": 3])
        for usesGET in [false, true] {
            request.usesGET = usesGET
            let heroes = try await client.response(to: request, as: Heroes.self).get().heroes
            #expect(heroes.map(\.name) == ["hero 0", "hero 1", "hero 2"])
        }
    }

    @Test func `partial data is beside the errors of its fields`() async throws {
        let response = try await client.response(to: GraphQLRequest("{ heroes { name friend { name } } }"), as: Heroes.self)
        #expect(response.data?.heroes.map(\.name) == ["hero 0", "hero 1"] && response.data?.heroes.allSatisfy { $0.friend == nil } == true)
        #expect(response.errors.map(\.path) == [0, 1].map { [.field("heroes"), .index($0), .field("friend")] })
        #expect(response.errors.first?.code == "LONELY" && response.errors.first?.extensions["id"] == .string("0"))
        #expect(response.errors.first?.locations == [.init(line: 1, column: 17)])
    }

    @Test func `an operation that fails has its errors`() async throws {
        for document in ["{ secret }", "{ nope }", "{", "query A($a: Int!) { heroes(first: $a) { name } }"] {
            let failure = await error { try await client.response(to: GraphQLRequest(document), as: Heroes.self).get() }
            #expect(failure?.graphQLErrors.count == 1, "\(document): \(String(describing: failure))")
            #expect(failure?.graphQLErrors.first?.code == (document == "{ secret }" ? "FORBIDDEN" : nil))
        }
    }

    @Test func `a mutation is executed once, also by a server that knows no hashes`() async throws {
        struct Bump: Decodable, Sendable { let bump: Int }
        let request = GraphQLRequest("mutation ($by: Int!) { bump(by: $by) }", variables: ["by": 2])
        let start = try await seen().bumps
        #expect(try await client.response(to: request, as: Bump.self).get().bump == start + 2)
        let hashed = server.client { $0.usesPersistedQueries = true }
        // Until a query has shown that it is the hash that the server refuses.
        let refusal = await error { try await hashed.response(to: request, as: Bump.self) }
        #expect(refusal?.asCurlewError?.request?.statusCode == 400)
        _ = try await hashed.response(to: GraphQLRequest("{ seen { bumps active connections } }"), as: Seen.self).get()
        for expected in [4, 6] { #expect(try await hashed.response(to: request, as: Bump.self).get().bump == start + expected) }
        #expect(try await seen().bumps == start + 6)
    }

    @Test func `files arrive whole, from disk and from memory`() async throws {
        struct Stored: Decodable, Sendable { let store: [String] }
        let directory = try TemporaryDirectory()
        let content = GeneratedBody().data(count: 5_000_001)
        let file = try directory.write(content, to: "photo.png")
        let request = GraphQLRequest(
            "mutation ($files: [Upload!]!, $cover: Upload) { store(files: $files, cover: $cover) }",
            variables: [
                "files": [GraphQLUpload(file: file), GraphQLUpload(data: Data("abc".utf8), fileName: "a.txt", mimeType: "text/plain")],
                "cover": GraphQLUpload(data: Data(), fileName: "é.bin"),
            ])
        let stored = try await client.response(to: request, as: Stored.self).get().store
        #expect(
            stored == [
                "photo.png image/png 5000001 \(SHA256.digest(of: content).hexDigits)",
                "a.txt text/plain 3 \(SHA256.digest(of: Data("abc".utf8)).hexDigits)",
                "é.bin application/octet-stream 0 \(SHA256.digest(of: Data()).hexDigits)",
            ])
    }

    // MARK: Subscriptions

    private func count(to limit: Int, failingAt: Int = -1) -> GraphQLRequest {
        GraphQLRequest(
            "subscription ($to: Int!, $at: Int!) { count(to: $to, failingAt: $at) }", variables: ["to": limit, "at": failingAt])
    }

    @Test func `ten subscriptions on one connection`() async throws {
        let connections = try await seen().connections
        // Holds the connection, which ends with the last one, for those that begin late.
        var first: GraphQLSubscription<Count>.Iterator? = client.subscribe(to: count(to: 1_000_000)).makeAsyncIterator()
        #expect(try await first?.next()?.data == Count(count: 0))
        let counts = await withTaskGroup(of: [Int]?.self) { group in
            for number in 0..<10 {
                group.addTask {
                    var counts: [Int] = []
                    do {
                        for try await event in client.subscribe(to: count(to: 20 + number), as: Count.self) {
                            counts.append(try event.get().count)
                        }
                    } catch {
                        Issue.record(error)
                    }
                    return counts == Array(0..<20 + number) ? counts : nil
                }
            }
            return await group.reduce(into: 0) { $0 += $1 == nil ? 0 : 1 }
        }
        #expect(counts == 10)
        #expect(try await seen().connections == connections + 1)
        first = nil
    }

    @Test func `two subscriptions, one cancelled, and then the last`() async throws {
        // Those of other tests may be ending.
        try await untilActive(0)
        var first: GraphQLSubscription<Count>.Iterator? = client.subscribe(to: count(to: 1_000_000)).makeAsyncIterator()
        var second: GraphQLSubscription<Count>.Iterator? = client.subscribe(to: count(to: 1_000_000)).makeAsyncIterator()
        for number in 0..<3 {
            #expect(try await first?.next()?.data == Count(count: number))
            #expect(try await second?.next()?.data == Count(count: number))
        }
        #expect(try await seen().active == 2)
        first = nil
        try await untilActive(1)
        for number in 3..<6 { #expect(try await second?.next()?.data == Count(count: number)) }
        second = nil
        try await untilActive(0)
    }

    /// Waits until so many subscriptions run on the server; the suite's time limit bounds it.
    private func untilActive(_ count: Int) async throws {
        while try await seen().active != count { try await Task.sleep(for: .milliseconds(20)) }
    }

    @Test func `an error in an event, one of the operation, and a query`() async throws {
        struct Failing: Decodable, Sendable { let count: Int }
        var events: [GraphQLResponse<Failing>] = []
        let failure = await error {
            for try await event in client.subscribe(to: count(to: 5, failingAt: 2), as: Failing.self) { events.append(event) }
        }
        // The specification has this error end the stream; strawberry sends it as an event.
        let codes = events.flatMap(\.errors).compactMap(\.code) + (failure?.graphQLErrors ?? []).compactMap(\.code)
        #expect(events.compactMap { $0.data?.count } == [0, 1] && codes == ["STOPPED"])
        let invalid = await error {
            for try await _ in client.subscribe(to: GraphQLRequest("subscription { nope }"), as: Failing.self) {}
        }
        #expect(invalid?.graphQLErrors.count == 1, "\(String(describing: invalid))")
        // A query works on the connection too.
        var names: [String] = []
        for try await event in client.subscribe(to: GraphQLRequest("{ heroes { name } }"), as: Heroes.self) {
            names += try event.get().heroes.map(\.name)
        }
        #expect(names == ["hero 0", "hero 1"])
    }

    @Test func `the payload of a connection signs in, or is refused`() async throws {
        struct Params: Decodable, Sendable { let params: String }
        let signedIn = server.client { $0.connectionPayload = { ["token": .string("right")] } }
        for try await event in signedIn.subscribe(to: GraphQLRequest("subscription { params }"), as: Params.self) {
            #expect(try event.get().params == "right")
        }
        let refused = server.client { $0.connectionPayload = { ["token": .string("wrong")] } }
        let failure = await error {
            for try await _ in refused.subscribe(to: GraphQLRequest("subscription { params }"), as: Params.self) {}
        }
        guard case GraphQLClientError.closed(let closure)? = failure, closure.code == .graphQLForbidden else {
            Issue.record("\(String(describing: failure))")
            return
        }
    }

    // MARK: The article

    @Test func `the article's code does what it says`() async throws {
        #expect(try await heroes(3, from: server.url, with: client.manager).map(\.id) == ["0", "1", "2"])
        let texts = try await friends(client)
        #expect(texts.count == 2 && texts.first?.hasPrefix("LONELY: heroes.0.friend: ") == true)
        #expect(try await report(server.url, with: makeManager()).count == 2)
        let directory = try TemporaryDirectory()
        let photo = try directory.write(Data("abc".utf8), to: "a.png")
        #expect(try await store([photo], with: client).first?.hasPrefix("a.png image/png 3 ") == true)
        #expect(try await counted(server.url, makeManager()) == [0, 1, 2])
    }
}

/// The article's function, whose name the suite has for its own.
private func counted(_ url: String, _ manager: SessionManager) async throws -> [Int] {
    try await count(url, with: manager) { "right" }
}
