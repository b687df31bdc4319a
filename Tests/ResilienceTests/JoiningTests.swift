// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewResilience
import CurlewTestSupport
import CurlewTesting
import CurlewTransport
import Testing

/// Requests that join a transfer, at all times of its life, and what each of them still has of its own.
@Suite(.timeLimit(.minutes(1))) struct JoiningTests {
    private let session = ScriptedSession(Resilience(coalescing: Coalescing()))

    private var coalesced: Int { session.events.count { $0.action == .coalesced } }

    // MARK: Joining

    @Test("a suspended transfer that is joined runs for the one that is not suspended") func joinsSuspended() async throws {
        let first = session.request()
        let exchange = await session.exchange(0)
        first.suspend()
        #expect(await eventually { exchange.isSuspended })
        let second = session.request()
        #expect(await eventually { !exchange.isSuspended })
        exchange.respond(200, [:], "shared")
        #expect(try await second.serializingString().value == "shared")
        first.resume()
        #expect(try await first.serializingString().value == "shared")
        #expect(session.count == 1 && coalesced == 1)
    }

    @Test func `A request with other allowed addresses does not join`() async throws {
        let plain = session.request()
        let first = await session.exchange(0)
        let guarded = session.request(options: RequestOptions(addresses: .publicOnly))
        let second = await session.exchange(1)
        first.respond(200, [:], "internal")
        second.respond(200, [:], "public")
        #expect(try await plain.serializingString().value == "internal")
        #expect(try await guarded.serializingString().value == "public")
        #expect(coalesced == 0)
    }

    // A3.1
    @Test("a request joins those of its own signer only") func signers() async throws {
        struct Signer: ExchangeSigner {
            let identity: String
            func sign(_ exchange: SignableExchange) -> HTTPHeaders { ["X-Signature": identity] }
        }
        let identities = ["a", "b", "a", nil]
        let requests = identities.map { session.request(options: RequestOptions(signer: $0.map { Signer(identity: $0) })) }
        for index in 0..<3 {
            let exchange = await session.exchange(index)
            exchange.respond(200, [:], exchange.request.headers["X-Signature"] ?? "unsigned")
        }
        var bodies: [String] = []
        for request in requests { bodies.append(try await request.serializingString().value) }
        #expect(bodies == ["a", "b", "a", "unsigned"])
        #expect(coalesced == 1)
    }

    @Test("each request of a transfer gets its interim responses, in order and once, however late it joins") func interim() async throws {
        func step(_ number: Int) -> ScriptedTransport.Step { .interim(ResponseHead(statusCode: 103, headers: ["X-Number": "\(number)"])) }
        func record(_ request: DataRequest) -> Inbox<String> {
            let events = Inbox<String>()
            request.onInterimResponse { events.put($0.value(for: "X-Number") ?? "") }.response { _ in events.put("end") }
            return events
        }
        let first = session.request()
        let exchange = await session.exchange(0)
        let firstEvents = record(first)
        exchange.perform(step(1))
        let suspended = session.request()
        suspended.suspend()
        let suspendedEvents = record(suspended)
        exchange.perform(step(2))
        let last = session.request()
        let lastEvents = record(last)
        exchange.perform(step(3))
        exchange.perform(.head(200), .bytes(Data("shared".utf8)), .complete())
        for events in [firstEvents, lastEvents] { #expect(await events.first(4) == ["1", "2", "3", "end"]) }
        #expect(!suspendedEvents.all.contains("3"))
        suspended.resume()
        #expect(await suspendedEvents.first(4) == ["1", "2", "3", "end"])
        #expect(session.count == 1 && coalesced == 2)
    }

    @Test("the transfer is suspended while all of its requests are") func allSuspended() async throws {
        let requests = (0..<3).map { _ in session.request() }
        let exchange = await session.exchange(0)
        requests[0].suspend()
        requests[1].suspend()
        #expect(!exchange.isSuspended)
        requests[2].suspend()
        #expect(await eventually { exchange.isSuspended })
        requests[1].resume()
        #expect(await eventually { !exchange.isSuspended })
        // Those that are left are suspended.
        requests[1].cancel()
        #expect(await fails(requests[1], isCancelled))
        #expect(await eventually { exchange.isSuspended })
        for index in [0, 2] { requests[index].resume() }
        #expect(await eventually { !exchange.isSuspended })
        exchange.respond(200, [:], "shared")
        for index in [0, 2] { #expect(try await requests[index].serializingString().value == "shared") }
    }

    @Test("a transfer whose first request was cancelled is joined if others have it, and else is not") func joinsCancelled() async throws {
        let alone = session.request()
        let first = await session.exchange(0)
        alone.cancel()
        #expect(await fails(alone, isCancelled))
        #expect(await eventually { first.isOver })
        let members = (0..<2).map { _ in session.request() }
        let second = await session.exchange(1)
        members[0].cancel()
        #expect(await fails(members[0], isCancelled))
        let joined = session.request()
        second.respond(200, [:], "shared")
        for request in [members[1], joined] { #expect(try await request.serializingString().value == "shared") }
        #expect(session.count == 2 && coalesced == 2)
    }

    @Test("requests that are all cancelled while their transfer is started end it, and the next has its own", arguments: [1, 2, 5])
    func cancelledWithin(_ count: Int) async throws {
        session.manager.startRequestsImmediately = false
        let requests = (0..<count).map { _ in session.request() }
        session.transport.onStart { _ in
            for request in requests.dropFirst() { request.resume() }
            for request in requests { request.cancel() }
        }
        requests[0].resume()
        for request in requests { #expect(await fails(request, isCancelled)) }
        #expect(await eventually { session.transport.started.all.first?.isOver == true })
        session.transport.onStart(nil)
        let next = session.request()
        next.resume()
        await session.exchange(1).respond(200, [:], "next")
        #expect(try await next.serializingString().value == "next")
        #expect(session.count == 2 && coalesced == count - 1)
    }

    @Test("a request that follows the response's head has a transfer of its own") func late() async throws {
        let first = session.request()
        let exchange = await session.exchange(0)
        exchange.perform(.head(200))
        let second = session.request()
        await session.exchange(1).respond(200, [:], "second")
        exchange.perform(.bytes(Data("first".utf8)), .complete())
        #expect(try await first.serializingString().value == "first")
        #expect(try await second.serializingString().value == "second")
        #expect(coalesced == 0)
    }

    // MARK: Which are equal

    /// Requests that differ from a plain GET, each in one way, and from one another.
    private static let different: [@Sendable (SessionManager, String) -> DataRequest] = [
        { $0.request($1) },
        { $0.request("\($1)?query") },
        { $0.request($1, method: .head) },
        { $0.request($1, headers: ["Accept": "text/html"]) },
        { $0.request($1, headers: ["Authorization": "Bearer a"]) },
        { $0.request($1, headers: ["Authorization": "Bearer b"]) },
        { $0.request($1, options: RequestOptions(proxy: ProxyPolicy.none)) },
        { $0.request($1, options: RequestOptions(cachePolicy: .reloadRevalidatingCacheData)) },
        { $0.request($1, options: RequestOptions(httpVersion: .http1)) },
        { $0.request($1, options: RequestOptions(priority: 1)) },
        { $0.request($1, options: RequestOptions(unixSocketPath: "/socket")) },
        { $0.request($1, options: RequestOptions(resolve: ["api.example.org": ["127.0.0.1"]])) },
    ]

    @Test("requests that differ in anything that counts for the response are not coalesced") func different() async throws {
        let url = "https://api.example.org/a"
        var requests: [DataRequest] = []
        for (index, make) in Self.different.enumerated() {
            requests.append(make(session.manager, url))
            try #require(session.count == index + 1, "the request of index \(index) is not apart")
        }
        // Each of them is with its like.
        let equal = Self.different.map { $0(session.manager, url) }
        #expect(session.count == requests.count && coalesced == requests.count)
        for index in requests.indices { await session.exchange(index).respond(200, [:], "\(index)") }
        for (index, pair) in zip(requests, equal).enumerated() {
            #expect(try await pair.0.serializingString().value == "\(index)")
            #expect(try await pair.1.serializingString().value == "\(index)")
        }
    }

    @Test("requests with another method, with a body, and those that are read bit by bit are never coalesced") func never() async throws {
        let url = "https://api.example.org/a"
        let make: [(SessionManager) -> DataRequest] = [
            { $0.request(url, method: .post) }, { $0.request(url, method: .delete) },
            { $0.upload(Data("body".utf8), to: url, method: .get) },
            { $0.streamRequest(url) },
        ]
        let requests = make.flatMap { make in (0..<2).map { _ in make(session.manager) } }
        #expect(session.count == requests.count && coalesced == 0)
        for index in requests.indices { await session.exchange(index).respond(200, [:], "\(index)") }
        for (index, request) in requests.enumerated() {
            var text = ""
            if index < 6 {
                text = try await request.serializingString().value
            } else {
                for try await bytes in request.bodyStream() { text += String(decoding: bytes, as: UTF8.self) }
            }
            #expect(text == "\(index)")
        }
    }

    @Test("names, deadlines and what is kept for interceptors do not keep requests apart") func sameNevertheless() async throws {
        let requests = [
            session.request(), session.request(options: RequestOptions(name: "name")),
            session.request(options: RequestOptions(deadline: .seconds(60))), session.request(options: RequestOptions(userInfo: ["a": 1])),
        ]
        await session.exchange(0).respond(200, [:], "shared")
        for request in requests { #expect(try await request.serializingString().value == "shared") }
        #expect(session.count == 1 && coalesced == 3)
    }

    @Test("a request does not share a transfer that has other timeouts, which would end it") func timeouts() async throws {
        let own = [
            RequestOptions(connectTimeout: .seconds(9)), RequestOptions(firstByteTimeout: .seconds(9)),
            RequestOptions(idleTimeout: .seconds(9)), RequestOptions(totalTimeout: .seconds(9)),
        ]
        let requests = ([nil] + own + own).map { session.request(options: $0) }
        for index in 0..<5 { await session.exchange(index).respond(200, [:], "\(index)") }
        for (index, request) in requests.enumerated() {
            #expect(try await request.serializingString().value == "\(index < 5 ? index : index - 4)")
        }
        #expect(session.count == 5 && coalesced == 4)
    }

    // MARK: What each has of its own

    @Test("an error is told to all, and each is retried, together again") func errors() async throws {
        let session = ScriptedSession(
            Resilience(coalescing: Coalescing()), interceptor: RetryPolicy(retryLimit: 1, exponentialBackoffScale: 0))
        let requests = (0..<4).map { _ in session.request() }
        let ends = Task {
            await withTaskGroup(of: Bool.self) { group in
                for request in requests { group.addTask { await fails(request) { failureKind($0) == .idleTimeout } } }
                return await group.reduce(into: []) { $0.append($1) }
            }
        }
        let first = await session.exchange(0)
        first.perform(.complete(CurlewError.failure(.connectionLost)))
        _ = await session.exchange(1)
        // All have joined when their number is reached: three of the first transfer, three of the second.
        #expect(await eventually { session.events.count { $0.action == .coalesced } == 6 })
        await session.exchange(1).perform(.complete(CurlewError.failure(.idleTimeout)))
        #expect(await ends.value == [true, true, true, true])
        #expect(session.count == 2)
    }

    @Test("a failure in the middle of the body is told to all after what has come") func lateErrors() async {
        let requests = (0..<3).map { _ in session.request() }
        let exchange = await session.exchange(0)
        requests[1].suspend()
        exchange.perform(.head(200, ["Content-Length": "10"]), .bytes(Data("half".utf8)), .complete(CurlewError.failure(.connectionLost)))
        for index in [0, 2] { #expect(await fails(requests[index]) { failureKind($0) == .connectionLost }) }
        requests[1].resume()
        #expect(await fails(requests[1]) { failureKind($0) == .connectionLost })
        for request in requests { #expect(request.response?.statusCode == 200 && request.progress.completedUnitCount == 4) }
    }

    @Test("a deadline ends its own request only") func deadlines() async throws {
        let short = session.request(options: RequestOptions(deadline: .seconds(1)))
        let long = session.request(options: RequestOptions(deadline: .seconds(10)))
        let exchange = await session.exchange(0)
        await session.clock.advance(by: .seconds(1))
        #expect(await fails(short) { failureKind($0) == .deadline })
        exchange.respond(200, [:], "in time")
        #expect(try await long.serializingString().value == "in time")
        #expect(session.count == 1)
    }

    @Test("a redirect is followed by each, together again") func redirects() async throws {
        let requests = (0..<3).map { _ in session.request() }
        await session.exchange(0).perform(.head(302, ["Location": "/b"]), .complete())
        let next = await session.exchange(1)
        #expect(await eventually { session.events.count { $0.action == .coalesced } == 4 })
        #expect(next.request.url == "https://api.example.org/b")
        next.respond(200, [:], "followed")
        for request in requests { #expect(try await request.serializingString().value == "followed") }
        #expect(session.count == 2)
    }

    @Test("each has the whole progress, and downloads have files of their own") func progress() async throws {
        let url = "https://api.example.org/a"
        let temporary = try TemporaryDirectory()
        let files = ["one", "two"].map { temporary.file($0) }
        let (data, other) = (session.request(), session.request())
        let downloads = files.map { file in session.manager.download(url) { _, _ in (file, []) } }
        let exchange = await session.exchange(0)
        exchange.perform(.head(200, ["Content-Length": "10"]), .bytes(Data("01234".utf8)))
        for request in [data, other] {
            #expect(await eventually { request.progress.completedUnitCount == 5 && request.progress.totalUnitCount == 10 })
        }
        exchange.perform(.bytes(Data("56789".utf8)), .complete())
        for request in [data, other] {
            #expect(try await request.serializingString().value == "0123456789")
            #expect(request.progress.completedUnitCount == 10)
        }
        for (download, file) in zip(downloads, files) {
            #expect(try await download.serializingURL().value == file)
            #expect(try Data(contentsOf: file) == Data("0123456789".utf8))
        }
        #expect(session.count == 1)
    }

    // MARK: Slow ones

    @Test("the transfer pauses for a slow request, until that has caught up or has ended", arguments: [true, false])
    func slow(cancels: Bool) async throws {
        var coalescing = Coalescing()
        coalescing.bufferSize = 1_000
        let session = ScriptedSession(Resilience(coalescing: coalescing))
        let (slow, fast) = (session.request(), session.request())
        let exchange = await session.exchange(0)
        slow.suspend()
        exchange.perform(.head(200), .bytes(Data(repeating: 1, count: 1_000)))
        #expect(!exchange.isPaused)
        exchange.perform(.bytes(Data(repeating: 2, count: 1)))
        #expect(exchange.isPaused)
        if cancels { slow.cancel() } else { slow.resume() }
        #expect(await eventually { !exchange.isPaused })
        exchange.perform(.bytes(Data(repeating: 3, count: 1)), .complete())
        #expect(try await fast.serializingData().value.count == 1_002)
        if cancels {
            #expect(await fails(slow, isCancelled))
        } else {
            #expect(try await slow.serializingData().value.suffix(3) == Data([1, 2, 3]))
        }
    }

    @Test("what waits for a slow request is one piece, however small those were that it came in") func pieces() async throws {
        let session = ScriptedSession(Resilience(coalescing: Coalescing()))
        let (slow, fast) = (session.request(), session.request())
        let exchange = await session.exchange(0)
        slow.suspend()
        exchange.perform(.head(200))
        for _ in 0..<1_000 { exchange.perform(.bytes(Data([1]))) }
        exchange.perform(.complete())
        #expect(try await fast.serializingData().value.count == 1_000)
        let progress = Log<Int64>()
        slow.downloadProgress(queue: .global()) { progress.append($0.completedUnitCount) }
        slow.resume()
        #expect(try await slow.serializingData().value == Data(repeating: 1, count: 1_000))
        await progress.wait(for: 1)
        #expect(Set(progress.elements) == [1_000])
    }

    @Test("a session that ends ends all, suspended ones as well") func invalidated() async {
        let requests = (0..<3).map { _ in session.request() }
        let exchange = await session.exchange(0)
        requests[1].suspend()
        exchange.perform(.head(200), .bytes(Data("half".utf8)))
        session.manager.invalidateAndCancel()
        for request in requests { #expect(await fails(request, isInvalidated)) }
        #expect(await eventually { exchange.isOver })
    }
}
