// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct CurlTransportTests {
    @Test("a GET returns status, header fields and body")
    func get() async throws {
        let server = try LoopbackServer.standard()
        let transport = CurlTransport()
        let end = await transport.run(TransferRequest(url: server.url("/bytes/100000")))
        #expect(end.error == nil)
        #expect(end.head?.statusCode == 200)
        #expect(end.head?.value(for: "content-length") == "100000")
        #expect(end.body.count == 100_000 && GeneratedBody().matches(end.body))
        #expect(end.completions == 1)
        let metrics = try #require(end.completion?.metrics)
        #expect(metrics.responseBodyBytes == 100_000)
        #expect(metrics.httpVersion == .http1_1)
        #expect(metrics.remoteAddress == "127.0.0.1")
        #expect(metrics.remotePort == server.port)
        #expect(!metrics.reusedConnection)
        #expect(try #require(metrics.responseStart) <= metrics.total)
    }

    @Test("the second request reuses the first one's connection")
    func reuse() async throws {
        let server = try LoopbackServer.standard()
        let transport = CurlTransport()
        for _ in 0..<5 { #expect(await transport.run(TransferRequest(url: server.url("/json"))).error == nil) }
        let end = await transport.run(TransferRequest(url: server.url("/json")))
        #expect(end.completion?.metrics.reusedConnection == true)
        #expect(server.connectionCount == 1)
    }

    @Test("the portable poller behaves the same")
    func pollPoller() async throws {
        let server = try LoopbackServer.standard()
        let transport = CurlTransport(makePoller: { try PollPoller() })
        await withTaskGroup(of: RecordingObserver.Record.self) { group in
            for _ in 1...50 { group.addTask { await transport.run(TransferRequest(url: server.url("/bytes/50000"))) } }
            for await end in group { #expect(end.error == nil && end.body.count == 50_000) }
        }
    }

    @Test("a body in memory is sent completely", arguments: [HTTPMethod.post, .put, .patch, .delete, .get])
    func body(method: HTTPMethod) async throws {
        let server = try LoopbackServer.standard()
        let transport = CurlTransport()
        let data = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0) })
        let end = await transport.run(TransferRequest(url: server.url("/body"), method: method, body: DataBody(data)))
        #expect(end.error == nil)
        #expect(end.body == data)
        #expect(end.sent == 300_000)
        #expect(server.requests.last?.method == method.rawValue)
    }

    @Test("thousands of requests, 256 in flight, all succeed")
    func many() async throws {
        let server = try LoopbackServer.standard(recording: false)
        let transport = CurlTransport()
        let url = server.url("/bytes/1024")
        let failures = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<256 {
                group.addTask {
                    var failures = 0
                    for _ in 0..<TestLength.value(40, short: 5) {
                        let end = await transport.run(TransferRequest(url: url))
                        if end.error != nil || end.body.count != 1024 { failures += 1 }
                    }
                    return failures
                }
            }
            return await group.reduce(0, +)
        }
        #expect(failures == 0)
        #expect(server.connectionCount <= 64)
    }

    @Test("cancelling completes the transfer immediately")
    func cancel() async throws {
        let server = try LoopbackServer.standard()
        let transport = CurlTransport()
        let observer = RecordingObserver()
        let transfer = transport.start(TransferRequest(url: server.url("/silent")), observer: observer)
        #expect(await server.waitForRequests(1, timeout: .seconds(5)))
        transfer.cancel()
        let end = await observer.end()
        #expect(end.isCancelled)
        #expect(end.completions == 1)
    }

    @Test("releasing the transport completes its transfers")
    func drop() async throws {
        let server = try LoopbackServer.standard()
        let observer = RecordingObserver()
        do {
            let transport = CurlTransport()
            transport.start(TransferRequest(url: server.url("/silent")), observer: observer)
            #expect(await server.waitForRequests(1, timeout: .seconds(5)))
        }
        let end = await observer.end()
        #expect(end.isInvalidated)
    }

    @Test("a thousand transfers cancelled at random moments complete exactly once")
    func cancels() async throws {
        let server = try LoopbackServer.standard(recording: false)
        let transport = CurlTransport()
        var random = SplitMix(state: 3)
        let paths = ["/bytes/100000", "/silent", "/head-only", "/json", "/chunked/50000"]
        let observers = (1...1000).map { _ in RecordingObserver() }
        var transfers: [any TransferHandle] = []
        for (index, observer) in observers.enumerated() {
            transfers.append(transport.start(TransferRequest(url: server.url(paths[index % paths.count])), observer: observer))
            if random.next() % 3 == 0 { await Task.yield() }
            transfers.randomElement(using: &random)?.cancel()
        }
        for transfer in transfers { transfer.cancel() }
        for observer in observers {
            let end = await observer.end()
            #expect(end.completions == 1)
            #expect(end.isCancelled || end.error == nil)
        }
        #expect(await transport.run(TransferRequest(url: server.url("/json"))).error == nil)
    }

    @Test("shutting down at random moments completes each transfer exactly once")
    func shutDowns() async throws {
        let server = try LoopbackServer.standard(recording: false)
        for round in 0..<30 {
            let transport = CurlTransport()
            let observers = (1...40).map { _ in RecordingObserver() }
            let streams = (1...5).map { _ in RecordingStreamObserver() }
            for (index, observer) in observers.enumerated() {
                transport.start(
                    TransferRequest(url: server.url(index % 2 == 0 ? "/bytes/20000" : "/silent")), observer: observer)
            }
            let request = StreamTransferRequest(host: "127.0.0.1", port: server.port, isSecure: false)
            for stream in streams { transport.openStream(request, observer: stream) }
            for _ in 0..<(round * 5) { await Task.yield() }
            transport.shutDown()
            transport.shutDown()
            for observer in observers {
                let end = await observer.end()
                #expect(end.completions == 1)
                #expect(end.isInvalidated || end.error == nil)
            }
            for stream in streams { #expect(await stream.end().completions == 1) }
        }
    }

    @Test("transfers started after shutdown complete immediately, without side effects")
    func afterShutDown() async throws {
        let transport = CurlTransport()
        transport.shutDown()
        let observers = (RecordingObserver(), RecordingStreamObserver())
        let transfer = transport.start(TransferRequest(url: "http://127.0.0.1:1/"), observer: observers.0)
        let stream = transport.openStream(StreamTransferRequest(host: "127.0.0.1", port: 1, isSecure: false), observer: observers.1)
        transfer.cancel()
        transfer.setSuspended(true)
        stream.send(Data([1]), endOfStream: true)
        stream.cancel()
        #expect(await observers.0.end().isInvalidated)
        #expect(await observers.1.end().isInvalidated)
        #expect(observers.0.record.completions == 1)
        #expect(await observers.1.end().completions == 1)
    }

    @Test("the wait for the end of a transport returns when its thread has ended, or at once if there is none")
    func waitForEnd() async throws {
        let unused = CurlTransport()
        unused.shutDown()
        await unused.waitUntilShutDown()
        await unused.waitUntilShutDown()
        let failing = CurlTransport(makePoller: { throw POSIXError(.EMFILE) })
        #expect(await failing.run(TransferRequest(url: "http://127.0.0.1:1/")).error != nil)
        failing.shutDown()
        await failing.waitUntilShutDown()
        let server = try LoopbackServer.standard(recording: false)
        for _ in 0..<50 {
            let transport = CurlTransport()
            let thread = await Task(executorPreference: transport.taskExecutor) {
                try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
            }.value
            let path = "/proc/" + (try #require(thread))
            let observer = RecordingObserver()
            transport.start(TransferRequest(url: server.url("/silent")), observer: observer)
            // Of several waits some begin before the end, some with it, and some after it.
            async let waits: Void = withTaskGroup { group in
                for _ in 0..<3 { group.addTask { await transport.waitUntilShutDown() } }
            }
            transport.shutDown()
            await transport.waitUntilShutDown()
            #expect(await observer.end().completions == 1)
            await waits
            // Joining the thread returns a moment before the kernel removes its entry.
            #expect(await eventually { !FileManager.default.fileExists(atPath: path) })
        }
    }

    @Test("without a descriptor for the event loop transfers fail, and the next one tries again")
    func noDescriptor() async throws {
        let server = try LoopbackServer.standard()
        let attempts = Lock(0)
        let transport = CurlTransport(makePoller: {
            let attempt = attempts.withLock { attempts in
                attempts += 1
                return attempts
            }
            guard attempt > 1 else { throw POSIXError(.EMFILE) }
            return try SystemPoller()
        })
        let end = await transport.run(TransferRequest(url: server.url("/json")))
        #expect(end.failure?.kind == .configuration)
        #expect(end.failure?.phase == .queued)
        #expect(await transport.run(TransferRequest(url: server.url("/json"))).error == nil)
    }

    @Test("transfers and streams that are not started need no thread")
    func noThread() async throws {
        let attempts = Lock(0)
        let transport = CurlTransport(makePoller: {
            attempts.withLock { $0 += 1 }
            return try SystemPoller()
        })
        let observers = (RecordingObserver(), RecordingStreamObserver())
        let transfer = transport.makeTransfer(TransferRequest(url: "http://127.0.0.1:1/"), id: 1, observer: observers.0)
        let stream = transport.makeStream(
            StreamTransferRequest(host: "127.0.0.1", port: 1, isSecure: false), id: 2, observer: observers.1)
        stream.send(Data([1]), endOfStream: true)
        for handle in [transfer, stream] {
            handle.setSuspended(true)
            handle.resumeReceiving()
            handle.cancel()
            handle.start()
        }
        #expect(await observers.0.end().isCancelled)
        #expect(await observers.1.end().isCancelled)
        transport.shutDown()
        #expect(attempts.withLock { $0 } == 0)
    }

    @Test("a transport's end releases its connections, threads and descriptors")
    func resources() async throws {
        let descriptors = try #require(ProcessProbe.openDescriptorCount)
        let threads = try #require(ProcessProbe.threadCount)
        for _ in 0..<60 {
            let server = try LoopbackServer.standard(recording: false)
            do {
                let transport = CurlTransport()
                for _ in 1...3 { #expect(await transport.run(TransferRequest(url: server.url("/json"))).error == nil) }
            }
            #expect(await server.waitForConnectionsToClose())
        }
        // Other suites run in parallel: their resources are released as well, but a loop's leak would persist.
        #expect(ProcessProbe.settles(timeout: .seconds(40)) { ProcessProbe.openDescriptorCount.map { $0 < descriptors + 30 } ?? true })
        #expect(ProcessProbe.settles(timeout: .seconds(40)) { ProcessProbe.threadCount.map { $0 < threads + 30 } ?? true })
    }

    @Test("a body that retains the loop's wake-up closure does not retain its descriptor")
    func bodyOutlivesLoop() async throws {
        let server = try LoopbackServer.standard(recording: false)
        weak var wakeUp: WakeUp?
        let body = FedBody([.bytes(Data("x".utf8)), .end])
        do {
            let box = Lock<WakeUp?>(nil)
            let transport = CurlTransport(makePoller: {
                let poller = try SystemPoller()
                box.withLock { $0 = poller.wakeUp }
                return poller
            })
            #expect(await transport.run(TransferRequest(url: server.url("/body"), method: .put, body: body)).error == nil)
            wakeUp = box.withLock { $0.take() }
        }
        #expect(ProcessProbe.settles { wakeUp == nil })
        #expect(body.isPrepared)
    }

    #if os(Linux)
    @Test("commands posted on the loop's own thread signal no wake-up")
    func ownCommands() async throws {
        let server = try LoopbackServer.standard(recording: false)
        let box = Lock<WakeUp?>(nil)
        let transport = CurlTransport(makePoller: {
            let poller = try SystemPoller()
            box.withLock { $0 = poller.wakeUp }
            return poller
        })
        let last = RecordingObserver()
        @Sendable func start(_ count: Int) {
            let next = RecordingObserver(onHead: { _ in
                start(count - 1)
                return .proceed
            })
            // Delayed, so that the thread sleeps meanwhile.
            transport.start(TransferRequest(url: server.url("/delay/20")), observer: count > 1 ? next : last)
        }
        start(10)
        #expect(await last.end().error == nil)
        // The system counts the signals since the descriptor was last read, which nothing does here.
        var signals: UInt64 = 0
        let wakeUp = try #require(box.withLock { $0 })
        _ = read(wakeUp.descriptor, &signals, 8)
        #expect(signals == 0)
    }
    #endif

    @Test("a transfer whose socket can't be watched fails immediately, in every phase", arguments: [0, 1, 2])
    func unwatchedSocket(watched: Int) async throws {
        let server = try LoopbackServer { _, connection in
            connection.waitUntilClosed()
            return nil
        }
        let transport = CurlTransport(makePoller: { try RefusingPoller(after: watched) })
        var request = TransferRequest(url: server.url("/"), method: .put, body: DataBody(Data(count: 64 << 20)))
        request.options.totalTimeout = .seconds(20)
        let failure = try #require(await transport.run(request).failure)
        #expect(failure.message.contains("watch"), "\(failure)")
        #expect(failure.kind == (failure.phase < .sending ? .connect : .connectionLost))
        #expect(server.requestCount <= 1)
        let stream = RecordingStreamObserver()
        transport.openStream(StreamTransferRequest(host: "127.0.0.1", port: server.port, isSecure: false), observer: stream)
        let end = await stream.end()
        #expect(end.failure?.message.contains("watch") == true, "\(String(describing: end.completion?.error))")
    }

    #if os(Linux)
    @Test("epoll's refusal is reported: it does not watch regular files")
    func regularFile() throws {
        let directory = try TemporaryDirectory()
        let descriptor = open(try directory.write(Data(), to: "file").path, O_RDONLY)
        defer { close(descriptor) }
        let poller = try EpollPoller()
        #expect(poller.watch(descriptor, from: [], to: .readable) == EPERM)
        #expect(poller.watch(-1, from: .readable, to: .writable) == EBADF)
        #expect(poller.watch(descriptor, from: .readable, to: []) == 0)
    }
    #endif

    @Test("hundreds of idle transfers don't make a turn more expensive")
    func idleTransfers() async throws {
        let silent = try SilentListener(backlog: 4096)
        let server = try LoopbackServer.standard(recording: false)
        let poller = CountingPoller.Counts()
        var configuration = TransportConfiguration()
        configuration.maximumConnectionsPerHost = nil
        let transport = CurlTransport(configuration: configuration, makePoller: { try CountingPoller(counts: poller) })
        func costOf500Requests() async -> (waits: Int, calls: Int) {
            let before = poller.value
            for _ in 0..<500 { #expect(await transport.run(TransferRequest(url: server.url("/json"))).error == nil) }
            return (poller.value.waits - before.waits, poller.value.calls - before.calls)
        }
        let alone = await costOf500Requests()
        let idle = (0..<300).map { _ in RecordingObserver() }
        for observer in idle {
            transport.start(TransferRequest(url: "http://127.0.0.1:\(silent.port)/"), observer: observer)
        }
        _ = await costOf500Requests()
        let beside = await costOf500Requests()
        #expect(beside.waits < alone.waits * 2 + 100)
        #expect(beside.calls < alone.calls * 2 + 100)
        #expect(beside.calls < 500)
        transport.shutDown()
        for observer in idle { #expect(await observer.end().isInvalidated) }
    }
}
