// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Dispatch
import Testing

@testable import CurlewCore

/// Interim responses as a request hands them over.
@Suite(.timeLimit(.minutes(1))) struct InterimResponseTests {
    private static func interim(_ number: Int) -> MockTransport.Step {
        .interim(ResponseHead(statusCode: 103, headers: ["X-Number": "\(number)"]))
    }

    private static func number(_ head: ResponseHead) -> Int { head.value(for: "X-Number").flatMap { Int($0) } ?? 0 }

    /// The numbers that the sequence of a request has until its end.
    private static func numbers(_ sequence: AsyncStream<ResponseHead>) async -> [Int] {
        await sequence.reduce(into: []) { $0.append(number($1)) }
    }

    @Test func `a handler or sequence added late begins with those received so far, and each gets all in order`() async throws {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        let request = manager.request("http://mock/")
        let exchange = await mock.started[0]
        let (early, late, last) = (Inbox<Int>(), Inbox<Int>(), Inbox<Int>())
        request.onInterimResponse { early.put(Self.number($0)) }
        exchange.perform(Self.interim(1), Self.interim(2))
        // One at a time also on a concurrent queue.
        request.onInterimResponse(on: .global()) { late.put(Self.number($0)) }
        let sequence = request.interimResponses
        exchange.perform(Self.interim(3))
        request.onInterimResponse { last.put(Self.number($0)) }
        exchange.respond(200, [:], "body")
        #expect(try await request.serializingString().value == "body")
        #expect(request.responseHead?.interimResponses.map(Self.number) == [1, 2, 3])
        for inbox in [early, late, last] { #expect(await inbox.first(3) == [1, 2, 3]) }
        #expect(await Self.numbers(sequence) == [1, 2, 3])
        // After the end.
        #expect(await Self.numbers(request.interimResponses) == [1, 2, 3])
        let over = Inbox<Int>()
        request.onInterimResponse { over.put(Self.number($0)) }
        #expect(await over.first(3) == [1, 2, 3])
    }

    @Test func `those of redirects and retries are handed over before the response`() async {
        let mock = MockTransport.answering(inTurn: [
            [Self.interim(1)] + .response(302, ["Location": "/next"]), [Self.interim(2), Self.interim(3)] + .failure(.connectionLost),
            [Self.interim(4)] + .response(200),
        ])
        let manager = SessionManager(mock: mock)
        manager.retrier = Retrying { request, _, completion in completion(request.retryCount == 0, 0) }
        let events = Inbox<Int>()
        manager.request("http://mock/").onInterimResponse { events.put(Self.number($0)) }.response { _ in events.put(200) }
        #expect(await events.first(5) == [1, 2, 3, 4, 200])
    }

    @Test func `of a request that is retried, the last ones are kept for later handlers`() async throws {
        let mock = MockTransport.answering(inTurn: (1...3).map { [Self.interim($0)] + .failure() } + [[Self.interim(4)] + .response()])
        let manager = SessionManager(mock: mock) { $0.maximumInterimResponses = 2 }
        manager.retrier = Retrying { request, _, completion in completion(request.retryCount < 3, 0) }
        let request = manager.request("http://mock/")
        let all = request.interimResponses
        _ = try await request.serializingData().value
        #expect(await Self.numbers(request.interimResponses) == [3, 4])
        // Those that are received while a sequence exists are all its own.
        #expect(await Self.numbers(all).suffix(2) == [3, 4])
    }

    @Test func `100 Continue is not handed over`() async throws {
        let `continue` = MockTransport.Step.interim(ResponseHead(statusCode: 100))
        let manager = SessionManager(mock: .answering(inTurn: [[`continue`] + .response()]))
        let request = manager.request("http://mock/")
        _ = try await request.serializingData().value
        #expect(request.responseHead?.interimResponses.map(\.statusCode) == [100])
        #expect(await Self.numbers(request.interimResponses).isEmpty)
    }

    @Test func `a sequence ends with a request that is cancelled, and a handler is released`() async {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        let request = manager.request("http://mock/")
        let exchange = await mock.started[0]
        let box: WeakBox<Inbox<Int>>
        do {
            let numbers = Inbox<Int>()
            box = WeakBox(numbers)
            request.onInterimResponse { numbers.put(Self.number($0)) }
            exchange.perform(Self.interim(1))
            #expect(await numbers.first(1) == [1])
        }
        #expect(!box.isEmpty)
        let sequence = request.interimResponses
        request.cancel()
        #expect(await Self.numbers(sequence) == [1])
        #expect(await eventually { box.isEmpty })
    }

    @Test func `a cache passes on those of a miss, and has none with a hit`() async throws {
        let mock = MockTransport.answering(inTurn: [[Self.interim(1)] + .response(200, ["Cache-Control": "max-age=600"], "body")])
        let manager = SessionManager(mock: mock) { $0.urlCache = URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, diskPath: nil) }
        for expected in [[1], []] {
            let request = manager.request("http://mock/")
            let response = await request.serializingString().response
            #expect(response.value == "body" && request.responseHead?.interimResponses.map(Self.number) == expected)
            #expect(await Self.numbers(request.interimResponses) == expected)
            #expect(response.metrics.transactionMetrics.last?.isFromCache == expected.isEmpty)
        }
        // One that bypasses the cache.
        let post = manager.request("http://mock/", method: .post)
        _ = try await post.serializingData().value
        #expect(await Self.numbers(post.interimResponses) == [1])
    }
}
