// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewEvents
import CurlewTestSupport
import CurlewTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct MockTransportTests {
    struct User: Codable, Sendable, Equatable {
        var id = 7
        var name = "Numenius"
    }

    private let mock = MockTransport()
    private let base = "https://api.example.org"

    @Test("a manager with a response is one line") func oneLine() async throws {
        let manager = SessionManager(mock: .json(User()))
        let user = try await manager.request("https://api.example.org/users/7").validate().serializingDecodable(User.self).value
        #expect(user == User())
    }

    @Test("handlers are called without a main queue") func handlers() async {
        let manager = SessionManager(mock: .text("body"))
        let text = await withTrackedContinuation { continuation in
            manager.request("https://api.example.org/").responseString { continuation.resume(returning: $0.value) }
        }
        #expect(text == "body")
    }

    @Test("responses are given one after the other, and the last one repeats") func sequence() async {
        let manager = SessionManager(mock: .status(500), .text("two"), .text("three"))
        var seen: [String] = []
        for _ in 1...4 {
            let response = await manager.request("https://api.example.org/").serializingString().response
            seen.append("\(response.response?.statusCode ?? 0) \(response.value ?? "")")
        }
        #expect(seen == ["500 ", "200 two", "200 three", "200 three"])
    }

    @Test("interim responses come before a delay, and before a failure") func interim() async throws {
        let clock = VirtualClock()
        let hinted = MockResponse.text("body").delayed(by: .seconds(1)).interim(102).interim(103, headers: ["Link": "</a.css>"])
        let mock = MockTransport(hinted, .failure(.connectionLost).interim(104), clock: clock)
        let manager = SessionManager(mock: mock)
        let request = manager.request("https://api.example.org/")
        let received = Log<ResponseHead>()
        request.onInterimResponse { received.append($0) }
        // Without time.
        await received.wait(for: 2)
        #expect(received.elements.map(\.statusCode) == [102, 103] && received.elements.last?.value(for: "Link") == "</a.css>")
        async let value = request.serializingString().value
        await clock.advance(by: .seconds(1))
        #expect(try await value == "body")
        #expect(request.responseHead?.interimResponses == received.elements)
        let failed = manager.upload(Data("body".utf8), to: "https://api.example.org/")
        #expect(await failed.serializingData().response.error != nil)
        #expect(await failed.interimResponses.reduce(into: []) { $0.append($1.statusCode) } == [104])
    }

    @Test("a status that is not interim fails the exchange", arguments: [99, 101, 200]) func notInterim(_ status: Int) async {
        let response = await SessionManager(mock: MockResponse.text("body").interim(status)).request("\(base)/").serializingData().response
        guard case .transferFailed(let failure)? = response.error?.asCurlewError else {
            Issue.record("\(String(describing: response.error))")
            return
        }
        #expect(failure.kind == .protocolViolation && failure.message.contains("\(status)"))
    }

    @Test("transports that record pass interim responses on, and do not record them") func recordedInterim() async throws {
        let cassette = Cassette([])
        for transport: any Transport in try [
            RecordingTransport(cassette, base: MockTransport(.text("body").interim(103))),
            ReplayTransport(Cassette([]), mode: .new, base: MockTransport(.text("body").interim(103))),
        ] {
            let request = SessionManager(transport: transport).request("\(base)/")
            #expect(try await request.serializingString().value == "body")
            #expect(await request.interimResponses.reduce(into: []) { $0.append($1.statusCode) } == [103])
            #expect(request.responseHead?.interimResponses.map(\.statusCode) == [103])
        }
        let replayed = try SessionManager(transport: ReplayTransport(cassette)).request("\(base)/")
        #expect(try await replayed.serializingString().value == "body")
        #expect(replayed.responseHead?.interimResponses.isEmpty == true)
    }

    @Test("stubs are chosen by method, URL, header and body, the latest first") func choice() async throws {
        mock.stub(respond: .status(404))
        mock.stub(.get, "/users/{id}") { .text("user \($0.parameters["id"] ?? "")") }
        let posted = mock.stub(.post, "/users", body: .json(User()), respond: .status(201))
        mock.stub(.get, "/users/{id}", headers: ["Accept": "text/html"], respond: .text("page"))
        mock.stub(.get, "https://other.example.org/users/*?full=*", respond: .text("other"))
        let manager = SessionManager(mock: mock)
        func text(_ url: String, _ headers: HTTPHeaders = [:]) async -> String? {
            await manager.request(url, headers: headers).serializingString().response.value
        }
        #expect(await text("\(base)/users/a%2Fb?page=2") == "user a/b")
        #expect(await text("\(base)/users/7", ["Accept": "text/html"]) == "page")
        #expect(await text("https://other.example.org/users/7?x=1&full=yes") == "other")
        #expect(await text("https://other.example.org/users/7?x=1") == "user 7")
        for (user, status) in [(User(), 201), (User(id: 8), 404)] {
            let request = manager.request("\(base)/users", method: .post, parameters: user, encoder: JSONParameterEncoder())
            #expect(await request.serializingData().response.response?.statusCode == status)
        }
        #expect(posted.count == 1)
        #expect(try posted.requests.first?.decode(User.self) == User())
        #expect(mock.requests(.get, "/users/*").count == 4)
        mock.remove(posted)
        let request = manager.request("\(base)/users", method: .post, parameters: User(), encoder: JSONParameterEncoder())
        #expect(await request.serializingData().response.response?.statusCode == 404)
    }

    @Test("enqueued responses come before stubs, once each") func queue() async {
        mock.stub(respond: .text("stub"))
        mock.enqueue(.text("one"), .text("two"))
        let manager = SessionManager(mock: mock)
        var seen: [String?] = []
        for _ in 1...3 { seen.append(await manager.request("\(base)/").serializingString().response.value) }
        #expect(seen == ["one", "two", "stub"])
    }

    @Test("an unmatched request fails with what was asked and what there is, without secrets") func unmatched() async throws {
        mock.stub(.get, "/users/{id}", headers: ["Authorization": "Bearer s3cret"], respond: .status(200))
        mock.stub(.post, "/users", body: .form(["name": "x"]), respond: .status(200))
        let manager = SessionManager(mock: mock)
        let url = "https://bob:s3cret@api.example.org/nothing?access_token=s3cret"
        let response = await manager.request(url, headers: ["Authorization": "Bearer s3cret"]).serializingData().response
        let error = try #require(response.error as? UnmatchedRequest)
        #expect(
            error.description == """
                No stub matches GET https://api.example.org/nothing?access_token=<hidden>. There are:
                  1. GET /users/{id}, with Authorization (used 0 times)
                  2. POST /users, a form with name (used 0 times)
                """)
        #expect(error.errorDescription == error.description)
        #expect(mock.unmatchedRequests.map(\.path) == ["/nothing"])
        for text in ["\(mock.requests)", String(reflecting: mock.requests), "\(mock.requests[0].customMirror.children.map { $0 })"] {
            #expect(!text.contains("s3cret"))
        }
        mock.removeAllStubs()
        let bare = await manager.request("\(base)/x").serializingData().response
        #expect("\(bare.error as? UnmatchedRequest, default: "")" == "No stub matches GET https://api.example.org/x: there is none")
    }

    static let kinds: [TransferFailure.Kind] = [
        .invalidURL, .unsupportedScheme, .nameResolution, .proxy, .connect, .secureConnection, .serverCertificate, .clientCertificate,
        .connectTimeout, .firstByteTimeout, .idleTimeout, .totalTimeout, .queueTimeout, .deadline, .connectionLost, .protocolViolation,
        .decoding, .tooLarge, .requestBody, .notInCache, .addressNotAllowed, .cellularNotAllowed, .configuration, .other,
    ]

    @Test("each kind of failure arrives", arguments: kinds) func failure(_ kind: TransferFailure.Kind) async throws {
        let manager = SessionManager(mock: .failure(kind, message: "Because"))
        let response = await manager.request("\(base)/x?access_token=s3cret").serializingData().response
        guard case CurlewError.transferFailed(let failure)? = response.error else {
            Issue.record("\(String(describing: response.error))")
            return
        }
        #expect(failure.kind == kind && failure.message == "Because" && !failure.url.contains("s3cret"))
        #expect(failure.requestWasSent == (failure.phase >= .sending))
    }

    @Test("a transfer fails within its body, and with an error of one's own") func cut() async throws {
        let manager = SessionManager(mock: .text("0123456789").failing(after: 4), .error(TestError("mine")))
        let response = await manager.request("\(base)/").serializingData().response
        guard case CurlewError.transferFailed(let failure)? = response.error else {
            Issue.record("\(String(describing: response.error))")
            return
        }
        #expect(failure.kind == .connectionLost && failure.phase == .receivingBody && failure.bytesReceived == 4)
        #expect(await manager.request("\(base)/").serializingData().response.error as? TestError == TestError("mine"))
    }

    @Test("closures may suspend, and throw") func closures() async {
        mock.stub("/late") { request in
            await Task.yield()
            return .text(request.query("q") ?? "")
        }
        mock.stub("/throws") { _ in throw TestError("thrown") }
        let manager = SessionManager(mock: mock)
        #expect(await manager.request("\(base)/late?q=a+b").serializingString().response.value == "a b")
        #expect(await manager.request("\(base)/throws").serializingString().response.error as? TestError == TestError("thrown"))
    }

    @Test("a response to HEAD has no body, and files are read") func headAndFiles() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("in a file".utf8), to: "file")
        mock.stub("/file", respond: .file(file, type: "text/plain"))
        mock.stub("/missing", respond: .file(directory.file("missing")))
        let manager = SessionManager(mock: mock)
        #expect(await manager.request("\(base)/file").serializingString().response.value == "in a file")
        let head = await manager.request("\(base)/file", method: .head).serializingData().response
        #expect(head.response?.value(forHTTPHeaderField: "Content-Length") == "9")
        #expect(head.data?.isEmpty ?? true)
        #expect(await manager.request("\(base)/missing").serializingData().response.error is CocoaError)
    }

    @Test("redirects, cookies and credentials are the library's own") func aboveTheTransport() async throws {
        mock.stub("/a", respond: .redirect(to: "/b").header("Set-Cookie", "k=v; Path=/"))
        mock.stub("/b", respond: .status(401).header("WWW-Authenticate", #"Basic realm="r""#))
        mock.stub("/b", headers: [.authorization(username: "u", password: "p")], respond: .text("in"))
        let storage = HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: "curlew-tests-\(UUID().uuidString)")
        storage.cookieAcceptPolicy = .always
        let manager = SessionManager(mock: mock) { $0.cookieStorage = storage }
        let text = try await manager.request("\(base)/a").authenticate(user: "u", password: "p").validate().serializingString().value
        #expect(text == "in")
        #expect(mock.requests.map(\.path) == ["/a", "/b", "/b"])
        #expect(mock.requests.map { $0.headers["Cookie"] } == [nil, "k=v", "k=v"])
    }

    @Test("reading pieces: streams, events") func streams() async throws {
        // More than a buffer takes, so that there are pieces however late the reader comes.
        mock.stub("/stream", respond: .data(Data(repeating: 1, count: 4_000_000)).inPieces(of: 100_000))
        mock.stub("/events", respond: .events("one", "two\nlines"), .status(204))
        let manager = SessionManager(mock: mock)
        var (count, pieces) = (0, 0)
        for try await piece in manager.streamRequest("\(base)/stream").bodyStream() {
            count += piece.count
            pieces += 1
        }
        #expect(count == 4_000_000 && pieces > 1)
        var events: [String] = []
        var configuration = EventStreamConfiguration()
        configuration.clock = VirtualClock(.automatic)
        for try await event in manager.eventStream(try URLRequest(url: "\(base)/events", method: .get), configuration: configuration) {
            events.append(event.data)
        }
        #expect(events == ["one", "two\nlines"])
    }

    @Test("a raw stream is served by a closure, and refused without one") func rawStream() async throws {
        mock.onStream("echo.example.org:7") { connection in
            while let bytes = await connection.receive() { await connection.send(bytes) }
        }
        let manager = SessionManager(mock: mock)
        let stream = manager.stream(withHostName: "echo.example.org", port: 7)
        try await stream.write(Data("hello".utf8))
        stream.closeWrite()
        var received = Data()
        for try await piece in stream.bytes() { received += piece }
        #expect(received == Data("hello".utf8))
        try await stream.waitUntilCompleted()
        let refused = manager.stream(withHostName: "other.example.org", port: 7)
        await #expect(throws: UnmatchedRequest.self) { try await refused.waitUntilCompleted() }
    }
}
