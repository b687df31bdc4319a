// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

@testable import CurlewRequests

/// Options and deadlines of requests that are objects, alone and in groups.
@Suite(.timeLimit(.minutes(1))) struct RequestOptionsTests {
    private typealias Adapter = CurlewCore.Adapter
    private typealias Retrier = CurlewCore.Retrier

    /// Responds as ``Stage`` does by path; `/held` after the gate is opened.
    private final class Server: Sendable {
        let gate = Gate()
        let stage: Stage
        /// An agent with a clock whose delays take their time.
        let agent: RequestAgent

        init() throws {
            stage = try Stage { [gate] request, connection in
                if request.path.hasPrefix("/held") { connection.wait(until: gate) }
                if request.path.hasPrefix("/bad") { return .status(500) }
                return Stage.json("{}")
            }
            agent = RequestAgent(configuration: stage.configuration)
        }

        deinit { gate.open() }

        func request(_ path: String) -> SampleRequest {
            let request = SampleRequest(stage, path)
            request.agent = agent
            return request
        }

        var requests: [ServerRequest] { stage.server.requests }
    }

    private static func kind(_ error: (any Error)?) -> TransferFailure.Kind? {
        if case CurlewError.transferFailed(let failure)? = error { failure.kind } else { nil }
    }

    private static func adding(_ name: String, _ value: String = "1") -> Adapter {
        Adapter { request in
            var request = request
            request.setValue(value, forHTTPHeaderField: name)
            return request
        }
    }

    private static let soon = RequestOptions(deadline: .milliseconds(250))
    /// Long enough to be sent by a machine that holds up a thread.
    private static let later = RequestOptions(deadline: .seconds(1))

    // MARK: Requests

    @Test func `timeouts, the interceptor and the deadline's header reach the server`() async throws {
        let server = try Server()
        let request = server.request("held")
        var options = RequestOptions(deadline: .seconds(30), idleTimeout: .seconds(1), interceptor: Self.adding("X-Adapted"))
        options.deadlineHeader = "X-Left"
        request.requestOptions = options
        #expect(await run(request) == .failed)
        #expect(Self.kind(request.error) == .idleTimeout, "\(String(describing: request.error))")
        #expect(server.requests.first?.header("X-Adapted") == "1")
        let left = try #require(Double(server.requests.first?.header("X-Left") ?? ""))
        #expect(left > 1 && left <= 30)
    }

    private final class Overriding: BaseRequest, @unchecked Sendable {  // immutable
        private let path: String

        init(_ server: Server, _ path: String) {
            self.path = path
            super.init()
            agent = server.agent
        }

        override func requestUrl() -> String { path }
        override var requestOptions: RequestOptions? {
            get { RequestOptions(deadline: .seconds(1), interceptor: RequestOptionsTests.adding("X-Adapted")) }
            set {}
        }
    }

    @Test func `a subclass may override the options`() async throws {
        let server = try Server()
        let request = Overriding(server, "held")
        await #expect(throws: CurlewError.self) { try await request.response() }
        #expect(Self.kind(request.error) == .deadline)
        #expect(server.requests.first?.header("X-Adapted") == "1")
    }

    @Test func `a deadline ends a transfer, which is not retried`() async throws {
        let server = try Server()
        let request = server.request("held")
        request.retries = -1
        request.requestOptions = Self.later
        #expect(await run(request) == .failed)
        #expect(Self.kind(request.error) == .deadline)
        #expect(server.requests.count == 1)
        request.requestOptions = nil
        let error = await withDeadline(.seconds(1)) { await #expect(throws: CurlewError.self) { try await request.response() } }
        #expect(Self.kind(error) == .deadline)
        #expect(server.requests.count == 2)
    }

    @Test func `a deadline counts over all attempts, their delays and decisions`() async throws {
        let server = try Server()
        let delayed = server.request("bad")
        delayed.retries = -1
        delayed.interval = 600
        delayed.requestOptions = Self.later
        #expect(await run(delayed) == .failed)
        #expect(Self.kind(delayed.error) == .deadline)
        let undecided = server.request("bad")
        undecided.retries = 1
        undecided.onRetry = { _ in }
        undecided.requestOptions = Self.later
        #expect(await run(undecided) == .failed)
        #expect(Self.kind(undecided.error) == .deadline)
        #expect(server.requests.count == 2)
        let often = server.request("bad")
        often.retries = -1
        often.interval = 0.02
        often.requestOptions = Self.later
        #expect(await run(often) == .failed)
        #expect(Self.kind(often.error) == .deadline)
        #expect(server.requests.count > 3)
    }

    @Test func `a deadline ends the wait for new credentials`() async throws {
        let stage = try Stage { _, _ in .status(401) }
        let gate = Gate()
        defer { gate.open() }
        stage.configuration.tokenRefresher = TokenRefresher { _ in
            _ = await gate.wait()
            return true
        }
        let request = SampleRequest(stage)
        request.requestOptions = Self.later
        #expect(await run(request) == .failed)
        #expect(Self.kind(request.error) == .deadline)
        #expect(stage.server.requestCount == 1)
    }

    @Test func `a request that is built on the agent's queue, and a download, have the caller's deadline`() async throws {
        let server = try Server()
        let directory = try TemporaryDirectory()
        let form = server.request("held")
        form.method = .post
        form.constructingBodyBlock = { $0.append(Data("a".utf8), withName: "b") }
        let download = server.request("held/file")
        download.resumableDownloadPath = directory.file("file").path
        let endings = await withDeadline(.milliseconds(250)) {
            async let first = run(form)
            async let second = run(download)
            return await [first, second]
        }
        #expect(endings == [.failed, .failed])
        #expect([form, download].map { Self.kind($0.error) } == [.deadline, .deadline])
    }

    @Test func `the interceptor retries within an attempt, and stopping ends that`() async throws {
        let server = try Server()
        let asked = CurlewTestSupport.Log<Int>()
        let request = server.request("json")
        let tries = Lock(0)
        request.requestOptions = RequestOptions(
            interceptor: Interceptor(
                adapters: [
                    Adapter { urlRequest in
                        let isFirst = tries.withLock { tries in
                            tries += 1
                            return tries == 1
                        }
                        if isFirst { throw UserError(number: 1) }
                        return urlRequest
                    }
                ],
                retriers: [
                    Retrier { _, _, _, completion in
                        asked.append(1)
                        completion(true, 0)
                    }
                ]))
        #expect(await run(request) == .succeeded)
        #expect(asked.elements.count == 1 && request.requestTotalCount == 1)
        let stopped = server.request("held")
        stopped.requestOptions = RequestOptions(
            deadline: .seconds(40), interceptor: Retrier { _, _, _, completion in completion(true, 600) })
        let ending = Task { await run(stopped) }
        #expect(await server.stage.server.waitForRequests(2))
        stopped.stop()
        #expect(await ending.value == .stopped)
    }

    // MARK: Groups

    @Test func `a deadline around the start of a batch, or of its options, bounds all of its requests`() async throws {
        let server = try Server()
        let batch = BatchRequest(requestArray: [server.request("held/1"), server.request("held/2")])
        batch.stoppedOnFailure = false
        let results = await withDeadline(.milliseconds(250)) { await batch.results() }
        #expect(results.map { Self.kind($0.failure) } == [.deadline, .deadline])
        let other = BatchRequest(requestArray: [server.request("held/1"), server.request("held/2")])
        other.stoppedOnFailure = false
        other.requestOptions = Self.soon
        #expect(await other.results().map { Self.kind($0.failure) } == [.deadline, .deadline])
    }

    @Test func `a deadline around the start of a chain bounds its later steps, their interval, and further steps`() async throws {
        let server = try Server()
        let chain = ChainRequest()
        chain.addRequest(server.request("json"))
        chain.addBatch(BatchRequest(requestArray: [server.request("held")]))
        let error = await withDeadline(.milliseconds(250)) { await #expect(throws: CurlewError.self) { try await chain.response() } }
        #expect(Self.kind(error) == .deadline)
        let slow = ChainRequest()
        slow.agent = server.agent
        slow.requestInterval = 600
        slow.requestOptions = Self.soon
        slow.addRequest(server.request("json"))
        slow.addRequest(server.request("json"))
        await #expect(throws: CurlewError.self) { try await slow.response() }
        let endless = ChainRequest()
        endless.agent = server.agent
        endless.stoppedOnFailure = false
        endless.requestOptions = Self.soon
        endless.requestBuilder = { _, _ in .request(server.request("json")) }
        await #expect(throws: CurlewError.self) { try await endless.response() }
        #expect(Self.kind(endless.failedRequest?.error) == .deadline)
    }

    @Test func `a request or step that runs without the group's options is started again with them`() async throws {
        let stage = try GroupStage()
        let guarded = RequestOptions(addresses: .publicOnly)
        let request = stage.request("held/1")
        request.start()
        let step = BatchRequest(requestArray: [stage.request("held/2")])
        step.start()
        #expect(await stage.stage.server.waitForRequests(2))
        let batch = BatchRequest(requestArray: [request])
        batch.requestOptions = guarded
        batch.start()
        let chain = ChainRequest()
        chain.addBatch(step)
        chain.requestOptions = guarded
        chain.agent = stage.stage.agent
        chain.start()
        await stage.stage.settle()
        #expect(batch.isExecuting && chain.isExecuting)
        stage.gate.open()
        #expect(await eventually { batch.failedRequest === request && chain.failedRequest != nil })
        #expect(Self.kind(request.error) != nil && stage.asked.sorted() == ["held/1", "held/2"])
        // Without options of its own, a group shares the run.
        let (other, shared) = (stage.request("a"), BatchRequest(requestArray: []))
        shared.addRequest(other)
        other.start()
        #expect(await run(shared) == .succeeded)
    }

    @Test func `a group that is stopped while it waits for a run starts nothing`() async throws {
        let stage = try GroupStage()
        let request = stage.request("held")
        request.start()
        #expect(await stage.stage.server.waitForRequests(1))
        let batch = BatchRequest(requestArray: [request])
        batch.requestOptions = RequestOptions(name: "batch")
        batch.start()
        batch.stop()
        stage.gate.open()
        await stage.stage.settle()
        #expect(!request.isExecuting && stage.asked == ["held"])
    }

    @Test func `the options of groups are those of their requests, unless these have their own`() async throws {
        let server = try Server()
        let own = server.request("own")
        own.requestOptions = RequestOptions(interceptor: Self.adding("X-Inner", "own"))
        let batch = BatchRequest(requestArray: [server.request("plain"), own])
        batch.requestOptions = RequestOptions(interceptor: Self.adding("X-Inner", "batch"))
        let chain = ChainRequest()
        chain.requestOptions = RequestOptions(interceptor: Self.adding("X-Outer"), name: "chain")
        chain.addRequest(server.request("first"))
        chain.addBatch(batch)
        #expect(try await chain.response() != nil)
        let byPath = Dictionary(server.requests.map { ($0.path, $0) }) { first, _ in first }
        #expect(["/first", "/plain", "/own"].map { byPath[$0]?.header("X-Outer") } == ["1", "1", "1"])
        #expect(["/first", "/plain"].map { byPath[$0]?.header("X-Inner") } == [nil, "batch"])
        // The request's own adapts first, the group's after it.
        #expect(byPath["/own"]?.header("X-Inner") == "batch")
    }
}

extension Result {
    fileprivate var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
