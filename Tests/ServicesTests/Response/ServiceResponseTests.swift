// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

@testable import CurlewServices

/// One network request, shared by all consumers of its response.
@Suite(.timeLimit(.minutes(1)))
struct ServiceResponseTests {
    private let gate = Gate()
    private let server: LoopbackServer
    private let service: TestService

    init() throws {
        let gate = gate
        server = try LoopbackServer { request, connection in
            if request.path == "/held" { connection.wait(until: gate) }
            if request.path == "/missing" { return .status(404) }
            return ServerResponse(status: 200, headers: [ServerField("X-Name", "curlew")], body: .data(Data("value".utf8)))
        }
        service = TestService(server)
    }

    private func end() {
        gate.open()
        server.stop()
    }

    @Test func nothingIsBuiltBeforeTheFirstConsumer() async throws {
        defer { end() }
        let built = Lock(0)
        let response = TestRequest(change: { request in
            _ = built.next()
            return request
        }).schedule(with: service)
        #expect(built.value == 0)
        _ = try await response.value
        #expect(built.value == 1)
    }

    @Test func consumersShareOneRequest() async throws {
        defer { end() }
        let response = TestRequest(routes: "held").schedule(with: service)
        async let first = response.value
        async let second = response.value
        #expect(await gate.arrivals())
        async let header = response.header
        gate.open()
        let values = try await [first, second, header["X-Name"]]
        #expect(values == ["value", "value", "curlew"])
        #expect(server.requestCount == 1)
    }

    @Test func aConsumersDeadlineEndsItsOwnWaitOnly() async throws {
        defer { end() }
        let response = TestRequest(routes: "held").schedule(with: service)
        let late = await withDeadline(.seconds(1)) { await response.result }
        #expect(await serviceError { try late.get() }?.name == "timeout")
        // Nobody waits any more: the request is cancelled.
        #expect(await serviceError { try await response.value }?.name == "cancelled")

        let shared = TestRequest(routes: "held").schedule(with: service)
        async let short = withDeadline(.seconds(1)) { await shared.result }
        #expect(await gate.arrivals(2))
        async let long = shared.value
        guard case .failure = await short else { return #expect(Bool(false)) }
        gate.open()
        #expect(try await long == "value")
        #expect(server.requestCount == 2)
    }

    @Test func theDeadlineOfTheCallThatSchedulesARequestBoundsIt() async throws {
        defer { end() }
        let response = await withDeadline(.milliseconds(100)) { TestRequest(routes: "held").schedule(with: service) }
        #expect(await serviceError { try await response.value }?.name == "timeout")
    }

    @Test func laterConsumersReceiveTheValue() async throws {
        defer { end() }
        let response = TestRequest().schedule(with: service)
        _ = try await response.value
        #expect(try await response.value == "value")
        #expect(try await response.header["x-name"] == "curlew")
        let received = await withTrackedContinuation { continuation in
            let values = Lock<[String]>([])
            let keeper = Lock<ServiceSubscription?>(nil)
            let subscription = response.sink { completion in
                keeper.withLock { $0 = nil }
                if case .finished = completion { continuation.resume(returning: values.withLock { $0 }) }
            } receiveValue: { value in
                values.withLock { $0.append(value) }
            }
            keeper.withLock { $0 = subscription }
        }
        #expect(received == ["value"] && server.requestCount == 1)
    }

    @Test func laterConsumersReceiveTheFailure() async throws {
        defer { end() }
        let response = TestRequest(routes: "missing").schedule(with: service)
        for _ in 1...2 { #expect(await serviceError { try await response.value }?.name == "requestFailed") }
        if case .success = await response.result { Issue.record("Status 404 was accepted") }
        #expect(server.requestCount == 1)
    }

    @Test func headerAloneSendsTheRequest() async throws {
        defer { end() }
        #expect(try await TestRequest().schedule(with: service).header["X-Name"] == "curlew")
    }

    @Test func valuesHaveOneElement() async throws {
        defer { end() }
        let response = TestRequest().schedule(with: service)
        var values: [String] = []
        for try await value in response.values { values.append(value) }
        for try await value in response.values { values.append(value) }
        #expect(values == ["value", "value"] && server.requestCount == 1)
    }

    @Test func closuresAreCalledOnTheirQueue() async throws {
        defer { end() }
        let queue = DispatchQueue(label: "services.sink")
        let key = DispatchSpecificKey<Int>()
        queue.setSpecific(key: key, value: 7)
        let response = TestRequest(routes: "held").schedule(with: service)
        var subscriptions: Set<ServiceSubscription> = []
        await withTrackedContinuation { continuation in
            response.sink(on: queue) { result in
                #expect(DispatchQueue.getSpecific(key: key) == 7)
                #expect((try? result.get()) == "value")
                continuation.resume()
            }.store(in: &subscriptions)
            gate.open()
        }
    }

    // MARK: Cancellation

    @Test func removingTheLastConsumerCancelsTheRequest() async throws {
        defer { end() }
        let response = TestRequest(routes: "held").schedule(with: service)
        let tasks = (1...2).map { _ in Task { await serviceError { try await response.value } } }
        let subscription = response.sink { _ in Issue.record("A closure was called after cancelling") }
        #expect(await gate.arrivals())
        for task in tasks {
            task.cancel()
            #expect(await task.value?.name == "cancelled")
        }
        #expect(server.openConnections == 1)
        // The last one: a task may not have been a consumer yet.
        subscription.cancel()
        #expect(await server.waitForConnectionsToClose())
        #expect(await serviceError { try await response.value }?.name == "cancelled")
        #expect(server.requestCount == 0 || server.requestCount == 1)
    }

    @Test func requestContinuesForTheRemainingConsumer() async throws {
        defer { end() }
        let response = TestRequest(routes: "held").schedule(with: service)
        let leaving = Task { try await response.value }
        #expect(await gate.arrivals())
        // A consumer from now on, which a task is only when it runs.
        let values = Log<String?>()
        let staying = response.sink(on: .global()) { values.append(try? $0.get()) }
        leaving.cancel()
        _ = await leaving.result
        gate.open()
        await values.wait(for: 1)
        #expect(values.elements == ["value"])
        withExtendedLifetime(staying) {}
    }

    @Test func cancelledTaskSendsNothing() async throws {
        defer { end() }
        let response = TestRequest().schedule(with: service)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await serviceError { try await response.value }
        }
        #expect(await task.value?.name == "cancelled")
        #expect(server.requestCount == 0)
        #expect(try await response.value == "value")
    }

    @Test func releasingASubscriptionCancelsIt() async throws {
        defer { end() }
        let response = TestRequest(routes: "held").schedule(with: service)
        var subscription: ServiceSubscription? = response.sink { _ in Issue.record("A closure was called after releasing") }
        #expect(await gate.arrivals())
        #expect(subscription != nil)
        subscription = nil
        #expect(await server.waitForConnectionsToClose())
    }

    @Test func nothingIsRetainedAfterCompletion() async throws {
        defer { end() }
        weak var outcome: AnyObject?
        do {
            let response = TestRequest().schedule(with: service)
            outcome = response.outcome
            _ = try await response.value
        }
        // The task that ran the request releases it shortly after delivering the value.
        #expect(await eventually { outcome == nil })
    }

    // MARK: Operators

    @Test func errorsCanBeIgnored() async throws {
        defer { end() }
        var values: [String] = []
        for await value in TestRequest(routes: "missing").schedule(with: service).values.ignoreError() { values.append(value) }
        for await value in TestRequest().schedule(with: service).values.ignoreError() { values.append(value) }
        #expect(values == ["value"])

        let results = AsyncStream<Result<Int, ServiceError>> { continuation in
            for result in [.success(1), .failure(.timeout), .success(2)] as [Result<Int, ServiceError>] { continuation.yield(result) }
            continuation.finish()
        }
        var numbers: [Int] = []
        for await number in results.ignoreResultErrors() { numbers.append(number) }
        #expect(numbers == [1, 2])
    }

    @Test(arguments: [RequestPriority.utility, .default, .userInitiated])
    func priorityIsThatOfTheTask(_ priority: RequestPriority) async {
        let outcome = SharedOutcome(priority: { priority.taskPriority }) { Task.currentPriority }
        let seen = await withTrackedContinuation { continuation in _ = outcome.add { continuation.resume(returning: $0) } }
        #expect(seen == priority.taskPriority)
    }
}
