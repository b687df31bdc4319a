// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Foundation
import Testing

@testable import CurlewTransport

/// A transport with several event loops.
@Suite(.timeLimit(.minutes(2))) struct SeveralLoopsTests {
    private func transport(_ loops: Int, _ change: (inout TransportConfiguration) -> Void = { _ in }) -> CurlTransport {
        var configuration = TransportConfiguration()
        configuration.loops = loops
        change(&configuration)
        return CurlTransport(configuration: configuration)
    }

    /// A server that holds each request until the gate opens.
    private func gatedServer(_ gate: Gate) throws -> LoopbackServer {
        try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return .ok("done")
        }
    }

    /// The busy connections of each loop, of those that run.
    private func busy(_ transport: CurlTransport) async -> [Int] {
        await transport.visit { $0.connectionStatistics(ofGroup: 0).connections.busy }
    }

    @Test func `transfers to one host are spread evenly over the loops`() async throws {
        let gate = Gate()
        let server = try gatedServer(gate)
        let transport = transport(3)
        let observers = (0..<30).map { _ in RecordingObserver() }
        for observer in observers { transport.start(TransferRequest(url: server.url("/")), observer: observer) }
        #expect(await gate.arrivals(30))
        #expect(await busy(transport) == [10, 10, 10])
        gate.open()
        for observer in observers { #expect(await observer.end().error == nil) }
    }

    @Test func `one request after the other uses one connection`() async throws {
        let server = try LoopbackServer.standard()
        let transport = transport(4)
        for _ in 1...40 { #expect(await transport.run(TransferRequest(url: server.url("/json"))).error == nil) }
        #expect(server.connectionCount == 1)
        let statistics = await transport.connectionStatistics()
        #expect(statistics.opened == 1 && statistics.reused == 39)
    }

    @Test func `hosts with a request at a time are on different loops`() async throws {
        let servers = try (0..<4).map { _ in try LoopbackServer.standard() }
        let transport = transport(4)
        for _ in 0..<3 {
            for server in servers {
                #expect(await transport.run(TransferRequest(url: server.url("/json"))).error == nil)
            }
        }
        #expect(await transport.visit { $0.connectionStatistics(ofGroup: 0).connections.idle } == [1, 1, 1, 1])
        #expect(servers.allSatisfy { $0.connectionCount == 1 })
    }

    @Test(arguments: [1, 2, 3, 5]) func `a host's limit holds over all loops, for idle connections too`(limit: Int) async throws {
        let server = try LoopbackServer.standard()
        let transport = transport(3) { $0.maximumConnectionsPerHost = limit }
        await withTaskGroup(of: Void.self) { group in
            for id in 1...300 {
                group.addTask { #expect(await transport.run(TransferRequest(url: server.url("/status/200?\(id)"))).error == nil) }
            }
        }
        #expect(server.requestCount == 300)
        #expect(server.connectionCount <= limit)
    }

    @Test func `waiting transfers start by urgency, then in their order, whatever their loops`() async throws {
        let gate = Gate()
        let server = try gatedServer(gate)
        let transport = transport(3) { $0.maximumConnectionsPerHost = 1 }
        let observers = (0..<61).map { _ in RecordingObserver() }
        func start(_ id: Int, urgency: Int) {
            let request = TransferRequest(url: server.url("/\(id)"), headers: ["Priority": "u=\(urgency)"])
            transport.start(request, observer: observers[id])
        }
        start(0, urgency: 3)
        #expect(await gate.arrivals(1))
        for id in 1...60 { start(id, urgency: id % 3) }
        gate.open()
        for observer in observers { #expect(await observer.end().error == nil) }
        let order = [0] + (0..<3).flatMap { urgency in (1...60).filter { $0 % 3 == urgency } }
        #expect(server.requests.map(\.target) == order.map { "/\($0)" })
        #expect(server.connectionCount == 1)
    }

    @Test func `waiting transfers can be suspended, cancelled and resumed on whichever loop they are`() async throws {
        let gate = Gate()
        let server = try gatedServer(gate)
        let transport = transport(2) { $0.maximumConnectionsPerHost = 2 }
        let observers = (0..<42).map { _ in RecordingObserver() }
        var transfers: [any TransferHandle] = []
        for id in 0..<42 {
            let request = TransferRequest(url: server.url("/\(id)"), method: .put, body: DataBody(Data("x".utf8)))
            transfers.append(transport.start(request, observer: observers[id]))
            if id == 1 { #expect(await gate.arrivals(2)) }
        }
        for id in 2..<42 where id % 2 == 0 { transfers[id].setSuspended(true) }
        for id in 2..<42 where id % 3 == 0 { transfers[id].cancel() }
        for id in 2..<42 where id % 3 == 0 { #expect(await observers[id].end().isCancelled) }
        gate.open()
        for id in 2..<42 where id % 2 == 0 { transfers[id].setSuspended(false) }
        for id in 0..<42 where id < 2 || id % 3 != 0 { #expect(await observers[id].end().error == nil, "\(id)") }
        #expect(observers.allSatisfy { $0.record.completions == 1 })
        #expect(server.connectionCount <= 2)
    }

    @Test func `a suspension that comes after its transfer has moved does not undo a later resumption`() async throws {
        let gate = Gate()
        let server = try gatedServer(gate)
        let transport = transport(2)
        let observer = RecordingObserver()
        let transfer = try #require(transport.start(TransferRequest(url: server.url("/")), observer: observer) as? CurlTransfer)
        #expect(await gate.arrivals(1))
        transfer.setSuspended(true)
        transfer.setSuspended(false)
        // As the loop does that got the first call, and had the transfer before.
        let number = transfer.number
        for loop in 0..<2 { transport.dispatcher?.forward(.setSuspended(true, number), for: number, from: loop) }
        gate.open()
        #expect(await observer.end().error == nil)
    }

    @Test func `a transfer that waits fails at its time limit`() async throws {
        let gate = Gate()
        let server = try gatedServer(gate)
        let transport = transport(2) { $0.maximumConnectionsPerHost = 1 }
        let first = RecordingObserver()
        transport.start(TransferRequest(url: server.url("/")), observer: first)
        #expect(await gate.arrivals(1))
        var options = TransferOptions()
        options.queueTimeout = .milliseconds(50)
        #expect(await transport.run(TransferRequest(url: server.url("/"), options: options)).failure != nil)
        gate.open()
        #expect(await first.end().error == nil)
        #expect(await transport.run(TransferRequest(url: server.url("/"))).error == nil)
    }

    @Test func `each of many transfers that are started and cancelled at once completes once`() async throws {
        let server = try LoopbackServer.standard()
        let transport = transport(3) { $0.maximumConnectionsPerHost = 4 }
        let paths = ["/json", "/cut-body", "/reset", "/status/500", "/chunked/5000", "/gzip", "/cut-head", "/delay/5"]
        let observers = (0..<600).map { _ in RecordingObserver() }
        await withTaskGroup(of: Void.self) { group in
            for id in 0..<600 {
                group.addTask {
                    let request = TransferRequest(url: server.url(paths[id % paths.count]))
                    let transfer = transport.start(request, observer: observers[id])
                    if id % 5 == 0 { transfer.setSuspended(true) }
                    if id % 3 == 0 { transfer.cancel() }
                    if id % 5 == 0 { transfer.setSuspended(false) }
                    _ = await observers[id].end()
                }
            }
        }
        #expect(observers.allSatisfy { $0.record.completions == 1 })
        // Nothing has kept its place: as many requests as ever get through.
        for _ in 0..<20 { #expect(await transport.run(TransferRequest(url: server.url("/json"))).error == nil) }
        #expect(await busy(transport).allSatisfy { $0 == 0 })
    }

    @Test func `a completed transfer's observer may start another one`() async throws {
        let server = try LoopbackServer.standard()
        let transport = transport(2) { $0.maximumConnectionsPerHost = 1 }
        let observer = RepeatingObserver(transport, TransferRequest(url: server.url("/json")), times: 50)
        observer.start()
        #expect(await observer.end.value() == 50)
        #expect(server.requestCount == 50 && server.connectionCount == 1)
    }

    @Test func `streams are spread, and each command reaches its stream`() async throws {
        let server = try TCPEchoServer()
        let transport = transport(2)
        let observers = (0..<8).map { _ in RecordingStreamObserver() }
        let request = StreamTransferRequest(host: "127.0.0.1", port: server.port, isSecure: false)
        let streams = observers.map { transport.openStream(request, observer: $0) }
        for (id, stream) in streams.enumerated() { stream.send(Data("stream \(id)".utf8), endOfStream: false) }
        for (id, observer) in observers.enumerated() {
            let record = await observer.record { $0.bytes.count >= 8 }
            #expect(record.bytes == Data("stream \(id)".utf8))
        }
        #expect(await busy(transport) == [4, 4])
        for stream in streams { stream.cancel() }
        for observer in observers { _ = await observer.end() }
        #expect(await busy(transport) == [0, 0])
    }

    @Test func `after the end, threads and connections are gone, and everything has completed`() async throws {
        let gate = Gate()
        let server = try gatedServer(gate)
        let transport = transport(4) { $0.maximumConnectionsPerHost = 6 }
        let observers = (0..<40).map { _ in RecordingObserver() }
        for observer in observers { transport.start(TransferRequest(url: server.url("/")), observer: observer) }
        #expect(await gate.arrivals(6))
        let threads = await transport.visit { _ in threadPath }
        #expect(Set(threads).count == 4)
        transport.shutDown()
        await transport.waitUntilShutDown()
        #expect(observers.allSatisfy { $0.record.isInvalidated && $0.record.completions == 1 })
        // `pthread_join` returns a moment before the kernel removes the thread's entry.
        for thread in threads { #expect(ProcessProbe.settles { !FileManager.default.fileExists(atPath: thread) }) }
        #expect(server.waitForConnectionsToClose())
        #expect(await transport.run(TransferRequest(url: server.url("/"))).isInvalidated)
        #expect(await transport.visit { _ in 1 } == [])
    }

    @Test func `a released transport ends its loops`() async throws {
        let server = try LoopbackServer.standard()
        weak var dispatcher: LoopDispatcher?
        do {
            let transport = transport(3)
            dispatcher = transport.dispatcher
            for _ in 1...9 { #expect(await transport.run(TransferRequest(url: server.url("/json"))).error == nil) }
        }
        #expect(ProcessProbe.settles { dispatcher == nil })
        #expect(server.waitForConnectionsToClose())
    }

    @Test func `connections have numbers of their own over all loops`() async throws {
        let gate = Gate()
        let server = try gatedServer(gate)
        let events = Log<ConnectionEvent>()
        let transport = transport(3)
        transport.observeConnections { events.append($0) }
        let observers = (0..<12).map { _ in RecordingObserver() }
        for observer in observers { transport.start(TransferRequest(url: server.url("/")), observer: observer) }
        #expect(await gate.arrivals(12))
        gate.open()
        for observer in observers { #expect(await observer.end().error == nil) }
        transport.shutDown()
        await transport.waitUntilShutDown()
        #expect(events.elements.filter { $0.kind == .opened }.map(\.connection).sorted() == Array(1...12))
    }

    @Test func `tasks run on the loop whose executor they prefer`() async throws {
        let server = try LoopbackServer.standard()
        let transport = transport(2)
        var threads: [String] = []
        for executor in transport.taskExecutors {
            let thread = await Task(executorPreference: executor) {
                #expect(await transport.run(TransferRequest(url: server.url("/json"))).error == nil)
                return threadPath
            }.value
            threads.append(thread)
        }
        #expect(await transport.visit { _ in threadPath } == threads)
    }

    @Test func `the loops share the work`() async throws {
        let gates = (0..<40).map { _ in Gate() }
        let server = try LoopbackServer { request, connection in
            connection.wait(until: gates[Int(request.path.dropFirst()) ?? 0])
            return .ok("done")
        }
        let transport = transport(2)
        // Each round is held until all of it has come: a loop that stands still would leave its work to the other one.
        for (round, gate) in gates.enumerated() {
            let observers = (0..<32).map { _ in RecordingObserver() }
            for observer in observers { transport.start(TransferRequest(url: server.url("/\(round)")), observer: observer) }
            #expect(await gate.arrivals(32))
            gate.open()
            for observer in observers { #expect(await observer.end().error == nil) }
        }
        let times = await transport.visit { _ in threadTime }
        let (most, least) = (try #require(times.max()), try #require(times.min()))
        #expect(times.count == 2 && least > 0)
        #expect(most / least < 2, "\(times)")
        #expect(await transport.visit { $0.connectionStatistics(ofGroup: 0).reused }.allSatisfy { $0 > 320 })
    }
}

/// The entry of the calling thread in `/proc`.
private var threadPath: String {
    (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")).map { "/proc/" + $0 } ?? ""
}

/// The processor time that the calling thread has taken, in seconds.
private var threadTime: Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// Starts its transfer again as soon as it has completed.
private final class RepeatingObserver: TransferObserver {
    let end = TrackedValue<Int>()
    private let transport: CurlTransport
    private let request: TransferRequest
    private let times: Int
    private let completions = Lock(0)

    init(_ transport: CurlTransport, _ request: TransferRequest, times: Int) {
        self.transport = transport
        self.request = request
        self.times = times
    }

    func start() { transport.start(request, observer: self) }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction { .proceed }
    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction { .proceed }
    func transfer(_ id: Int, didSend count: Int64) {}

    func transfer(_ id: Int, didComplete completion: TransferCompletion) {
        let count = completions.withLock { count in
            count += completion.error == nil ? 1 : 0
            return count
        }
        if completion.error == nil, count < times { start() } else { end.set(count) }
    }
}

/// A value that arrives once.
private final class TrackedValue<Value: Sendable>: Sendable {
    private let state = Lock<(value: Value?, waiter: TrackedContinuation<Value>?)>((nil, nil))

    func set(_ value: Value) {
        let waiter = state.withLock { state in
            state.value = value
            return state.waiter
        }
        waiter?.resume(returning: value)
    }

    func value() async -> Value {
        await withTrackedContinuation { continuation in
            let value = state.withLock { state -> Value? in
                state.waiter = continuation
                return state.value
            }
            if let value { continuation.resume(returning: value) }
        }
    }
}
