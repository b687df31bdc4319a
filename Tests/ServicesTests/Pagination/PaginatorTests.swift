// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewServices
import CurlewTestSupport
import CurlewTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct PaginatorTests {
    private typealias Numbers = Paginator<NumbersRequest, NumberPage, TestService>

    private func paginator(_ server: LoopbackServer, _ request: NumbersRequest = NumbersRequest(), chunk: Int = 3) -> Numbers {
        request.schedule(forPaginationWith: TestService(server), chunk: chunk, paginatedType: NumberPage.self)
    }

    @Test func pagesAreFetchedUntilTheLast() async throws {
        let server = try NumberServer.make()
        defer { server.stop() }
        let request = NumbersRequest(header: ["X-A": "1"], query: ["sort": "up", "page": "ignored"])
        var pages: [NumberPage] = []
        for try await page in paginator(server, request).pages { pages.append(page) }
        #expect(pages.map(\.data) == [[0, 1, 2], [3, 4, 5], [6]])
        #expect(pages.map(\.count) == [3, 3, 1])
        #expect(pages.map(\.isLastPage) == [false, false, true])
        #expect(server.requests.map(\.target) == (1...3).map { "/numbers?sort=up&page=\($0)&chunk=3" })
        #expect(server.requests.allSatisfy { $0.header("X-A") == "1" })
    }

    @Test func firstPageMayBeNumberZero() async throws {
        let server = try NumberServer.make()
        defer { server.stop() }
        let paginator = NumbersRequest(routes: "zero").schedule(
            forPaginationWith: TestService(server), chunk: 4, zeroBasedPageIndex: true, paginatedType: ZeroBasedPage.self)
        var numbers: [Int] = []
        for try await number in paginator.elements { numbers.append(number) }
        #expect(numbers == Array(0..<7))
        #expect(server.requests.map { $0.query("page") } == ["0", "1"])
    }

    @Test func elementsOfAllPagesAreInOrder() async throws {
        let server = try NumberServer.make()
        defer { server.stop() }
        let paginator = paginator(server)
        var first: [Int] = []
        for try await number in paginator.elements.prefix(4) { first.append(number) }
        #expect(first == [0, 1, 2, 3] && server.requestCount == 2)
        var all: [Int] = []
        for try await number in paginator.elements { all.append(number) }
        #expect(all == Array(0..<7) && server.requestCount == 5)
    }

    @Test func decodeReceivesDataAndRequest() async throws {
        let server = try NumberServer.make()
        defer { server.stop() }
        let paginator = NumbersRequest(query: ["factor": 2]).schedule(forPaginationWith: TestService(server), chunk: 9) { data, request in
            var page = try request.decoder.decode(NumberPage.self, from: data)
            let factor = request.query["factor"].flatMap { Int($0) } ?? 0
            page.data = page.data.map { $0 * factor }
            return page
        }
        var pages: [[Int]] = []
        for try await page in paginator.pages { pages.append(page.data) }
        #expect(pages == [[0, 2, 4, 6, 8, 10, 12]])
    }

    /// A request whose every part must be kept in the requests for its pages.
    private struct PostedRequest: ServiceRequest {
        typealias Result = [Int]
        let url: (any URLConvertible)?
        var method: HTTPMethod { .post }
        var body: any HTTPBody { HTTPData.JSON(["filter": "odd"]) }
        func decode(_ data: Data) throws -> [Int] { [] }
        func prepare(_ request: URLRequest) throws -> URLRequest {
            var request = request
            request.setValue("1", forHTTPHeaderField: "X-Prepared")
            return request
        }
    }

    @Test func pageRequestKeepsAllPartsOfItsBase() async throws {
        let server = try NumberServer.make()
        defer { server.stop() }
        var service = TestService(server)
        service.apiURL = "http://127.0.0.1:1/"
        let paginator = PostedRequest(url: server.url("/numbers")).schedule(forPaginationWith: service, chunk: 7) { data, _ in
            try JSONDecoder().decode(NumberPage.self, from: data)
        }
        for try await _ in paginator.pages {}
        let request = try #require(server.requests.first)
        #expect(request.method == "POST" && request.header("X-Prepared") == "1" && request.body == Data(#"{"filter":"odd"}"#.utf8))
    }

    @Test func failureEndsThePages() async throws {
        let server = try NumberServer.make { _, _ in }
        defer { server.stop() }
        let paginator = paginator(server, NumbersRequest(routes: "missing"))
        var iterator = paginator.pages.makeAsyncIterator()
        #expect(await serviceError { try await iterator.next() }?.name == "requestFailed")
        #expect(try await iterator.next() == nil)
        #expect(server.requestCount == 1)
    }

    @Test func pagesAreRetried() async throws {
        let count = Lock(0)
        let server = try LoopbackServer { _, _ in
            if count.next() == 1 { return .status(503) }
            return try .json(NumberPage(data: [7], page: 1, from: 0, to: 1, chunk: 1, totalCount: 1, totalPageCount: 1))
        }
        defer { server.stop() }
        var service = TestService(server)
        service.retrierFactory = TestRetrier.factory { _ in true }
        let paginator = NumbersRequest().schedule(forPaginationWith: service, chunk: 1, paginatedType: NumberPage.self)
        var numbers: [Int] = []
        for try await number in paginator.elements { numbers.append(number) }
        #expect(numbers == [7] && server.requestCount == 2)
    }

    @Test(arguments: [(false, 0, true), (false, 1, true), (false, 2, false), (true, 0, true), (true, 1, true), (true, 2, false)])
    func lastPageIsRecognizedByItsNumber(_ isZeroBased: Bool, _ pageCount: Int, _ expected: Bool) {
        let first = isZeroBased ? 0 : 1
        let isLast =
            isZeroBased
            ? ZeroBasedPage(data: [], page: first, from: 0, to: 0, chunk: 1, totalCount: 0, totalPageCount: pageCount).isLastPage
            : NumberPage(data: [], page: first, from: 0, to: 0, chunk: 1, totalCount: 0, totalPageCount: pageCount).isLastPage
        #expect(isLast == expected)
    }

    // MARK: Ticks

    @Test func tickFetchesAPage() async throws {
        let server = try NumberServer.make()
        defer { server.stop() }
        let (ticks, tick) = AsyncStream.makeStream(of: Void.self)
        var pages = paginator(server).connect(with: ticks).makeAsyncIterator()
        for expected in [[0, 1, 2], [3, 4, 5], [6]] {
            #expect(try await pages.next()?.data == expected)
            tick.yield()
        }
        #expect(try await pages.next() == nil)
        #expect(server.requestCount == 3)
    }

    @Test func ticksDuringAFetchAreDropped() async throws {
        let gate = Gate()
        let server = try NumberServer.make { _, connection in connection.wait(until: gate) }
        defer { server.stop() }
        // This sequence records when its next element is requested: by then, all earlier ticks were processed.
        let seen = Gate()
        let pending = Lock(3)
        let ticks = AsyncStream<Void> {
            let rest = pending.withLock { rest in
                rest -= 1
                return rest
            }
            if rest >= 0 { return () }
            seen.open()
            return nil
        }
        let connection = paginator(server).connect(with: ticks)
        var pages = connection.makeAsyncIterator()
        await seen.wait()
        gate.open()
        #expect(try await pages.next()?.data == [0, 1, 2])
        #expect(try await pages.next() == nil)
        #expect(server.requestCount == 1)
    }

    @Test func iteratorsOfAConnectionShareItsPages() async throws {
        let server = try NumberServer.make()
        defer { server.stop() }
        let (ticks, tick) = AsyncStream.makeStream(of: Void.self)
        let paginator = paginator(server, chunk: 4)
        let connection = paginator.connect(with: ticks)
        var (first, second) = (connection.makeAsyncIterator(), connection.makeAsyncIterator())
        #expect(try await first.next()?.page == 1)
        #expect(try await second.next()?.page == 1)
        var late = connection.makeAsyncIterator()
        tick.yield()
        #expect(try await first.next()?.page == 2)
        #expect(try await second.next()?.page == 2)
        #expect(try await late.next()?.page == 2)
        #expect(try await late.next() == nil)
        #expect(server.requestCount == 2)

        // Another connection makes its own requests.
        let (otherTicks, otherTick) = AsyncStream.makeStream(of: Void.self)
        var other = paginator.connect(with: otherTicks).makeAsyncIterator()
        #expect(try await other.next()?.page == 1)
        otherTick.finish()
        #expect(try await other.next() == nil)
        #expect(server.requestCount == 3)
    }

    @Test func failureEndsAConnectionForAllIterators() async throws {
        let server = try NumberServer.make()
        defer { server.stop() }
        let connection = paginator(server, NumbersRequest(routes: "missing")).connect(with: AsyncStream<Void> { nil })
        for _ in 1...2 {
            var pages = connection.makeAsyncIterator()
            #expect(await serviceError { try await pages.next() }?.name == "requestFailed")
        }
        #expect(server.requestCount == 1)
    }

    @Test func throwingTicksEndAConnection() async throws {
        let server = try NumberServer.make()
        defer { server.stop() }
        let ticks = AsyncThrowingStream<Void, any Error> { $0.finish(throwing: UserError()) }
        var pages = paginator(server).connect(with: ticks).makeAsyncIterator()
        #expect(try await pages.next()?.page == 1)
        await #expect(throws: UserError.self) { try await pages.next() }
    }

    @Test func releasingTheLastIteratorCancelsTheRequest() async throws {
        let gate = Gate()
        let server = try NumberServer.make { _, connection in connection.wait(until: gate) }
        defer {
            gate.open()
            server.stop()
        }
        let connection = paginator(server).connect(with: AsyncStream<Void> { nil })
        let task = Task {
            for try await _ in connection {}
        }
        #expect(await gate.arrivals())
        task.cancel()
        _ = await task.result
        #expect(await server.waitForConnectionsToClose())
    }
}

@Suite(.timeLimit(.minutes(1)))
struct PaginationSchemeTests {
    private struct CursorRequest: JSONServiceRequest {
        typealias Result = CursorPage
        var routes: HTTPRoute { "cursor" }
    }

    private func numbers(_ scheme: PaginationScheme<[Int]>, _ route: HTTPRoute) async throws -> (numbers: [Int], targets: [String]) {
        let server = try NumberServer.make()
        defer { server.stop() }
        var numbers: [Int] = []
        let request = NumbersRequest(routes: route, query: ["sort": "up"])
        for try await number in request.pages(from: TestService(server), by: scheme).elements() { numbers.append(number) }
        return (numbers, server.requests.map(\.target))
    }

    @Test func pagesByNumberEndWithAnEmptyPage() async throws {
        let (numbers, targets) = try await numbers(.pageNumber(), "plain")
        #expect(numbers == Array(0..<7))
        #expect(targets == (1...4).map { "/plain?sort=up&page=\($0)" })
    }

    @Test func pagesByNumberEndWithAShortPage() async throws {
        let (numbers, targets) = try await numbers(.pageNumber(size: 3), "plain")
        #expect(numbers == Array(0..<7))
        #expect(targets == (1...3).map { "/plain?sort=up&per_page=3&page=\($0)" })
    }

    @Test func pagesByNumberEndWhereTheClosureSaysSo() async throws {
        let scheme = PaginationScheme<[Int]>.pageNumber("page", startingAt: 2) { $0.index == 1 }
        let (numbers, targets) = try await numbers(scheme, "plain")
        #expect(numbers == [3, 4, 5, 6] && targets == ["/plain?sort=up&page=2", "/plain?sort=up&page=3"])
    }

    @Test func pagesByOffset() async throws {
        let (numbers, targets) = try await numbers(.offset(limit: 3), "offset")
        #expect(numbers == Array(0..<7))
        #expect(targets == [0, 3, 6].map { "/offset?sort=up&limit=3&offset=\($0)" })
    }

    @Test func pagesByCursor() async throws {
        let server = try NumberServer.make()
        defer { server.stop() }
        let pages = CursorRequest().pages(from: TestService(server), by: .cursor(size: ["size": 3]) { $0.value.next })
        var numbers: [Int] = []
        for try await number in pages.elements({ $0.value.items }) { numbers.append(number) }
        #expect(numbers == Array(0..<7))
        #expect(server.requests.map(\.target) == ["/cursor?size=3", "/cursor?size=3&cursor=c/3", "/cursor?size=3&cursor=c/6"])
    }

    @Test func pagesByLink() async throws {
        let (numbers, targets) = try await numbers(.link(), "link")
        #expect(numbers == Array(0..<7))
        #expect(targets == ["/link?sort=up", "/link?page=2", "/link?page=3"])
    }

    private func end(link: String) async throws -> (name: String?, requests: Int) {
        let server = try LoopbackServer { _, _ in
            ServerResponse(status: 200, headers: [ServerField("Link", link)], body: .data(Data("[1]".utf8)))
        }
        defer { server.stop() }
        let error = await serviceError {
            for try await _ in NumbersRequest().pages(from: TestService(server), by: .link()) {}
        }
        return (error?.name, server.requestCount)
    }

    @Test(arguments: ["<http://other.example/>; rel=next", "<https://127.0.0.1/>; rel=next", "<http://127.0.0.1:1/>; rel=next"])
    func linkToAnotherOriginIsNotFollowed(_ link: String) async throws {
        let end = try await end(link: link)
        #expect(end.name == "invalidResponse" && end.requests == 1)
    }

    @Test(arguments: [true, false]) func pageOfAnotherOriginIsRequestedOnlyIfAllowed(_ isAllowed: Bool) async throws {
        let other = try LoopbackServer { _, _ in .ok("[2]", type: "application/json") }
        let server = try LoopbackServer { _, _ in .ok("[1]", type: "application/json") }
        defer {
            server.stop()
            other.stop()
        }
        let next = try #require(URL(string: other.url("/")))
        // As with a URL that the server writes into its JSON.
        var scheme = PaginationScheme<[Int]> { $0.index == 0 ? .url(next) : nil }
        scheme.followsOtherOrigins = isAllowed
        let numbers = Log<Int>()
        let request = NumbersRequest(header: ["Authorization": "Bearer s3cret"])
        let error = await serviceError {
            for try await number in request.pages(from: TestService(server), by: scheme).elements() { numbers.append(number) }
        }
        #expect(other.requests.allSatisfy { $0.header("Authorization") == nil } && server.requests[0].header("Authorization") != nil)
        #expect(error?.name == (isAllowed ? nil : "invalidResponse"))
        #expect(other.requestCount == (isAllowed ? 1 : 0))
        #expect(numbers.elements == (isAllowed ? [1, 2] : [1]))
    }

    @Test(arguments: [("https://api.test/2", true), ("https://api.test:444/2", false), ("https://other.test/2", false)])
    func pageOfTheSameHostMayBeSecure(_ next: String, _ isAllowed: Bool) async throws {
        let pages = ["[1]", "[2]"].map { MockResponse.status(200, headers: ["Link": "<\(next)>; rel=next"], data: Data($0.utf8)) }
        let mock = MockTransport(pages[0], pages[1])
        let server = try LoopbackServer { _, _ in .status(500) }
        defer { server.stop() }
        var service = TestService(server)
        service.apiURL = "http://api.test"
        service.usesSecureProtocol = nil
        service.sessionManager = SessionManager(mock: mock)
        let numbers = Log<Int>()
        let error = await serviceError {
            for try await number in NumbersRequest().pages(from: service, by: .link()).elements() { numbers.append(number) }
        }
        // The second page leads to itself.
        #expect(error?.name == "invalidResponse")
        #expect(mock.requests.count == (isAllowed ? 2 : 1))
        #expect(numbers.elements == (isAllowed ? [1, 2] : [1]))
    }

    @Test func linkWithAnAnchorIsNotFollowed() async throws {
        let end = try await end(link: "</x>; rel=next; anchor=\"#a\", </y>; rel=prev")
        #expect(end.name == nil && end.requests == 1)
    }

    // A1.5
    @Test func pageMayHaveARequestOfItsOwn() async throws {
        let server = try LoopbackServer { request, _ in .ok(request.body.isEmpty ? "[1]" : "[2]", type: "application/json") }
        defer { server.stop() }
        var next = try URLRequest(url: server.url("/search"), method: .post, headers: ["X-Page": "2"])
        next.httpBody = Data("cursor".utf8)
        let scheme = PaginationScheme<[Int]> { [next] page in page.index == 0 ? .request(next) : nil }
        var numbers: [Int] = []
        for try await number in NumbersRequest().pages(from: TestService(server), by: scheme).elements() { numbers.append(number) }
        #expect(numbers == [1, 2])
        #expect(server.requests.map(\.target) == ["/numbers", "/search"] && server.requests.last?.method == "POST")
        #expect(server.requests.last?.header("X-Page") == "2" && server.requests.last?.body == Data("cursor".utf8))
    }

    @Test func pageThatLeadsToItselfEndsThePages() async throws {
        let end = try await end(link: "</numbers>; rel=next")
        #expect(end.name == "invalidResponse" && end.requests == 1)
    }
}
