// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import CurlewTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct CassetteTests {
    private let directory: TemporaryDirectory
    private let server: LoopbackServer

    init() throws {
        directory = try TemporaryDirectory()
        let counter = Log<Int>()
        server = try LoopbackServer(routes: [
            .get("/users/{id}") { request, _ in
                counter.append(1)
                return try .json(["id": request.parameters["id"] ?? "", "count": "\(counter.count)"])
            },
            .post("/users") { request, _ in .ok(request.body, type: "text/plain") },
            .get("/moved") { _, _ in .redirect(to: "/users/2") },
            .get("/gzip") { _, _ in
                ServerResponse(
                    status: 200, headers: [ServerField("Content-Encoding", "gzip"), ServerField("Content-Type", "text/plain")],
                    body: .data(StoredDeflate.gzip(Data("decoded".utf8))))
            },
            .get("/cut") { _, _ in .ok("0123456789").misbehaving(.cut(after: 4)) },
        ])
    }

    private func makeManager(_ transport: any Transport) -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        return SessionManager(configuration: configuration, transport: transport)
    }

    private func record(_ paths: String..., into directory: URL? = nil) async throws {
        let cassette = try Cassette(directory: directory ?? self.directory.url)
        let manager = makeManager(RecordingTransport(cassette))
        for path in paths { _ = await manager.request(server.url(path)).serializingData().response }
        try await cassette.flush()
    }

    @Test("each exchange has a file, with its body beside it") func files() async throws {
        try await record("/moved", "/gzip")
        #expect(
            try contents(of: directory) == [
                "0001-GET-moved.json", "0002-GET-users-2.json", "0002-GET-users-2.response.json", "0003-GET-gzip.json",
                "0003-GET-gzip.response.txt",
            ])
        #expect(try String(contentsOf: directory.file("0003-GET-gzip.response.txt"), encoding: .utf8) == "decoded")
        let cassette = try Cassette(directory: directory.url)
        #expect(cassette.exchanges.count == 3)
        guard case .response(302, let headers, _, _) = cassette.exchanges[0].outcome else {
            Issue.record("\(cassette.exchanges[0])")
            return
        }
        #expect(headers["Location"] == "/users/2")
    }

    @Test("files and directory are their owner's only, and symbolic links in their places are not followed") func modes() async throws {
        let target = try directory.write(Data("target".utf8), to: "target")
        let place = directory.file("new/place")
        try await record("/users/1", into: place)
        for name in ["new", "new/place"] {
            #expect(try FileManager.default.attributesOfItem(atPath: directory.file(name).path)[.posixPermissions] as? Int == 0o700)
        }
        let names = try contents(of: place)
        #expect(names.count == 2)
        for name in names {
            let file = place.appendingPathComponent(name)
            #expect(try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int == 0o600)
        }
        let planted = directory.file("planted")
        try FileManager.default.createDirectory(at: planted, withIntermediateDirectories: false)
        let link = planted.appendingPathComponent("0001-GET-users-1.response.json")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: target)
        try await record("/users/1", into: planted)
        #expect(try String(contentsOf: target, encoding: .utf8) == "target")
    }

    @Test("an exchange or a body that is a symbolic link is not read", arguments: [".json", ".response.json"])
    func linkedFiles(_ ending: String) async throws {
        let place = directory.file("place")
        try await record("/users/1", into: place)
        #expect(try Cassette(directory: place).exchanges.count == 1)
        let file = place.appendingPathComponent("0001-GET-users-1" + ending)
        let elsewhere = directory.file("elsewhere")
        try FileManager.default.moveItem(at: file, to: elsewhere)
        try FileManager.default.createSymbolicLink(at: file, withDestinationURL: elsewhere)
        #expect(throws: CassetteError.self) { try Cassette(directory: place) }
    }

    @Test("a recording is replayed without a network, through the library's redirects") func replay() async throws {
        try await record("/moved", "/gzip", "/users/1", "/users/1")
        server.stop()
        let transport = try ReplayTransport(Cassette(directory: directory.url))
        let manager = makeManager(transport)
        #expect(try await manager.request(server.url("/moved")).validate().serializingString().value == #"{"count":"1","id":"2"}"#)
        #expect(try await manager.request(server.url("/gzip")).validate().serializingString().value == "decoded")
        #expect(transport.unusedExchanges.count == 2)
        for count in [2, 3] {
            let text = try await manager.request(server.url("/users/1")).validate().serializingString().value
            #expect(text == #"{"count":"\#(count)","id":"1"}"#)
        }
        // Strictly, each responds once.
        let response = await manager.request(server.url("/users/1")).serializingData().response
        let error = try #require(response.error as? UnmatchedRequest)
        #expect(error.description.hasPrefix("No stored exchange matches GET \(server.url("/users/1")). There are:\n  1. GET"))
    }

    @Test("an exchange with a body that is too large is not recorded, and named", arguments: ["/users/1", "/users"])
    func largeBodies(_ path: String) async throws {
        let cassette = try Cassette(directory: directory.url)
        let manager = makeManager(RecordingTransport(cassette, maximumBodySize: 10))
        #expect(try await manager.upload(Data("0123456789".utf8), to: server.url("/users")).serializingData().value.count == 10)
        let isUpload = path == "/users"
        let request = isUpload ? manager.upload(Data("0123456789A".utf8), to: server.url(path)) : manager.request(server.url(path))
        #expect(try await request.serializingData().value.count > 10)
        let error = await #expect(throws: CassetteError.self) { try await cassette.flush() }
        #expect(error?.description.contains("\(isUpload ? "POST" : "GET") \(server.url(path)) has a body of more than 10 bytes") == true)
        #expect(cassette.exchanges.count == 1)
    }

    @Test("a long recording is replayed without comparing all of it with each request")
    func longRecording() async throws {
        let count = 3_000
        // Few items: what is compared counts here, and not the redaction of each of them.
        let query = "item1=value&item2=value"
        let cassette = Cassette(
            (0..<count).map { index in
                StoredExchange(
                    method: "GET", url: "https://example.org/\(index)?\(query)",
                    outcome: .response(status: 200, headers: [:], body: Data("\(index)".utf8), trailers: [:]))
            })
        let transport = try ReplayTransport(cassette, matching: .lenient)
        let manager = makeManager(transport)
        for index in (0..<count).reversed() {
            let text = try await manager.request("https://example.org/\(index)?\(query)").serializingString().value
            try #require(text == "\(index)")
        }
        #expect(transport.unusedExchanges.isEmpty)
    }

    @Test("strict matching compares bodies, lenient matching does not, nor the order of a query") func matching() async throws {
        let cassette = Cassette([
            StoredExchange(
                method: "POST", url: "https://example.org/a?x=1&y=2", body: Data("one".utf8),
                outcome: .response(status: 200, headers: [:], body: Data("1".utf8), trailers: [:]))
        ])
        for (matching, body, query, isFound) in [
            (ReplayTransport.Matching.strict, "one", "x=1&y=2", true), (.strict, "two", "x=1&y=2", false),
            (.strict, "one", "y=2&x=1", false),
            (.lenient, "two", "y=2&x=1", true), (.lenient, "one", "x=1", false),
        ] {
            let manager = makeManager(try ReplayTransport(cassette, matching: matching))
            for index in 0..<2 {
                let response = await manager.upload(Data(body.utf8), to: "https://example.org/a?\(query)").serializingString().response
                #expect(response.value == (isFound && (index == 0 || matching == .lenient) ? "1" : nil))
            }
        }
    }

    @Test("modes: once, none, new and all") func replayModes() async throws {
        func get(_ path: String, _ mode: ReplayTransport.Mode) async throws -> String? {
            let cassette = try Cassette(directory: directory.url)
            let manager = makeManager(try ReplayTransport(cassette, mode: mode, matching: .lenient))
            let text = await manager.request(server.url(path)).serializingString().response.value
            try await cassette.flush()
            return text
        }
        #expect(try await get("/users/1", .none) == nil)
        #expect(try await get("/users/1", .once)?.contains(#""count":"1""#) == true)
        #expect(try await get("/users/1", .once)?.contains(#""count":"1""#) == true)
        #expect(try await get("/users/2", .once) == nil)
        #expect(try await get("/users/2", .new)?.contains(#""count":"2""#) == true)
        #expect(try await get("/users/2", .none)?.contains(#""count":"2""#) == true)
        #expect(try await get("/users/2", .all)?.contains(#""count":"3""#) == true)
        #expect(try Cassette(directory: directory.url).exchanges.count == 1)
        #expect(server.requestCount == 3)
    }

    @Test("uploads are recorded and sent with their bodies") func uploads() async throws {
        let cassette = try Cassette(directory: directory.url)
        let manager = makeManager(try ReplayTransport(cassette, mode: .once))
        let stream = InputStream(data: Data("streamed".utf8))
        #expect(try await manager.upload(stream, to: server.url("/users")).serializingString().value == "streamed")
        try await cassette.flush()
        #expect(cassette.exchanges.map { String(decoding: $0.body, as: UTF8.self) } == ["streamed"])
        let replayed = makeManager(try ReplayTransport(cassette))
        #expect(try await replayed.upload(Data("streamed".utf8), to: server.url("/users")).serializingString().value == "streamed")
        #expect(server.requestCount == 1)
    }

    @Test("failures are recorded, cut responses are not") func failures() async throws {
        let url = server.url("/")
        try await record("/cut")
        server.stop()
        #expect(try Cassette(directory: directory.url).exchanges.isEmpty)
        try await record("/users/1")
        let manager = makeManager(try ReplayTransport(Cassette(directory: directory.url)))
        let error = await manager.request("\(url)users/1").serializingData().response.error
        guard case CurlewError.transferFailed(let failure)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(failure.kind == .connect)
    }

    @Test("an archive is imported") func archive() async throws {
        let har = """
            {"log": {"version": "1.2", "creator": {"name": "x", "version": "1"}, "entries": [
              {"startedDateTime": "2026-01-01T00:00:00Z", "time": 1, "cache": {}, "timings": {"send": 0, "wait": 1, "receive": 0},
               "request": {"method": "POST", "url": "https://example.org/login", "httpVersion": "h2", "cookies": [], "queryString": [],
                 "headers": [{"name": ":authority", "value": "example.org"}, {"name": "Authorization", "value": "Bearer s3cret"}],
                 "headersSize": -1, "bodySize": -1,
                 "postData": {"mimeType": "application/x-www-form-urlencoded", "params": [{"name": "user", "value": "a b"}]}},
               "response": {"status": 200, "statusText": "", "httpVersion": "h2", "cookies": [], "redirectURL": "", "headersSize": -1,
                 "bodySize": 4, "headers": [{"name": "content-encoding", "value": "br"}, {"name": "content-type", "value": "text/plain"}],
                 "content": {"size": 5, "mimeType": "text/plain", "encoding": "base64", "text": "aGVsbG8="}}},
              {"request": {"method": "GET", "url": "https://example.org/blocked", "headers": []}, "response": {"status": 0, "headers": []}}
            ]}}
            """
        let cassette = try Cassette(har: Data(har.utf8), into: directory.url)
        try await cassette.flush()
        let stored = try #require(try Cassette(directory: directory.url).exchanges.first)
        #expect(stored.headers.map(\.name) == ["Authorization"] && stored.headers["Authorization"] == "<hidden>")
        #expect(String(decoding: stored.body, as: UTF8.self) == "user=a%20b")
        let manager = makeManager(try ReplayTransport(Cassette(har: Data(har.utf8))))
        let request = manager.request("https://example.org/login", method: .post, parameters: ["user": "a b"])
        #expect(try await request.validate().serializingString().value == "hello")
        #expect(throws: CassetteError.self) { try Cassette(har: Data("{}".utf8)) }
    }

    @Test("damaged files are named") func damage() throws {
        try directory.write(Data("{".utf8), to: "0001-GET.json")
        let error = #expect(throws: CassetteError.self) { try Cassette(directory: directory.url) }
        #expect(error?.description.hasPrefix("0001-GET.json: ") == true && error?.errorDescription == error?.description)
        let outside = #"{"version": 1, "request": {"method": "GET", "url": "http://h/", "headers": [], "body": "../x"}}"#
        try directory.write(Data(outside.utf8), to: "0001-GET.json")
        #expect(throws: CassetteError.self) { try Cassette(directory: directory.url) }
        try directory.write(Data("{".utf8), to: "notes.json")
        try FileManager.default.removeItem(at: directory.file("0001-GET.json"))
        #expect(try Cassette(directory: directory.url).exchanges.isEmpty)
    }
}
