// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewOperations
import CurlewTestSupport
import Dispatch
import Testing

/// A process is asked to end while an operation in it is in flight.
@Suite(.timeLimit(.minutes(1))) struct BackgroundActivityTests {
    private func start(_ server: LoopbackServer, grace: String, notify: String = "") throws -> ChildProcess {
        try Probe.start(
            "operate", server.url("/"), environment: ["CURLEW_PROBE_GRACE": grace, "NOTIFY_SOCKET": notify])
    }

    /// A server that responds once the gate is open.
    private func server(_ gate: Gate) throws -> LoopbackServer {
        try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return .ok()
        }
    }

    @Test(
        "when the grace period is over, the handler runs, the operation is cancelled, and the process ends by the signal",
        arguments: [SIGTERM, SIGINT])
    func expired(signal: Int32) async throws {
        let server = try server(Gate())
        let process = try start(server, grace: "0.05")
        #expect(await server.waitForRequests(1))
        process.send(signal)
        let (status, output) = await process.finish()
        #expect(Array(output.prefix(3)) == ["started=1", "expired=1", "ended=0"])
        #expect(status == -1)
    }

    @Test("an operation that finishes in time is not cancelled, and the service manager is notified")
    func endsInTime() async throws {
        let directory = try TemporaryDirectory()
        let manager = try NotifySocket(directory.file("notify").path)
        let gate = Gate()
        let server = try server(gate)
        let process = try start(server, grace: "50", notify: directory.file("notify").path)
        #expect(await server.waitForRequests(1))
        process.send(SIGTERM)
        #expect(await manager.receive() == "STOPPING=1\nEXTEND_TIMEOUT_USEC=52000000")
        gate.open()
        let (status, output) = await process.finish()
        #expect(Array(output.prefix(2)) == ["started=1", "ended=1"] && !output.contains("expired=1"))
        #expect(status == -1)
    }

    @Test("a second signal ends the grace period")
    func secondSignal() async throws {
        let directory = try TemporaryDirectory()
        let manager = try NotifySocket(directory.file("notify").path)
        let server = try server(Gate())
        let process = try start(server, grace: "50", notify: directory.file("notify").path)
        #expect(await server.waitForRequests(1))
        process.send(SIGTERM)
        #expect(await manager.receive().isEmpty == false)
        process.send(SIGINT)
        let (status, output) = await process.finish()
        #expect(Array(output.prefix(3)) == ["started=1", "expired=1", "ended=0"] && status == -1)
    }

    @Test("after the last operation the original signal handlers are restored")
    func afterTheEnd() async throws {
        let gate = Gate()
        gate.open()
        let process = try start(try server(gate), grace: "50")
        while let line = await process.readLine(), line != "free=1" {}
        process.send(SIGTERM)
        #expect(await process.finish().status == -1)
    }

    @Test("the handler is set once and released with the operation")
    func once() async throws {
        let server = try LoopbackServer.standard()
        weak var weakly: URLConnectionOperation?
        do {
            let operation = try URLConnectionOperation.make(server.url("/json"))
            weakly = operation
            operation.setShouldExecuteAsBackgroundTask {}
            operation.setShouldExecuteAsBackgroundTask {}
            try await operation.run()
        }
        callbackQueue.sync {}
        #expect(ProcessProbe.settles { weakly == nil })
    }
}

/// The socket on which a service manager receives notifications.
private final class NotifySocket: Sendable {
    private let descriptor: Int32

    init(_ path: String) throws {
        descriptor = socket(AF_UNIX, datagram, 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
        guard status == 0 else { throw TestError("bind: \(errno)") }
        var time = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(descriptor) }

    /// The next message; empty if none arrives within 20 seconds.
    func receive() async -> String {
        await withTrackedContinuation { continuation in
            DispatchQueue.global().async { [descriptor] in
                var buffer = [UInt8](repeating: 0, count: 1024)
                let count = recv(descriptor, &buffer, buffer.count, 0)
                continuation.resume(returning: String(decoding: buffer.prefix(max(0, count)), as: UTF8.self))
            }
        }
    }
}
