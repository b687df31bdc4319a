// SPDX-License-Identifier: Apache-2.0

// With the package trait only.
#if OpenCombine
import CurlewHTTP
import CurlewTestSupport
import CurlewWebSocket
import OpenCombine
import Testing

@testable import CurlewServices

@Suite(.timeLimit(.minutes(1)))
struct ServicePublisherTests {
    private struct Echo: ServiceStreamRequest {
        typealias Message = String
        typealias Result = String
    }

    /// Requests as much as a test asks for, and records what it receives.
    private final class Probe<Input, Failure: Error>: Subscriber, @unchecked Sendable {  // its state is guarded by locks
        let events = AsyncStream<String>.makeStream()
        private let subscription = Lock<(any Subscription)?>(nil)

        func receive(subscription: any Subscription) { self.subscription.withLock { $0 = subscription } }

        func receive(_ input: Input) -> Subscribers.Demand {
            events.continuation.yield("\(input)")
            return .none
        }

        func receive(completion: Subscribers.Completion<Failure>) {
            if case .failure(let error) = completion { events.continuation.yield("\(error)") }
            events.continuation.finish()
            _ = takeSubscription()
        }

        func request(_ demand: Subscribers.Demand) { subscription.withLock { $0 }?.request(demand) }
        func cancel() { takeSubscription()?.cancel() }

        /// Releases the subscription, which retains the subscriber.
        private func takeSubscription() -> (any Subscription)? {
            subscription.withLock { subscription in
                defer { subscription = nil }
                return subscription
            }
        }
    }

    private func collect<P: Publisher>(_ publisher: P) async -> [String] {
        let probe = Probe<P.Output, P.Failure>()
        publisher.subscribe(probe)
        probe.request(.unlimited)
        var events: [String] = []
        for await event in probe.events.stream { events.append(event) }
        return events
    }

    @Test func subscribersShareOneRequest() async throws {
        let server = try LoopbackServer { _, _ in
            ServerResponse(status: 200, headers: [ServerField("X-Name", "curlew")], body: .data(Data("value".utf8)))
        }
        defer { server.stop() }
        let response = TestRequest().schedule(with: TestService(server))
        let idle = Probe<String, ServiceError>()
        response.publisher.subscribe(idle)
        defer { idle.cancel() }
        #expect(server.requestCount == 0)
        #expect(await collect(response.publisher) == ["value"])
        #expect(await collect(response.publisher) == ["value"])
        #expect(await collect(response.headerPublisher.map { $0["X-Name"] ?? "" }) == ["curlew"])
        #expect(server.requestCount == 1)
    }

    @Test func failureIsTheServicesError() async throws {
        let server = try LoopbackServer { _, _ in .status(404) }
        defer { server.stop() }
        let response = TestRequest().schedule(with: TestService(server))
        let reason = "(attempt 1): status 404 is not accepted by the request; the response body has 0 bytes"
        #expect(await collect(response.publisher) == ["GET \(server.url("")) \(reason)"])
        #expect(await collect(response.publisher.ignoreError()).isEmpty)
    }

    @Test func cancellingAllSubscriptionsCancelsTheRequest() async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return .ok("")
        }
        defer {
            gate.open()
            server.stop()
        }
        let probe = Probe<String, ServiceError>()
        TestRequest().schedule(with: TestService(server)).publisher.subscribe(probe)
        probe.request(.max(1))
        #expect(await gate.arrivals())
        probe.cancel()
        #expect(await server.waitForConnectionsToClose())
    }

    @Test func streamPublishesOnDemand() async throws {
        let server = try WebSocketServer(accept: { WebSocketHandshake.accept(for: $0) }) { peer in
            for text in ["a", "b"] { try peer.send(.text, Data(text.utf8)) }
            try peer.sendClose(4001)
            try peer.answerClose()
        }
        defer { server.stop() }
        let stream = Echo().schedule(with: TestService(server))
        let probe = Probe<String, ServiceError>()
        stream.publisher.ignoreResultErrors().subscribe(probe)
        var events = probe.events.stream.makeAsyncIterator()
        for text in ["a", "b"] {
            probe.request(.max(1))
            #expect(await events.next() == text)
        }
        probe.request(.unlimited)
        #expect(await events.next() == "The stream was closed with code 4001.")
        #expect(await events.next() == nil)
    }

    @Test func connectionPublishesItsPages() async throws {
        let server = try NumberServer.make()
        defer { server.stop() }
        let (ticks, ticker) = AsyncStream<Void>.makeStream()
        let pages = NumbersRequest().schedule(forPaginationWith: TestService(server), chunk: 4, paginatedType: NumberPage.self)
        let publisher = pages.connect(with: ticks).publisher.map { page in
            ticker.yield()
            return page.data
        }
        #expect(await collect(publisher) == ["[0, 1, 2, 3]", "[4, 5, 6]"])
    }

    @Test func cancellingASubscriptionStopsItsReader() async throws {
        let server = try WebSocketServer(accept: { WebSocketHandshake.accept(for: $0) }) { try $0.echo() }
        defer { server.stop() }
        let probe = Probe<Result<String, ServiceError>, ServiceError>()
        Echo().schedule(with: TestService(server)).publisher.subscribe(probe)
        probe.request(.unlimited)
        #expect(await eventually { !server.requests.isEmpty })
        // Only the subscription retained the stream.
        probe.cancel()
        #expect(await server.waitForConnectionsToClose())
    }
}
#endif
