// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

/// The host in the URLs, which no resolver knows (RFC 6761, section 6.4).
private let unknown = "service.invalid"

@Suite(.timeLimit(.minutes(1))) struct RouteTests {
    private func options(_ change: (inout TransferOptions) -> Void) -> TransferOptions {
        var options = TransferOptions()
        options.proxy = .none
        change(&options)
        return options
    }

    private func get(_ url: String, _ transport: CurlTransport = CurlTransport(), _ change: (inout TransferOptions) -> Void) async
        -> RecordingObserver.Record
    {
        await transport.run(TransferRequest(url: url, options: options(change)))
    }

    @Test(arguments: [false, true], [["127.0.0.1"], ["127.0.0.2", "127.0.0.1"], ["::1", "127.0.0.1"]])
    func `a name gets its addresses by host and port, by host, and by the wildcard`(_ hasPort: Bool, _ addresses: [String]) async throws {
        let server = try LoopbackServer { request, _ in .ok(request.header("Host") ?? "") }
        let transport = CurlTransport()
        let url = "http://\(unknown):\(server.port)/"
        for key in [hasPort ? "\(unknown):\(server.port)" : unknown, hasPort ? "*:\(server.port)" : "*"] {
            let end = await get(url, transport) { $0.resolve = [key: addresses, "other.invalid": ["192.0.2.1"]] }
            #expect(end.error == nil)
            #expect(end.body == Data("\(unknown):\(server.port)".utf8))
        }
        // The same addresses: the same connection.
        #expect(server.connectionCount == 1)
    }

    @Test func `other options do not see the addresses, in the pool or in the cache of names`() async throws {
        let server = try LoopbackServer { _, _ in .ok("here") }
        let transport = CurlTransport()
        let url = "http://\(unknown):\(server.port)/"
        for addresses in [["127.0.0.1"], ["127.0.0.2", "127.0.0.1"]] {
            #expect(await get(url, transport) { $0.resolve = [unknown: addresses] }.body == Data("here".utf8))
            let without = await get(url, transport) { _ in }
            #expect(without.failure?.kind == .nameResolution)
        }
        #expect(server.connectionCount == 2)
    }

    @Test func `a host is connected to in place of another one, whose name stays`() async throws {
        let authority = try CertificateAuthority()
        let server = try LoopbackServer(tls: ServerTLS(try authority.issue(unknown))) { request, _ in .ok(request.header("Host") ?? "") }
        let forms = ["127.0.0.1:\(server.port)", "localhost:\(server.port)"]
        for form in forms {
            let end = await get("https://\(unknown)/") {
                $0.tls.certificateAuthorities = authority.certificate
                $0.connectTo = ["\(unknown):443": form]
            }
            #expect(end.error == nil)
            #expect(end.body == Data(unknown.utf8))
        }
        let resolved = await get("https://\(unknown)/") {
            $0.tls.certificateAuthorities = authority.certificate
            $0.connectTo = [unknown: "canary.invalid:\(server.port)"]
            $0.resolve = ["canary.invalid": ["127.0.0.1"]]
        }
        #expect(resolved.body == Data(unknown.utf8))
    }

    @Test func `an address that the policy refuses is refused`() async throws {
        let server = try LoopbackServer { _, _ in .ok("secret") }
        let end = await get("http://\(unknown):\(server.port)/") {
            $0.resolve = [unknown: ["127.0.0.1"]]
            $0.addresses = .publicOnly
        }
        #expect(end.failure?.kind == .addressNotAllowed)
        #expect(server.connectionCount == 0)
    }

    @Test func `messages name the host and not what stands for its addresses`() async throws {
        let listener = try SilentListener(backlog: 1)
        let port = listener.port
        let end = await get("http://\(unknown):1/") { $0.resolve = [unknown: ["127.0.0.1", "127.0.0.2"]] }
        #expect(end.failure?.kind == .connect)
        #expect(end.failure?.message.contains("curlew-") == false)
        #expect(port > 0)
    }

    @Test(
        arguments: [
            (["a": []], [:]), (["a": ["localhost"]], [:]), ([:], ["a": "host:port"]), ([:], ["a": ""]), ([:], ["a": "b:0"]),
            ([:], ["a": "b c"]),
        ] as [([String: [String]], [String: String])])
    func `entries that can't be used fail, whatever the host`(_ entries: ([String: [String]], [String: String])) async {
        let end = await get("http://127.0.0.1:1/") { ($0.resolve, $0.connectTo) = entries }
        #expect(end.failure?.kind == .configuration)
        #expect(end.failure?.message.contains("\"a\"") == true)
    }

    @Test func `hosts exempt from the proxy get their addresses, hosts behind it are left to it`() async throws {
        let server = try LoopbackServer { _, _ in .ok("direct") }
        let proxy = try LoopbackServer { request, _ in .ok("proxy \(request.target)") }
        let url = "http://a.\(unknown):\(server.port)/"
        let direct = [[unknown], ["a.test,*"], ["*.\(unknown):\(server.port)"]].map { ($0, "direct") }
        for (except, body) in direct + [([], "proxy \(url)"), (["*.\(unknown):1"], "proxy \(url)")] {
            let end = await get(url) {
                $0.proxy = .url("http://127.0.0.1:\(proxy.port)", except: except)
                $0.resolve = ["*": ["127.0.0.1"]]
            }
            #expect(end.body == Data(body.utf8))
        }
    }
}

@Suite(.timeLimit(.minutes(1))) struct HostResolverTests {
    private struct Unreachable: Error {}

    private func options(_ resolver: HostResolver, _ change: (inout TransferOptions) -> Void = { _ in }) -> TransferOptions {
        var options = TransferOptions()
        options.proxy = .none
        options.resolver = resolver
        change(&options)
        return options
    }

    @Test(arguments: [["127.0.0.1"], ["::1", "127.0.0.1"]])
    func `the resolver is asked about names, and connections to the same addresses are reused`(_ addresses: [String]) async throws {
        let server = try LoopbackServer { _, _ in .ok("resolved") }
        let asked = Lock<[String]>([])
        let resolver = HostResolver { host, port in
            let count = asked.withLock { asked in
                asked.append("\(host):\(port)")
                return asked.count
            }
            return count.isMultiple(of: 2) ? addresses.reversed() : addresses
        }
        let transport = CurlTransport()
        for _ in 1...3 {
            let request = TransferRequest(url: "http://\(unknown.uppercased()):\(server.port)/", options: options(resolver))
            #expect(await transport.run(request).body == Data("resolved".utf8))
        }
        #expect(server.connectionCount == 1)
        #expect(asked.withLock { $0 } == Array(repeating: "\(unknown):\(server.port)", count: 3))
        let literal = await transport.run(TransferRequest(url: server.url("/"), options: options(resolver)))
        #expect(literal.error == nil && asked.withLock { $0.count } == 3)
    }

    @Test func `fixed addresses come before the resolver`() async throws {
        let server = try LoopbackServer { _, _ in .ok("fixed") }
        let options = options(HostResolver { _, _ in throw Unreachable() }) { $0.resolve = [unknown: ["127.0.0.1"]] }
        let end = await CurlTransport().run(TransferRequest(url: "http://\(unknown):\(server.port)/", options: options))
        #expect(end.body == Data("fixed".utf8))
    }

    @Test func `its errors and unusable answers say what was wrong with which host`() async {
        let answers: [(HostResolver, String)] = [
            (HostResolver { _, _ in throw Unreachable() }, "Unreachable"), (HostResolver { _, _ in [] }, "no address"),
            (HostResolver { _, _ in ["127.0.0.1", "localhost"] }, "\"localhost\""),
            (HostResolver { _, _ in ["127.0.0.1:80,evil"] }, "not an address"),
        ]
        for (resolver, reason) in answers {
            let end = await CurlTransport().run(TransferRequest(url: "http://\(unknown)/", options: options(resolver)))
            #expect(end.failure?.kind == .nameResolution && end.failure?.phase == .resolving)
            #expect(end.failure?.message.contains(reason) == true && end.failure?.message.contains(unknown) == true)
        }
    }

    @Test(arguments: [TransferFailure.Kind.connectTimeout, .totalTimeout])
    func `waiting for it counts, and it is cancelled with the transfer`(_ kind: TransferFailure.Kind) async {
        let cancelled = Gate()
        let resolver = HostResolver { _, _ in
            try await withTaskCancellationHandler {
                try await Task.sleep(for: .seconds(3600))
                return []
            } onCancel: {
                cancelled.open()
            }
        }
        let options = options(resolver) { options in
            if kind == .totalTimeout { options.totalTimeout = .milliseconds(50) } else { options.connectTimeout = .milliseconds(50) }
        }
        let end = await CurlTransport().run(TransferRequest(url: "http://\(unknown)/", options: options))
        #expect(end.failure?.kind == kind && end.failure?.phase == .resolving)
        #expect(await cancelled.wait())
    }

    @Test func `cancelling the transfer cancels it, and its late answer has no effect`() async throws {
        let server = try LoopbackServer { _, _ in .ok("late") }
        let (asked, answers) = (Gate(), Gate())
        let resolver = HostResolver { _, _ in
            asked.open()
            _ = await answers.wait()
            return ["127.0.0.1"]
        }
        let transport = CurlTransport()
        let observer = RecordingObserver()
        let request = TransferRequest(url: "http://\(unknown):\(server.port)/", options: options(resolver))
        let transfer = transport.start(request, observer: observer)
        #expect(await asked.wait())
        transfer.cancel()
        #expect(await observer.end().isCancelled)
        answers.open()
        let next = await transport.run(TransferRequest(url: server.url("/")))
        #expect(next.body == Data("late".utf8) && server.connectionCount == 1)
    }

    @Test func `streams ask it too`() async throws {
        let server = try LoopbackServer { _, _ in .ok("") }
        let asked = Gate()
        let observer = ClosingStream()
        let transport = CurlTransport()
        let resolver = HostResolver { host, _ in
            if host == unknown { asked.open() }
            return ["127.0.0.1", "127.0.0.2"]
        }
        transport.openStream(
            StreamTransferRequest(host: unknown, port: server.port, isSecure: false, options: options(resolver)), observer: observer)
        #expect(await observer.opened.wait())
        #expect(await asked.wait())
        let failing = ClosingStream()
        transport.openStream(
            StreamTransferRequest(host: unknown, port: 1, isSecure: false, options: options(HostResolver { _, _ in [] })),
            observer: failing)
        #expect(await failing.completed.wait())
        let failure = failing.failure
        #expect(failure?.kind == .nameResolution)
        let cancelled = Gate()
        let silent = HostResolver { _, _ in
            try await withTaskCancellationHandler {
                try await Task.sleep(for: .seconds(3600))
                return []
            } onCancel: {
                cancelled.open()
            }
        }
        let waiting = ClosingStream()
        let limited = options(silent) { $0.connectTimeout = .milliseconds(50) }
        transport.openStream(
            StreamTransferRequest(host: unknown, port: 1, isSecure: false, options: limited), observer: waiting)
        #expect(await waiting.completed.wait())
        #expect(waiting.failure?.kind == .connectTimeout)
        #expect(await cancelled.wait())
        // Its release would end the streams.
        transport.shutDown()
    }
}

/// Notes that a stream has opened, and how it completed.
private final class ClosingStream: StreamTransferObserver {
    let opened = Gate()
    let completed = Gate()
    private let error = Lock<TransferFailure?>(nil)

    var failure: TransferFailure? { error.withLock { $0 } }

    func stream(_ id: Int, didOpen metrics: TransferMetrics) { opened.open() }
    func stream(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction { .proceed }
    func streamDidEndReceiving(_ id: Int) {}
    func stream(_ id: Int, didSend count: Int64) {}
    func stream(_ id: Int, didComplete completion: TransferCompletion) {
        if case .transferFailed(let failure) = completion.error as? CurlewError { error.withLock { $0 = failure } }
        completed.open()
    }
}
