// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import CurlewTransport
import Testing

@testable import CurlewCore

// A1.5: pages in the core.
@Suite(.timeLimit(.minutes(1))) struct PagesTests {
    private struct Numbers: Decodable, Equatable {
        let items: [Int]
        var next: String?
    }

    private static let url = "http://api.test/items?sort=up"

    /// A transport that responds by the URL after the host, and with 404 to other ones.
    private static func mock(_ pages: [String: (link: String?, body: String)]) -> MockTransport {
        MockTransport { request in
            guard let page = pages[String(request.url.dropFirst("http://api.test".count))] else { return .response(404, [:], "") }
            return .response(200, page.link.map { ["Link": $0] } ?? [:], page.body)
        }
    }

    private static func makeLinked() -> MockTransport {
        mock([
            "/items?sort=up": ("</items?page=2>; rel=\"next\", </>; rel=first", "[0, 1]"),
            "/items?page=2": ("<http://api.test/items?page=3>; rel=next", "[2]"), "/items?page=3": ("</>; rel=prev", "[]"),
        ])
    }

    /// Returns what was read, and the error that ended it.
    private func read<Page>(_ pages: PageSequence<Page>) async -> (pages: [Page], error: (any Error)?) {
        var read: [Page] = []
        do {
            for try await page in pages { read.append(page) }
            return (read, nil)
        } catch {
            return (read, error)
        }
    }

    private func targets(_ mock: MockTransport) -> [String] { mock.started.all.map(\.request.url) }

    @Test func `pages are linked by Link fields, and each is requested when it is asked for`() async throws {
        let mock = Self.makeLinked()
        let manager = SessionManager(mock: mock)
        let pages = manager.pages(of: [Int].self, from: Self.url)
        #expect(mock.started.count == 0)
        var iterator = pages.makeAsyncIterator()
        let first = try #require(try await iterator.next())
        #expect(first.value == [0, 1] && first.index == 0 && first.url?.absoluteString == Self.url)
        #expect(first.headers.links.count == 2)
        #expect(mock.started.count == 1)
        #expect(try await iterator.next()?.value == [2])
        #expect(try await iterator.next()?.value == [])
        #expect(try await iterator.next() == nil)
        #expect(targets(mock) == [Self.url, "http://api.test/items?page=2", "http://api.test/items?page=3"])
        var elements: [Int] = []
        for try await number in pages.elements() { elements.append(number) }
        #expect(elements == [0, 1, 2] && mock.started.count == 6)
    }

    @Test func `pages are linked by a cursor of the body, a reference in it, and numbers`() async throws {
        let mock = Self.mock([
            "/items?sort=up": (nil, #"{"items": [0], "next": "a/b"}"#), "/items?sort=up&after=a/b": (nil, #"{"items": [1], "next": ""}"#),
            "/n": (nil, #"{"items": [0], "next": "?page=2"}"#), "/n?page=2": (nil, #"{"items": [1]}"#),
            "/p?per_page=2&page=1": (nil, "[0, 1]"), "/p?per_page=2&page=2": (nil, "[2]"),
        ])
        let manager = SessionManager(mock: mock)
        let byKeyPath = manager.pages(of: Numbers.self, from: Self.url, by: .cursor("after", next: \.value.next))
        #expect(await read(byKeyPath).pages.map(\.value.items) == [[0], [1]])
        let byClosure = manager.pages(of: Numbers.self, from: Self.url, by: .cursor("after") { page in page.value.next })
        #expect(await read(byClosure).pages.count == 2)
        let byReference = manager.pages(of: Numbers.self, from: "http://api.test/n", by: .url(\.value.next))
        #expect(await read(byReference).pages.map(\.value.items) == [[0], [1]])
        var numbers: [Int] = []
        let numbered = manager.pages(of: [Int].self, from: "http://api.test/p", by: .pageNumber(size: 2))
        do { for try await number in numbered.elements() { numbers.append(number) } } catch { Issue.record(error) }
        #expect(numbers == [0, 1, 2], "\(targets(mock))")
    }

    @Test func `a closure gives the next request, with the cursor in its body`() async throws {
        let mock = MockTransport { request in
            let body = (request.body as? DataBody).map { String(decoding: $0.data, as: UTF8.self) } ?? ""
            let next = ["": "a", "a": "b", "b": "a"][body] ?? ""
            return .response(200, ["X-Method": request.method.rawValue], #"{"items": [\#(body.count)], "next": "\#(next)"}"#)
        }
        var first = try URLRequest(url: Self.url, method: .query, headers: ["X-Field": "1"])
        let base = first
        first.httpBody = Data()
        let scheme = PaginationScheme<Numbers> { page in
            var request = base
            request.httpBody = page.value.next.map { Data($0.utf8) }
            return .request(request)
        }
        let (pages, error) = await read(SessionManager(mock: mock).pages(of: Numbers.self, from: first, by: scheme))
        #expect(pages.map(\.value.next) == ["a", "b", "a"])
        guard case .repeatedPage? = error as? PaginationError else { throw error ?? TestError("no error") }
        #expect(pages.allSatisfy { $0.headers.value(for: "X-Method") == "QUERY" })
        #expect(mock.started.all.allSatisfy { $0.request.headers.value(for: "X-Field") == "1" })
    }

    @Test(arguments: ["</items?sort=up>; rel=next", "<http://api.test/items?sort=up>; rel=next"])
    func `a page that leads to itself is not requested again`(_ link: String) async throws {
        let mock = Self.mock(["/items?sort=up": (link, "[0]")])
        let (pages, error) = await read(SessionManager(mock: mock).pages(of: [Int].self, from: Self.url))
        guard case .repeatedPage? = error as? PaginationError else { throw error ?? TestError("no error") }
        #expect(pages.count == 1 && mock.started.count == 1)
    }

    @Test func `a loop over several pages is found, and a number of pages is the limit`() async throws {
        let mock = Self.mock([
            "/items?sort=up": ("</2>; rel=next", "[0]"), "/2": ("</3>; rel=next", "[1]"), "/3": ("</2>; rel=next", "[2]"),
        ])
        let manager = SessionManager(mock: mock)
        let (pages, error) = await read(manager.pages(of: [Int].self, from: Self.url))
        guard case .repeatedPage? = error as? PaginationError else { throw error ?? TestError("no error") }
        #expect(pages.count == 3 && mock.started.count == 3)
        var scheme = PaginationScheme<[Int]> { .query(["page": $0.index]) }
        scheme.maximumPages = 3
        let endless = MockTransport.answering(200, [:], "[]")
        let limited = await read(SessionManager(mock: endless).pages(of: [Int].self, from: Self.url, by: scheme))
        #expect(limited.error as? PaginationError == .tooManyPages(limit: 3))
        #expect(limited.pages.count == 3 && endless.started.count == 3)
    }

    @Test(arguments: ["<http://other.test/>; rel=next", "<https://api.test/>; rel=next", "<//api.test:81/>; rel=next"])
    func `a page of another origin is not requested`(_ link: String) async throws {
        let mock = Self.mock(["/items?sort=up": (link, "[0]"), "/": (nil, "[1]")])
        let manager = SessionManager(mock: mock)
        let (_, error) = await read(manager.pages(of: [Int].self, from: Self.url))
        if link.contains("https:") {
            // The same host's, by TLS.
            #expect(error == nil || statusOf(error) == 404)
            #expect(mock.started.count == 2)
        } else {
            guard case .otherOrigin? = error as? PaginationError else { throw error ?? TestError("no error") }
            #expect(mock.started.count == 1)
        }
    }

    @Test(arguments: [false, true])
    func `a page of another origin that is allowed is requested without credentials, unless they are`(_ isAllowed: Bool) async throws {
        let links = [
            "http://api.test/": "<http://other.test/2>; rel=next", "http://other.test/2": "<http://other.test/3>; rel=next",
            "http://other.test/3": "<http://api.test/4>; rel=next",
        ]
        let mock = MockTransport { request in .response(200, links[request.url].map { ["Link": $0] } ?? [:], "[1]") }
        let manager = SessionManager(mock: mock) { configuration in
            configuration.headers = ["X-Api-Key": "session", "X-Plain": "session"]
            configuration.signer = SignedResponseTests.Signer(identity: "a", field: "X-Signature")
        }
        manager.adapter = Adapting { request in
            var request = request
            request.setValue("adapter", forHTTPHeaderField: "X-Auth-Token")
            return request
        }
        var scheme = PaginationScheme<[Int]>.link()
        scheme.followsOtherOrigins = true
        scheme.sendsCredentialsToOtherOrigins = isAllowed
        let pages = manager.pages(
            of: [Int].self, from: "http://api.test/", by: scheme, headers: ["Authorization": "Bearer own", "X-Own": "own"])
        #expect(await read(pages).pages.count == 4)
        for exchange in mock.started.all {
            let headers = exchange.request.headers
            let isSent = isAllowed || exchange.request.url.contains("api.test")
            for name in ["Authorization", "X-Api-Key", "X-Auth-Token", "X-Signature"] {
                #expect((headers.value(for: name) != nil) == isSent, "\(name)")
            }
            #expect(headers.value(for: "X-Own") == "own" && headers.value(for: "X-Plain") == "session")
        }
    }

    @Test(arguments: [false, true])
    func `another origin's challenge is not answered with the request's credential, unless that is allowed`(_ isAllowed: Bool) async throws
    {
        let mock = MockTransport { request in
            if request.url.contains("api.test") { return .response(200, ["Link": "<http://other.test/2>; rel=next"], "[1]") }
            guard request.headers["Authorization"] == nil else { return .response(200, [:], "[2]") }
            return .response(401, ["WWW-Authenticate": "Basic realm=\"x\""], "")
        }
        var scheme = PaginationScheme<[Int]>.link()
        scheme.followsOtherOrigins = true
        scheme.sendsCredentialsToOtherOrigins = isAllowed
        let pages = SessionManager(mock: mock).pages(
            of: [Int].self, from: "http://api.test/", by: scheme,
            validation: { $0.authenticate(user: "user", password: "s3cret").validate() })
        let (read, error) = await read(pages)
        #expect(read.count == (isAllowed ? 2 : 1) && statusOf(error) == (isAllowed ? nil : 401))
        #expect(mock.started.count == (isAllowed ? 3 : 2))
    }

    @Test func `an interceptor adapts and retries each page, and validations refuse it`() async throws {
        let mock = MockTransport.answering(inTurn: [
            .response(200, ["Link": "</2>; rel=next"], "[0]"), .response(503, [:], "busy"),
            .response(200, ["Link": "</3>; rel=next"], "[1]"), .response(422, [:], #"{"items": [], "next": "no"}"#),
        ])
        let adapted = Lock(0)
        let interceptor = Interceptor(
            adapters: [
                Adapting { request in
                    adapted.withLock { $0 += 1 }
                    return request
                }
            ],
            retriers: [Retrying { request, error, completion in completion(statusOf(error) == 503 && request.retryCount == 0, 0) }])
        let pages = SessionManager(mock: mock).pages(
            of: [Int].self, from: Self.url, validation: { $0.validate(decoding: Numbers.self) }, interceptor: interceptor)
        let (read, error) = await read(pages)
        #expect(read.map(\.value) == [[0], [1]])
        #expect(adapted.withLock { $0 } == 4 && mock.started.count == 4)
        #expect(error?.asCurlewError?.decodedBody(as: Numbers.self)?.next == "no")
        let plain = SessionManager(mock: .answering(404, [:], "[]"))
        #expect(statusOf(await self.read(plain.pages(of: [Int].self, from: Self.url)).error) == 404)
    }

    @Test func `cancelling the task cancels the request in flight, and leaving the loop makes no other`() async throws {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        let task = Task { await read(manager.pages(of: [Int].self, from: Self.url)).error }
        _ = await mock.started[0]
        task.cancel()
        #expect(await task.value is CancellationError)
        #expect(await eventually { manager.requests.isEmpty })
        let linked = Self.makeLinked()
        for try await _ in SessionManager(mock: linked).pages(of: [Int].self, from: Self.url) { break }
        #expect(linked.started.count == 1)
    }

    @Test func `the deadline of the task bounds all pages`() async throws {
        let clock = VirtualClock()
        let mock = MockTransport(clock: clock) { request in
            request.url.contains("page=2") ? [.stall] : .response(200, ["Link": "</items?page=2>; rel=next"], "[0]")
        }
        let manager = SessionManager(mock: mock) { $0.clock = clock }
        let count = Lock(0)
        let reading = Task {
            try await clock.run {
                try await withDeadline(.seconds(2)) {
                    for try await _ in manager.pages(of: [Int].self, from: Self.url) { count.withLock { $0 += 1 } }
                }
            }
        }
        _ = await mock.started[1]
        await clock.advance(by: .seconds(2))
        do {
            try await reading.value
            Issue.record("nothing was thrown")
        } catch {
            #expect(kindOf(error) == .deadline)
        }
        #expect(count.withLock { $0 } == 1)
    }

    @Test func `an invalid URL, an invalid link and undecodable pages end the sequence`() async throws {
        let manager = SessionManager(mock: .answering(200, ["Link": "<http://[>; rel=next"], "[0]"))
        let invalid = await read(manager.pages(of: [Int].self, from: "not a url")).error
        guard case CurlewError.invalidURL? = invalid else { throw invalid ?? TestError("no error") }
        #expect(await read(manager.pages(of: [Int].self, from: Self.url)).error as? PaginationError == .invalidLink("http://["))
        let undecodable = await read(manager.pages(of: [String].self, from: Self.url)).error
        #expect(undecodable?.asCurlewError?.isResponseSerializationError == true)
    }

    @Test func `no text of pages and their errors shows a secret`() throws {
        let secret = "http://u:s3cret@h/?access_token=s3cret"
        let url = try #require(URL(string: secret))
        let errors: [PaginationError] = [
            .invalidLink(secret), .otherOrigin(url), .repeatedPage(.url(url)), .repeatedPage(.request(URLRequest(url: url))),
            .repeatedPage(.query(["access_token": "s3cret"])), .tooManyPages(limit: 3),
        ]
        for error in errors {
            var text = "\(error) \(error.localizedDescription) \(String(reflecting: error))"
            dump(error, to: &text)
            #expect(!text.contains("s3cret"), "\(text)")
            #expect("\(error)".count > 20)
        }
    }
}
