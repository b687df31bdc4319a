// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewURLSession

@Suite(.timeLimit(.minutes(1))) struct ConnectivityTests {
    /// A network that the test changes.
    private final class Network: NetworkPathProvider {
        private struct State {
            var isThere: Bool
            var lookups = 0
            var watchers: [AsyncStream<Void>.Continuation] = []
            var ended = 0
        }

        private let state: Lock<State>

        init(isThere: Bool) {
            state = Lock(State(isThere: isThere))
        }

        var lookups: Int { state.withLock { $0.lookups } }
        /// How many have watched the changes, and how many do not any more.
        var watched: (all: Int, ended: Int) { state.withLock { ($0.watchers.count, $0.ended) } }

        func currentPath() -> NetworkPath? {
            state.withLock { state in
                state.lookups += 1
                return NetworkPath(interface: state.isThere ? "eth0" : nil)
            }
        }

        func changes() -> AsyncStream<Void>? {
            let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
            continuation.onTermination = { [weak self] _ in self?.state.withLock { $0.ended += 1 } }
            state.withLock { $0.watchers.append(continuation) }
            return stream
        }

        func change(isThere: Bool) {
            let watchers = state.withLock { state in
                state.isThere = isThere
                return state.watchers
            }
            for watcher in watchers { watcher.yield() }
        }
    }

    private let server: LoopbackServer
    private let recorder = CallRecorder()

    init() throws {
        server = try LoopbackServer.standard()
    }

    private func session(_ change: (URLSessionConfiguration) -> Void = { _ in }) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.curlew.proxy = .none
        configuration.waitsForConnectivity = true
        change(configuration)
        return URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
    }

    private func start(_ task: URLSessionTask, in network: Network) {
        ConnectivityWait.$provider.withValue(network) { task.resume() }
    }

    private func task(_ session: URLSession) throws -> URLSessionDataTask {
        session.dataTask(with: try #require(URL(string: server.url("/bytes/5"))))
    }

    // U3.3
    @Test func `a task waits for a route, tells once, and starts when there is one`() async throws {
        let session = session()
        defer { session.invalidateAndCancel() }
        let network = Network(isThere: false)
        let task = try task(session)
        start(task, in: network)
        await recorder.calls.wait(for: 1)
        #expect(recorder.calls.elements == ["waiting"])
        #expect(await eventually { network.watched.all == 1 })
        network.change(isThere: false)
        #expect(server.requestCount == 0 && task.state == .running)
        network.change(isThere: true)
        await recorder.completions.wait(for: 1)
        #expect(recorder.calls.elements == ["waiting", "response", "data", "metrics", "complete"])
        #expect(recorder.seen.errors.first.map { $0 == nil } == true)
        #expect(await eventually { network.watched == (1, 1) })
        #expect(task.values.withLock { $0.wait == nil })
    }

    // U2.4, U3.3
    @Test func `a stream task waits for a route as well`() async throws {
        let session = session()
        defer { session.invalidateAndCancel() }
        let network = Network(isThere: false)
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        #expect(task.destination?.absoluteString == "http://127.0.0.1:\(server.port)")
        let other = session.streamTask(withHostName: "::1", port: 443)
        other.startSecureConnection()
        #expect(other.destination?.absoluteString == "https://[::1]:443")
        for task in [task, other] {
            let options = session.curlew.session.configuration.options
            let host = try #require(task.destination.flatMap { options.connectedHost(for: $0.absoluteString) })
            #expect(host == task.host)
        }
        start(task, in: network)
        task.write(Data("GET /bytes/5 HTTP/1.0\r\n\r\n".utf8), timeout: 0) { _ in }
        await recorder.calls.wait(for: 1)
        #expect(recorder.calls.elements == ["waiting"])
        #expect(server.requestCount == 0 && task.state == .running)
        network.change(isThere: true)
        let (data, _) = try await task.readData(ofMinLength: 1 << 10, maxLength: 1 << 10, timeout: 0)
        #expect(data?.isEmpty == false && server.requestCount == 1)
    }

    // U2.4, U3.3
    @Test func `the wait for a route ends with a stream task that is cancelled`() async throws {
        let session = session()
        defer { session.invalidateAndCancel() }
        let network = Network(isThere: false)
        weak var released: URLSessionStreamTask?
        do {
            let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
            released = task
            start(task, in: network)
            #expect(await eventually { network.watched.all == 1 })
            task.cancel()
        }
        await recorder.completions.wait(for: 1)
        #expect((recorder.seen.errors.first as? URLError)?.code == .cancelled)
        #expect(await eventually { network.watched == (1, 1) && released == nil })
    }

    /// Sends half of a file, and no more until the gate opens; the rest to a request for it.
    private func halves(until gate: Gate) throws -> LoopbackServer {
        try LoopbackServer { request, connection in
            let whole = ServerResponse.generated(length: 2_000, etag: "\"v1\"", for: request)
            guard request.header("Range") == nil else { return whole }
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\nETag: \"v1\"\r\n\r\n")
            try connection.send(raw: GeneratedBody().data(count: 1_000))
            connection.wait(until: gate)
            return nil
        }
    }

    // U2.3, U3.3
    @Test func `a resumed download waits for a route as well`() async throws {
        let gate = Gate()
        let server = try halves(until: gate)
        defer { server.stop() }
        defer { gate.open() }
        let directory = try TemporaryDirectory()
        let session = session { $0.curlew.temporaryDirectory = directory.url }
        defer { session.invalidateAndCancel() }
        let network = Network(isThere: true)
        let task = session.downloadTask(with: try server.address("/file"))
        start(task, in: network)
        #expect(await eventually { task.countOfBytesReceived == 1_000 })
        let data = try #require(await task.cancelByProducingResumeData())
        await recorder.completions.wait(for: 1)
        network.change(isThere: false)
        start(session.downloadTask(withResumeData: data), in: network)
        #expect(await eventually { recorder.calls.elements.last == "waiting" })
        #expect(server.requestCount == 1)
        network.change(isThere: true)
        await recorder.completions.wait(for: 2)
        #expect(recorder.seen.file.map { $0.count == 2_000 && GeneratedBody().matches($0) } == true)
    }

    // U2.3, U3.3
    @Test func `a resumed download that is cancelled before its request, or waits in vain for a route, can be resumed again`() async throws
    {
        let gate = Gate()
        let server = try halves(until: gate)
        defer { server.stop() }
        defer { gate.open() }
        let directory = try TemporaryDirectory()
        let session = session { $0.curlew.temporaryDirectory = directory.url }
        defer { session.invalidateAndCancel() }
        let impatient = self.session { $0.timeoutIntervalForResource = 0.05 }
        defer { impatient.invalidateAndCancel() }
        let network = Network(isThere: true)
        let task = session.downloadTask(with: try server.address("/file"))
        start(task, in: network)
        #expect(await eventually { task.countOfBytesReceived == 1_000 })
        let data = try #require(await task.cancelByProducingResumeData())

        let unstarted = session.downloadTask(withResumeData: data)
        #expect(await unstarted.cancelByProducingResumeData() == data)
        // It has ended.
        #expect(await unstarted.cancelByProducingResumeData() == nil)
        network.change(isThere: false)
        let waiting = session.downloadTask(withResumeData: data)
        start(waiting, in: network)
        #expect(await eventually { recorder.calls.elements.last == "waiting" })
        #expect(await waiting.cancelByProducingResumeData() == data)
        // The other session has a queue of its own.
        await recorder.completions.wait(for: 3)
        start(impatient.downloadTask(withResumeData: data), in: network)
        await recorder.completions.wait(for: 4)
        let errors = recorder.seen.errors.compactMap { $0 as? URLError }
        #expect(errors.map(\.code) == [.cancelled, .cancelled, .cancelled, .timedOut])
        #expect(errors.map(\.downloadTaskResumeData) == [data, data, data, data])
        let other = session.downloadTask(withResumeData: Data("other".utf8))
        #expect(await other.cancelByProducingResumeData() == nil)

        network.change(isThere: true)
        start(session.downloadTask(withResumeData: data), in: network)
        await recorder.completions.wait(for: 6)
        #expect(recorder.seen.file.map { $0.count == 2_000 && GeneratedBody().matches($0) } == true)
        #expect(server.requests.last?.header("Range") == "bytes=1000-")
    }

    // U3.3
    @Test func `with a route the delegate hears of no wait, and nothing is watched`() async throws {
        let session = session()
        defer { session.invalidateAndCancel() }
        let network = Network(isThere: true)
        start(try task(session), in: network)
        await recorder.completions.wait(for: 1)
        #expect(recorder.calls.elements == ["response", "data", "metrics", "complete"])
        #expect(network.lookups == 1 && network.watched == (0, 0))
    }

    // U3.3
    @Test func `a session that does not wait looks for no route`() async throws {
        let session = session { $0.waitsForConnectivity = false }
        defer { session.invalidateAndCancel() }
        let network = Network(isThere: false)
        start(try task(session), in: network)
        await recorder.completions.wait(for: 1)
        #expect(network.lookups == 0)
        #expect(recorder.seen.body.count == 5)
    }

    // U3.3
    @Test func `the wait ends with the time for the whole`() async throws {
        let session = session { $0.timeoutIntervalForResource = 0.2 }
        defer { session.invalidateAndCancel() }
        let network = Network(isThere: false)
        let start = ContinuousClock.now
        let task = try task(session)
        self.start(task, in: network)
        await recorder.completions.wait(for: 1)
        #expect(start.duration(to: .now) >= .milliseconds(200))
        #expect(recorder.calls.elements == ["waiting", "metrics", "complete"])
        let error = try #require(recorder.seen.errors.first as? URLError)
        #expect(error.code == .timedOut && error.failingURL == task.originalRequest?.url)
        #expect(await eventually { network.watched == (1, 1) })
    }

    // U3.3
    @Test func `the time without a network counts for the whole`() async throws {
        let session = session { $0.timeoutIntervalForResource = 3 }
        defer { session.invalidateAndCancel() }
        let network = Network(isThere: false)
        let began = ContinuousClock.now
        start(session.dataTask(with: try #require(URL(string: server.url("/silent")))), in: network)
        #expect(await eventually { network.watched.all == 1 })
        while began.duration(to: .now) < .milliseconds(1_500) { await Task.yield() }
        let found = ContinuousClock.now
        network.change(isThere: true)
        await recorder.completions.wait(for: 1)
        #expect((recorder.seen.errors.first as? URLError)?.code == .timedOut)
        // Less than the whole three seconds from then on.
        #expect(found.duration(to: .now) < .milliseconds(2_900))
    }

    // U3.3
    @Test func `a waiting task can be cancelled and suspended`() async throws {
        let session = session()
        let network = Network(isThere: false)
        let cancelled = try task(session)
        start(cancelled, in: network)
        await recorder.calls.wait(for: 1)
        cancelled.cancel()
        await recorder.completions.wait(for: 1)
        #expect((recorder.seen.errors.first as? URLError)?.code == .cancelled)
        #expect(await eventually { network.watched.all == network.watched.ended })

        let suspended = try task(session)
        start(suspended, in: network)
        #expect(await eventually { network.watched.all == 2 })
        suspended.suspend()
        network.change(isThere: true)
        #expect(await eventually { suspended.curlew != nil })
        #expect(suspended.state == .suspended)
        suspended.resume()
        await recorder.completions.wait(for: 2)
        #expect(recorder.seen.body.count == 5)

        network.change(isThere: false)
        start(try task(session), in: network)
        #expect(await eventually { network.watched.all == 3 })
        session.invalidateAndCancel()
        await recorder.completions.wait(for: 3)
        #expect(await eventually { network.watched == (3, 3) })
    }

    // U3.3
    @Test func `this machine is reachable, and so are hosts of which nothing is known`() async throws {
        let session = session()
        defer { session.invalidateAndCancel() }
        try task(session).resume()
        await recorder.completions.wait(for: 1)
        #expect(recorder.calls.elements == ["response", "data", "metrics", "complete"])
        // No wait where there is no host, nor over a Unix domain socket.
        #expect(ConnectivityWait(for: URL(fileURLWithPath: "/x"), TransferOptions()) == nil)
        var options = TransferOptions()
        options.unixSocketPath = "/run/none"
        #expect(options.connectedHost(for: "http://example.org/") == nil)
        options = TransferOptions()
        options.proxy = .url("http://ann:x@proxy.example:3128")
        #expect(options.connectedHost(for: "https://example.org/") == "proxy.example")
        options.proxy = .none
        #expect(options.connectedHost(for: "https://[::1]:8443/") == "::1")
    }
}
