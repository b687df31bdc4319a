// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

@testable import CurlewRequests

@Suite(.timeLimit(.minutes(1)))
struct RetryTests {
    @Test(arguments: [(0, 1), (1, 2), (3, 4), (-1, 6)])
    func `a request is retried as often as requestRetryCount allows`(_ retries: Int, _ attempts: Int) async throws {
        let stage = try Stage.standard()
        let request = SampleRequest(stage, "flaky/5")
        request.retries = retries
        #expect(await run(request) == (attempts == 6 ? .succeeded : .failed))
        #expect(request.requestTotalCount == attempts)
        #expect(stage.server.requests.count == attempts)
    }

    @Test func `it waits between attempts, and the times add up`() async throws {
        let stage = try Stage.standard()
        let request = SampleRequest(stage, "flaky/2")
        request.retries = 2
        request.interval = 3
        #expect(await run(request) == .succeeded)
        #expect(stage.delays.all == [3, 3])
        #expect(request.requestTotalTime == 6)
        #expect(request.requestStartTime != nil)
    }

    @Test(arguments: [(6.0, 2), (6.5, 3), (2.0, 1), (0.0, 4)])
    func `no delay may end after the timeout`(_ window: Double, _ attempts: Int) async throws {
        let stage = try Stage.standard()
        let request = SampleRequest(stage, "status/500")
        request.retries = 3
        request.interval = 3
        request.window = window
        #expect(await run(request) == .failed)
        #expect(request.requestTotalCount == attempts)
    }

    @Test func `the description is read for each attempt, and the identifier stays`() async throws {
        let stage = try Stage.standard()
        let request = SampleRequest(stage, "flaky/2")
        request.retries = 2
        let count = Lock(0)
        let identifiers = Lock(Set<Int>())
        request.onSend = { urlRequest in
            let number = count.withLock { count in
                count += 1
                return count
            }
            urlRequest.setValue("\(number)", forHTTPHeaderField: "X-Attempt")
        }
        request.mayRetry = { [weak request] response, _, _ in
            identifiers.withLock { _ = $0.insert(request?.requestIdentifier ?? -1) }
            return response?.statusCode != 200
        }
        #expect(await run(request) == .succeeded)
        #expect(stage.server.requests.map { $0.header("X-Attempt") } == ["1", "2", "3"])
        #expect(identifiers.withLock { $0 } == [request.requestIdentifier])
        #expect(request.requestTask?.taskIdentifier != request.requestIdentifier)
    }

    @Test func `the validator sees the bytes, and a failed validation is not retried`() async throws {
        let stage = try Stage.standard()
        let request = SampleRequest(stage)
        request.retries = 2
        request.shape = ["other": String.self]
        let objects = Lock<[Data?]>([])
        request.mayRetry = { response, object, error in
            objects.withLock { $0.append(object as? Data) }
            return error != nil || response?.statusCode != 200
        }
        #expect(await run(request) == .failed)
        #expect(request.requestTotalCount == 1)
        #expect(objects.withLock { $0 } == [request.responseData])
    }

    @Test func `the processor may decline a retry`() async throws {
        let stage = try Stage.standard()
        let request = SampleRequest(stage, "status/500")
        request.retries = 2
        request.onRetry = { $0(false) }
        #expect(await run(request) == .failed)
        #expect(request.requestTotalCount == 1)
    }

    @Test func `the processor's second call has no effect`() async throws {
        let stage = try Stage.standard()
        let request = SampleRequest(stage, "flaky/1")
        request.retries = 5
        request.onRetry = { complete in
            complete(true)
            complete(true)
            complete(false)
        }
        #expect(await run(request) == .succeeded)
        #expect(stage.server.requests.count == 2)
    }

    @Test func `a request stopped while its processor decides is not sent again`() async throws {
        let stage = try Stage.standard()
        let request = SampleRequest(stage, "status/500")
        request.retries = 5
        request.onRetry = { [weak request] complete in
            request?.stop()
            complete(true)
        }
        #expect(await run(request) == .stopped)
        await stage.settle()
        #expect(stage.server.requests.count == 1)
        #expect(stage.agent.requests.isEmpty)
    }

    /// An agent whose delays never end.
    private func makePatient(_ stage: Stage) -> (agent: RequestAgent, waiting: Lock<[@Sendable () -> Void]>) {
        let waiting = Lock<[@Sendable () -> Void]>([])
        var clock = RequestClock()
        clock.schedule = { _, _, work in waiting.withLock { $0.append(work) } }
        return (RequestAgent(configuration: stage.configuration, manager: nil, clock: clock), waiting)
    }

    @Test func `a request stopped in the delay before a retry, or while its processor decides, is released at once`() async throws {
        let stage = try Stage.standard()
        let (agent, waiting) = makePatient(stage)
        for decides in [true, false] {
            weak var observed: SampleRequest?
            do {
                let request = SampleRequest(stage, "status/500")
                observed = request
                request.agent = agent
                request.retries = 1
                request.interval = 600
                if !decides { request.onRetry = { answer in waiting.withLock { $0.append { answer(true) } } } }
                request.start()
                #expect(await eventually { !waiting.withLock { $0.isEmpty } })
                request.stop()
            }
            #expect(await eventually { observed == nil })
            let late = waiting.withLock { waiting in
                defer { waiting = [] }
                return waiting
            }
            for work in late { work() }
        }
        #expect(stage.server.requests.count == 2)
    }

    @Test func `a chain stopped in its interval is released at once`() async throws {
        let stage = try Stage.standard()
        let (agent, waiting) = makePatient(stage)
        weak var observed: ChainRequest?
        do {
            let chain = ChainRequest()
            observed = chain
            chain.agent = agent
            chain.requestInterval = 600
            for _ in 0..<2 { chain.addRequest(SampleRequest(stage)) }
            chain.start()
            #expect(await eventually { !waiting.withLock { $0.isEmpty } })
            chain.stop()
        }
        #expect(await eventually { observed == nil })
        #expect(stage.server.requests.count == 1)
    }

    @Test func `without a response the validator and the processor get no object, and the request has no data`() async throws {
        let stage = try Stage { _, connection in
            connection.close()
            return nil
        }
        let request = SampleRequest(stage)
        request.retries = 1
        request.responseSerializer = .http
        let objects = Lock<[Bool]>([])
        request.mayRetry = { response, object, error in
            objects.withLock { $0.append(response == nil && object == nil && error != nil) }
            return true
        }
        #expect(await run(request) == .failed)
        #expect(objects.withLock { $0 } == [true])
        #expect(request.responseData == nil && request.responseString == nil && request.responseObject == nil)
    }

    @Test func `the old spelling of the interval takes effect`() {
        final class Old: BaseRequest, @unchecked Sendable {  // stateless
            override func requestRetryInternval() -> TimeInterval { 4 }
        }
        #expect(Old().requestRetryInterval() == 4)
    }
}

@Suite(.timeLimit(.minutes(1)))
struct TokenRefresherTests {
    /// A server that accepts a single token, and a filter that adds the current one.
    private struct Tokens: UrlFilter {
        let token = Lock("old")

        func filterUrlRequest(_ urlRequest: inout URLRequest, with request: BaseRequest) {
            urlRequest.setValue(token.withLock { $0 }, forHTTPHeaderField: "Authorization")
        }
    }

    private func makeStage(_ refresh: @escaping TokenRefresher.Refresh) throws -> Stage {
        let stage = try Stage { request, _ in request.header("Authorization") == "new" ? Stage.json("{}") : .status(401) }
        stage.configuration.tokenRefresher = TokenRefresher(refresh: refresh)
        return stage
    }

    @Test func `many rejections trigger one refresh, and all requests are sent again`() async throws {
        let tokens = Tokens()
        let refreshes = Lock(0)
        let stage = try makeStage({ _ in
            refreshes.withLock { $0 += 1 }
            tokens.token.withLock { $0 = "new" }
            return true
        })
        stage.configuration.addUrlFilter(tokens)
        let endings = await withTaskGroup(of: RequestEnding.self) { group in
            for _ in 0..<20 { group.addTask { await run(SampleRequest(stage)) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(endings.count == 20 && endings.allSatisfy { $0 == .succeeded })
        #expect(refreshes.withLock { $0 } == 1)
        #expect(stage.server.requests.count <= 40)
    }

    @Test func `no request's deadline ends the refresh`() async throws {
        let tokens = Tokens()
        let (gate, refreshing) = (Gate(), Gate())
        let stage = try makeStage({ request in
            refreshing.open()
            await gate.wait()
            guard Deadline.current == nil else { throw UserError() }
            tokens.token.withLock { $0 = "new" }
            return true
        })
        stage.configuration.addUrlFilter(tokens)
        let first = SampleRequest(stage)
        await withDeadline(.seconds(1)) { first.start() }
        #expect(await refreshing.wait())
        let other = SampleRequest(stage)
        other.start()
        #expect(await eventually { first.isFailed })
        gate.open()
        #expect(await eventually { other.isFinished })
    }

    @Test func `a second rejection fails after one authenticated retry`() async throws {
        let refreshes = Lock(0)
        let stage = try makeStage({ _ in
            refreshes.withLock { $0 += 1 }
            return true
        })
        let request = SampleRequest(stage)
        #expect(await run(request) == .failed)
        #expect(request.error as? RequestValidationError == .invalidStatusCode(401))
        #expect(refreshes.withLock { $0 } == 1 && request.requestTotalCount == 2)
    }

    @Test(arguments: [false, true]) func `without new credentials the waiting requests fail`(_ isThrown: Bool) async throws {
        let stage = try makeStage({ _ in
            if isThrown { throw UserError() }
            return false
        })
        let request = SampleRequest(stage)
        #expect(await run(request) == .failed)
        #expect(request.requestTotalCount == 1)
    }

    @Test func `a failed refresh applies to all requests sent before it, and a later start refreshes again`() async throws {
        let refreshes = Lock(0)
        let gate = Gate()
        let stage = try Stage { request, connection in
            if request.path == "/late" { connection.wait(until: gate) }
            return .status(401)
        }
        stage.configuration.tokenRefresher = TokenRefresher { _ in
            refreshes.withLock { $0 += 1 }
            return false
        }
        let late = (0..<5).map { _ in SampleRequest(stage, "late") }
        for request in late { request.start() }
        #expect(await gate.arrivals(5))
        #expect(await run(SampleRequest(stage)) == .failed)
        gate.open()
        for request in late { #expect(await eventually { request.isFailed }) }
        #expect(refreshes.withLock { $0 } == 1 && stage.server.requests.count == 6)
        #expect(await run(SampleRequest(stage)) == .failed)
        #expect(refreshes.withLock { $0 } == 2)
    }

    @Test func `an authenticated retry does not count towards the retries`() async throws {
        let tokens = Tokens()
        let failures = Lock(1)
        let stage = try Stage { request, _ in
            guard request.header("Authorization") == "new" else { return .status(401) }
            return failures.withLock { failures in
                defer { failures -= 1 }
                return failures > 0 ? .status(500) : Stage.json("{}")
            }
        }
        stage.configuration.addUrlFilter(tokens)
        stage.configuration.tokenRefresher = TokenRefresher { _ in
            tokens.token.withLock { $0 = "new" }
            return true
        }
        let request = SampleRequest(stage)
        request.retries = 1
        #expect(await run(request) == .succeeded)
        #expect(request.requestTotalCount == 3)
    }
}
