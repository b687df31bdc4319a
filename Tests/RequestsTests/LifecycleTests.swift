// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

@testable import CurlewRequests

/// Starts, stops and ends.
@Suite(.timeLimit(.minutes(1)))
struct LifecycleTests {
    /// A stage whose server responds when the gate opens.
    private func makeGated() throws -> (Stage, Gate) {
        let gate = Gate()
        return (
            try Stage { _, connection in
                connection.wait(until: gate)
                return Stage.json("{}")
            }, gate
        )
    }

    @Test func `blocks receive the request and are released`() async throws {
        let stage = try Stage.standard()
        let (request, failing) = (SampleRequest(stage), SampleRequest(stage, "status/500"))
        let names = await withTrackedContinuation { continuation in
            let names = Lock<[String]>([])
            let note: @Sendable (String, BaseRequest) -> Void = { name, ended in
                let all = names.withLock { names in
                    names.append("\(name) \(ended.tag)")
                    return names
                }
                if all.count == 2 { continuation.resume(returning: all) }
            }
            (request.tag, failing.tag) = (1, 2)
            request.uploadProgressBlock = { _ in }
            request.startWithCompletionBlock(success: { note("success", $0) }, failure: { note("failure", $0) })
            failing.startWithCompletion { note("completion", $0) }
        }
        #expect(Set(names) == ["success 1", "completion 2"])
        await stage.settle()
        #expect(request.successCompletionBlock == nil && request.failureCompletionBlock == nil)
        #expect(request.uploadProgressBlock == nil)
    }

    @Test func `the agent retains a running request and releases a finished one`() async throws {
        let (stage, gate) = try makeGated()
        weak var observed: SampleRequest?
        await withTrackedContinuation { continuation in
            let request = SampleRequest(stage)
            observed = request
            // A reference cycle: the block retains the request that retains the block.
            request.startWithCompletion { _ in
                withExtendedLifetime(request) {}
                continuation.resume()
            }
            gate.open()
        }
        await stage.settle()
        #expect(await eventually { observed == nil })
        #expect(stage.agent.requests.isEmpty)
    }

    @Test func `a stopped request is released with its blocks`() async throws {
        let (stage, gate) = try makeGated()
        weak var observed: SampleRequest?
        do {
            let request = SampleRequest(stage)
            observed = request
            request.startWithCompletion { _ in
                withExtendedLifetime(request) {}
                Issue.record("A stopped request called back")
            }
            #expect(await gate.arrivals())
            request.stop()
            #expect(request.isCancelled)
        }
        gate.open()
        #expect(await eventually { observed == nil })
    }

    @Test func `a second start of a running request has no effect`() async throws {
        let (stage, gate) = try makeGated()
        let request = SampleRequest(stage)
        request.start()
        #expect(request.isExecuting)
        request.start()
        let ending = await withTrackedContinuation { (continuation: TrackedContinuation<RequestEnding>) in
            request.start { continuation.resume(returning: $0) }
            gate.open()
        }
        #expect(ending == .succeeded)
        #expect(stage.server.requests.count == 1)
    }

    @Test func `a request may be started again in its own block`() async throws {
        let stage = try Stage.standard()
        let request = SampleRequest(stage)
        let runs = Lock(0)
        await withTrackedContinuation { continuation in
            request.startWithCompletionBlock(success: { request in
                let count = runs.withLock { runs in
                    runs += 1
                    return runs
                }
                if count < 3 { request.start() } else { continuation.resume() }
            })
        }
        #expect(stage.server.requests.count == 3)
        await stage.settle()
        #expect(request.successCompletionBlock == nil && stage.agent.requests.isEmpty)
    }

    @Test func `blocks set in a block belong to the next start`() async throws {
        let stage = try Stage.standard()
        let request = SampleRequest(stage)
        await withTrackedContinuation { continuation in
            request.startWithCompletion { $0.startWithCompletion { _ in continuation.resume() } }
        }
        #expect(stage.server.requests.count == 2)
    }

    @Test func `delegate methods are optional`() async throws {
        final class EmptyDelegate: RequestDelegate {}
        let stage = try Stage.standard()
        let delegate = EmptyDelegate()
        for path in ["json", "status/500"] {
            let request = SampleRequest(stage, path)
            request.delegate = delegate
            _ = await run(request)
            #expect(request.requestTotalCount == 1)
        }
    }

    // MARK: Agent

    @Test func `requests are found and cancelled by tag, by condition and all together`() async throws {
        let (stage, gate) = try makeGated()
        let requests = (0..<6).map { number in
            let request = SampleRequest(stage, "\(number)")
            request.tag = number % 2
            request.start()
            return request
        }
        #expect(stage.agent.requests.map { ($0 as? SampleRequest)?.path } == requests.map(\.path))
        stage.agent.cancelRequests(tag: 1)
        #expect(requests.map(\.isCancelled) == [false, true, false, true, false, true])
        stage.agent.cancelRequests { $0.requestUrl() == "2" }
        #expect(requests[2].isCancelled && !requests[0].isCancelled)
        stage.agent.cancelAllRequests()
        #expect(requests.allSatisfy(\.isCancelled) && stage.agent.requests.isEmpty)
        gate.open()
    }

    @Test func `a changed session configuration applies to the next request`() async throws {
        let stage = try Stage { request, _ in .ok(request.header("X-Session") ?? "", type: "text/plain") }
        func header() async -> String? {
            let request = SampleRequest(stage)
            request.responseSerializer = .http
            _ = await run(request)
            return request.responseString
        }
        #expect(await header() == "")
        var session = SessionConfiguration()
        session.headers = ["X-Session": "second"]
        stage.configuration.sessionConfiguration = session
        #expect(await header() == "second")
    }

    @Test func `a request in flight keeps its session when the configuration changes`() async throws {
        let (stage, gate) = try makeGated()
        let request = SampleRequest(stage)
        request.start()
        #expect(await gate.arrivals())
        stage.configuration.sessionConfiguration = SessionConfiguration()
        _ = stage.agent.currentManager()
        gate.open()
        #expect(await run(request) == .succeeded)
    }

    @Test func `requests of higher priority get the next connection`() async throws {
        let (stage, gate) = try makeGated()
        var session = SessionConfiguration()
        session.maximumConnectionsPerHost = 1
        stage.configuration.sessionConfiguration = session
        let first = SampleRequest(stage, "first")
        first.start()
        #expect(await gate.arrivals())
        let requests = [BaseRequest.Priority.low, .default, .high].map { priority in
            let request = SampleRequest(stage, "\(priority)")
            request.requestPriority = priority
            request.start()
            return request
        }
        // A later request that completes in the same session shows that all of these are queued by now.
        let other = try Stage.standard()
        #expect(await run(SampleRequest(stage, other.server.url("/json"))) == .succeeded)
        gate.open()
        for request in requests { _ = await run(request) }
        #expect(stage.server.requests.prefix(4).map(\.path) == ["/first", "/high", "/default", "/low"])
    }

    @Test func `cookies are stored in HTTPCookieStorage.shared unless the session has none`() async throws {
        #expect(RequestsConfiguration.defaultSessionConfiguration.cookieStorage === HTTPCookieStorage.shared)
        let directory = try TemporaryDirectory()
        let stage = try Stage { _, _ in .status(204, headers: [ServerField("Set-Cookie", "a=1; Path=/")]) }
        // Run in a separate process with a cookie storage of its own.
        let report = try await Probe.run("cookies", stage.server.url("/"), environment: ["XDG_DATA_HOME": directory.url.path])
        #expect(report.status == 0)
        #expect(stage.server.requests.map { $0.header("Cookie") } == [nil, "a=1", nil])
    }

    // MARK: Logging and metrics

    @Test func `metrics are reported for each attempt`() async throws {
        let stage = try Stage.standard()
        let counts = Lock<[Int]>([])
        stage.configuration.collectingMetricsBlock = { request, metrics in
            counts.withLock { $0.append(metrics.transactionMetrics.count) }
        }
        let request = SampleRequest(stage, "flaky/1")
        request.retries = 1
        #expect(await run(request) == .succeeded)
        #expect(counts.withLock { $0 } == [1, 1])
    }

    @Test func `the debug log reports starts, retries and ends`() async throws {
        let stage = try Stage.standard()
        let lines = Lock<[String]>([])
        stage.configuration.logHandler = { line in lines.withLock { $0.append(line) } }
        let request = SampleRequest(stage, "flaky/1")
        request.retries = 1
        #expect(await run(request) == .succeeded)
        #expect(lines.withLock { $0 }.isEmpty)
        stage.configuration.debugLogEnabled = true
        let failing = SampleRequest(stage, "flaky/9")
        failing.retries = 1
        #expect(await run(failing) == .failed)
        #expect(lines.withLock { $0.map { $0.prefix { $0 != " " } } } == ["start", "retry", "failed"])
    }

    @Test func `descriptions name URL, method and argument`() throws {
        let stage = try Stage.standard()
        let request = SampleRequest(stage, "http://user:secret@h/x")
        request.argument = "a"
        #expect(request.description == "<SampleRequest>{ URL: http://h/x } { method: GET } { arguments: a }")
        stage.configuration.cdnUrl = "http://cdn/"
        #expect(stage.configuration.description == "{ baseURL: \(stage.configuration.baseUrl) } { cdnURL: http://cdn/ }")
    }

    @Test func `no text of a request contains a secret`() throws {
        let stage = try Stage.standard()
        Redaction(queryItems: ["lifecycle_pin"]).register()
        let request = SampleRequest(stage, "http://user:s3cret@h/x?lifecycle_pin=s3cret")
        request.argument = ["lifecycle_pin": "s3cret", "b": "1\u{9B}"]
        #expect(request.description.contains(#""lifecycle_pin": "<hidden>""#) && !request.description.contains("\u{9B}"))
        let filter = UrlArgumentsFilter(arguments: ["lifecycle_pin": "s3cret"])
        for value in [request, filter, stage.configuration] as [Any] {
            var text = "\(value) \(String(reflecting: value)) "
            dump(value, to: &text)
            #expect(!text.contains("s3cret"), "\(text)")
        }
    }

    // MARK: async/await

    @Test func `a response is awaited and decoded`() async throws {
        struct Model: Decodable, Equatable {
            let id: Int
        }
        let stage = try Stage.standard()
        let request = try await SampleRequest(stage).response()
        #expect((request.responseJSONObject as? [String: Any])?.count == 2)
        #expect(try await SampleRequest(stage).responseModel(of: Model.self) == Model(id: 1))
        await #expect(throws: RequestValidationError.invalidStatusCode(500)) { try await SampleRequest(stage, "status/500").response() }
    }

    @Test func `cancelling the task stops the request, and a stop cancels awaiting tasks`() async throws {
        let (stage, gate) = try makeGated()
        let request = SampleRequest(stage)
        let task = Task { try await request.response() }
        #expect(await gate.arrivals())
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(request.isCancelled)
        let other = SampleRequest(stage)
        let waiting = Task { try await other.response() }
        #expect(await gate.arrivals(2))
        other.stop()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        gate.open()
    }

    @Test func `a task cancelled beforehand sends nothing`() async throws {
        let stage = try Stage.standard()
        let gate = Gate()
        let task = Task {
            await gate.wait()
            return try await SampleRequest(stage).response()
        }
        task.cancel()
        gate.open()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(stage.server.requests.isEmpty)
    }

    @Test func `synchronous starts run in turn, without those that are filtered out`() async throws {
        let busy = Lock(0)
        let most = Lock(0)
        let stage = try Stage { _, _ in
            let now = busy.withLock { busy in
                busy += 1
                return busy
            }
            most.withLock { $0 = max($0, now) }
            busy.withLock { $0 -= 1 }
            return Stage.json("{}")
        }
        await withTrackedContinuation { continuation in
            for number in 0..<5 {
                SampleRequest(stage, "\(number)").startSynchronously(filter: { number != 2 }) { _ in
                    if number == 4 { continuation.resume() }
                }
            }
        }
        #expect(stage.server.requests.map(\.path) == ["/0", "/1", "/3", "/4"])
        #expect(most.withLock { $0 } == 1)
    }
}
