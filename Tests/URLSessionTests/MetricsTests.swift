// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewURLSession

@Suite(.timeLimit(.minutes(1))) struct MetricsTests {
    private let server: LoopbackServer
    private let recorder = CallRecorder(
        CallRecorder.Answers(challenge: { challenge in
            guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPBasic else {
                return (.performDefaultHandling, nil)
            }
            return (.useCredential, URLCredential(user: "ann", password: "pass", persistence: .none))
        }))

    init() throws {
        server = try LoopbackServer.standard()
    }

    private func session(_ change: (URLSessionConfiguration) -> Void = { _ in }) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.curlew.proxy = .none
        change(configuration)
        return URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
    }

    private func url(_ path: String) throws -> URL { try #require(URL(string: server.url(path))) }

    /// Runs a task to its end; returns its metrics.
    private func run(_ task: URLSessionTask) async throws -> URLSessionTaskMetrics {
        let count = recorder.completions.count
        task.resume()
        await recorder.completions.wait(for: count + 1)
        return try #require(recorder.seen.metrics.last)
    }

    // U2.7
    @Test func `the metrics of an exchange are in order, and those of a reused connection have no times of connecting`() async throws {
        let session = session()
        defer { session.invalidateAndCancel() }
        let before = Date()
        let task = session.dataTask(with: try url("/bytes/1000"))
        let metrics = try await run(task)
        #expect(recorder.calls.elements == ["response", "data", "metrics", "complete"])
        #expect(metrics.redirectCount == 0)
        #expect(metrics.taskInterval.start >= before && metrics.taskInterval.end <= Date())
        #expect(metrics.transactionMetrics.count == 1)
        let first = try #require(metrics.transactionMetrics.first)
        #expect(first === metrics.transactionMetrics.first)
        #expect(first.request.url == task.originalRequest?.url)
        #expect((first.response as? HTTPURLResponse)?.statusCode == 200)
        let dates = [
            first.fetchStartDate, first.domainLookupStartDate, first.domainLookupEndDate, first.connectStartDate, first.connectEndDate,
            first.requestStartDate, first.requestEndDate, first.responseStartDate, first.responseEndDate,
        ]
        let known = dates.compactMap { $0 }
        #expect(known.count == dates.count)
        #expect(known == known.sorted())
        #expect(known.allSatisfy { metrics.taskInterval.contains($0) })
        #expect(first.secureConnectionStartDate == nil && first.secureConnectionEndDate == nil)
        #expect(first.negotiatedTLSProtocolVersion == nil && first.negotiatedTLSCipherSuite == nil)
        #expect(first.networkProtocolName == "http/1.1")
        #expect(!first.isProxyConnection && !first.isReusedConnection)
        #expect(first.resourceFetchType == .networkLoad)
        #expect(first.domainResolutionProtocol == .unknown)
        #expect((first.localAddress, first.remoteAddress) == ("127.0.0.1", "127.0.0.1"))
        #expect(first.remotePort == server.port)
        #expect(first.localPort ?? 0 > 0)
        #expect(!first.isCellular && !first.isExpensive && !first.isConstrained && !first.isMultipath)
        #expect(first.countOfRequestHeaderBytesSent > 50)
        #expect(first.countOfRequestBodyBytesSent == 0 && first.countOfRequestBodyBytesBeforeEncoding == 0)
        #expect(first.countOfResponseHeaderBytesReceived > 20)
        #expect(first.countOfResponseBodyBytesReceived == 1000 && first.countOfResponseBodyBytesAfterDecoding == 1000)

        let second = try #require(await run(session.dataTask(with: try url("/bytes/10"))).transactionMetrics.first)
        #expect(second.isReusedConnection)
        #expect(second.localPort == first.localPort)
        #expect(second.domainLookupStartDate == nil && second.domainLookupEndDate == nil)
        #expect(second.connectStartDate == nil && second.connectEndDate == nil)
        #expect(second.requestStartDate != nil && second.responseEndDate != nil)
    }

    // U2.7
    @Test func `each exchange of a redirect has its own request and response`() async throws {
        let session = session()
        defer { session.invalidateAndCancel() }
        let metrics = try await run(session.dataTask(with: try url("/redirect/2")))
        #expect(metrics.redirectCount == 2)
        #expect(metrics.transactionMetrics.map { $0.request.url?.path } == ["/redirect/2", "/redirect/1", "/json"])
        #expect(metrics.transactionMetrics.map { ($0.response as? HTTPURLResponse)?.statusCode } == [302, 302, 200])
        #expect(metrics.transactionMetrics.map { $0.response?.url?.path } == ["/redirect/2", "/redirect/1", "/json"])
        #expect(metrics.transactionMetrics.map(\.isReusedConnection) == [false, true, true])
        let starts = metrics.transactionMetrics.compactMap(\.fetchStartDate)
        #expect(starts == starts.sorted() && starts.count == 3)
    }

    // U2.7
    @Test func `a challenge and its answer are two exchanges`() async throws {
        let session = session()
        defer { session.invalidateAndCancel() }
        let metrics = try await run(session.dataTask(with: try url("/auth-basic?user=ann&password=pass")))
        #expect(metrics.redirectCount == 0)
        #expect(metrics.transactionMetrics.map { ($0.response as? HTTPURLResponse)?.statusCode } == [401, 200])
        let fields = metrics.transactionMetrics.map { $0.request.value(forHTTPHeaderField: "Authorization") }
        #expect(fields == [nil, "Basic YW5uOnBhc3M="])
        #expect(metrics.description.contains("Basic") == false)
    }

    // U2.7
    @Test func `the bytes of a body are counted on the wire and decoded`() async throws {
        let session = session()
        defer { session.invalidateAndCancel() }
        var request = URLRequest(url: try url("/body"))
        request.httpMethod = "POST"
        let upload = try #require(
            await run(session.uploadTask(with: request, from: Data(count: 300_000))).transactionMetrics.first)
        #expect(upload.countOfRequestBodyBytesSent == 300_000 && upload.countOfRequestBodyBytesBeforeEncoding == 300_000)
        #expect(upload.countOfResponseBodyBytesReceived == 300_000)
        #expect(try #require(upload.requestStartDate) <= #require(upload.requestEndDate))
        #expect(try #require(upload.requestEndDate) <= #require(upload.responseEndDate))
        let coded = try #require(await run(session.dataTask(with: try url("/gzip?n=5000"))).transactionMetrics.first)
        #expect(coded.countOfResponseBodyBytesAfterDecoding == 5000)
        #expect(coded.countOfResponseBodyBytesReceived != 5000 && coded.countOfResponseBodyBytesReceived > 0)
    }

    // U2.7
    @Test func `a download and a task with a handler have metrics before their ends`() async throws {
        let session = session()
        defer { session.invalidateAndCancel() }
        let download = try await run(session.downloadTask(with: try url("/bytes/2000")))
        #expect(download.transactionMetrics.first?.countOfResponseBodyBytesAfterDecoding == 2000)
        #expect(recorder.calls.elements.suffix(3) == ["metrics", "finished", "complete"])
        let handled = Log<Int>()
        session.dataTask(with: try url("/bytes/5")) { [recorder] _, _, _ in handled.append(recorder.seen.metrics.count) }.resume()
        await handled.wait(for: 1)
        #expect(handled.elements == [2])
        _ = try await session.data(from: try url("/bytes/5"))
        #expect(recorder.seen.metrics.count == 3)
    }

    // U2.7
    @Test func `a failed task has metrics of what it has reached`() async throws {
        let session = session()
        defer { session.invalidateAndCancel() }
        let port = try RefusingPort()
        let refused = try await run(session.dataTask(with: try #require(URL(string: "http://127.0.0.1:\(port.number)/x"))))
        #expect(recorder.calls.elements == ["metrics", "complete"])
        #expect(refused.taskInterval.duration > 0)
        let exchange = try #require(refused.transactionMetrics.first)
        #expect(exchange.request.url?.path == "/x")
        #expect(exchange.response == nil)
        #expect(exchange.fetchStartDate != nil)
        #expect(exchange.connectEndDate == nil && exchange.requestStartDate == nil && exchange.responseEndDate == nil)
        #expect(exchange.networkProtocolName == nil && exchange.resourceFetchType == .unknown)

        let cut = try #require(await run(session.dataTask(with: try url("/cut-body?announce=100&send=40"))).transactionMetrics.first)
        #expect((cut.response as? HTTPURLResponse)?.statusCode == 200)
        #expect(cut.countOfResponseBodyBytesAfterDecoding == 40)
        let unsupported = try await run(session.dataTask(with: try #require(URL(string: "ftp://127.0.0.1/"))))
        #expect(unsupported.transactionMetrics.isEmpty)
    }

    // U2.7
    @Test func `a response of the cache took no exchange with a server`() async throws {
        let server = try LoopbackServer { _, _ in
            ServerResponse(status: 200, headers: [ServerField("Cache-Control", "max-age=1000")], body: .data(Data("stored".utf8)))
        }
        defer { server.stop() }
        let session = session()
        defer { session.invalidateAndCancel() }
        let url = try #require(URL(string: server.url("/")))
        let first = try #require(await run(session.dataTask(with: url)).transactionMetrics.last)
        #expect(first.resourceFetchType == .networkLoad)
        let second = try #require(await run(session.dataTask(with: url)).transactionMetrics.last)
        #expect(second.resourceFetchType == .localCache)
        #expect((second.response as? HTTPURLResponse)?.statusCode == 200)
        #expect(second.requestStartDate == nil && second.remotePort == nil && second.responseEndDate != nil)
        #expect(server.requestCount == 1)
    }

    // U2.7
    @Test(.enabled(if: TLSAuthority.isAvailable)) func `version, cipher suite and times of TLS are known`() async throws {
        let authority = try await TLSAuthority.shared()
        let tls = try await TLSServer(authority, "good") { $0.maximumVersion = "1.2" }
        let session = session { $0.curlew.tls.certificateAuthorityFile = authority.path("root.pem") }
        defer { session.invalidateAndCancel() }
        let metrics = try await run(session.dataTask(with: try #require(URL(string: tls.url))))
        let exchange = try #require(metrics.transactionMetrics.first)
        #expect(exchange.negotiatedTLSProtocolVersion == .TLSv12)
        #expect(exchange.negotiatedTLSCipherSuite != nil)
        #expect(exchange.hasTimesOfTLS)

        let untrusted = try await TLSServer(authority, "other")
        let other = try await run(session.dataTask(with: try #require(URL(string: untrusted.url))))
        let failed = try #require(other.transactionMetrics.first)
        #expect(failed.requestStartDate == nil && failed.countOfRequestHeaderBytesSent == 0)
    }

    // U2.7
    @Test func `a proxy is known`() async throws {
        let session = session { $0.curlew.proxy = .url(server.url("")) }
        defer { session.invalidateAndCancel() }
        let metrics = try await run(session.dataTask(with: try #require(URL(string: "http://host.invalid/bytes/5"))))
        #expect(metrics.transactionMetrics.map(\.isProxyConnection) == [true])
        #expect(metrics.transactionMetrics.first?.remotePort == server.port)
    }

    // U2.7
    @Test func `exchanges are recorded only for tasks that have a delegate`() async throws {
        let session = URLSession(configuration: .ephemeral)
        defer { session.invalidateAndCancel() }
        let log = Log<Void>()
        let task = session.dataTask(with: try url("/redirect/1")) { _, _, _ in log.append(()) }
        task.resume()
        await log.wait(for: 1)
        #expect(task.curlew?.delegate.metrics.transactionMetrics.count == 2)
        #expect(task.curlew?.delegate.exchanges.isEmpty == true)
    }

    // U2.7
    @Test func `a local URL has metrics without an exchange with a server`() async throws {
        let session = session()
        defer { session.invalidateAndCancel() }
        let metrics = try await run(session.dataTask(with: try #require(URL(string: "data:,abc"))))
        let load = try #require(metrics.transactionMetrics.first)
        #expect(load.resourceFetchType == .unknown && load.response?.mimeType == "text/plain")
        #expect(load.countOfResponseBodyBytesReceived == 3 && load.requestStartDate == nil)
        #expect(try #require(load.fetchStartDate) <= #require(load.responseEndDate))
    }

    // U2.7
    @Test func `the numbers of the nested types are Apple's`() {
        let types: [URLSessionTaskMetrics.ResourceFetchType] = [.unknown, .networkLoad, .serverPush, .localCache]
        #expect(types.map(\.rawValue) == [0, 1, 2, 3])
        let protocols: [URLSessionTaskMetrics.DomainResolutionProtocol] = [.unknown, .udp, .tcp, .tls, .https]
        #expect(protocols.map(\.rawValue) == [0, 1, 2, 3, 4])
        #expect(TLSNames.version("TLSv1.3") == .TLSv13)
        #expect(TLSNames.suite("TLS_AES_256_GCM_SHA384")?.rawValue == 0x1302)
        #expect(TLSNames.suite("ECDHE-RSA-AES128-GCM-SHA256")?.rawValue == 0xC02F)
        #expect(TLSNames.version("SSLv3") == nil && TLSNames.suite("NULL") == nil)
        #expect(LocalInterface.name(of: "127.0.0.1")?.hasPrefix("lo") == true)
        #expect(LocalInterface.name(of: "192.0.2.77") == nil)
    }
}

/// A port on 127.0.0.1 that refuses connections, and that no other socket gets.
final class RefusingPort: Sendable {
    let number: Int
    private let descriptor: Int32

    init() throws {
        descriptor = SystemSocket.open(AF_INET, 1, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        // Bound, and not listened on.
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard isBound else { throw TestError("bind: \(errno)") }
        number = Int(UInt16(bigEndian: address.sin_port))
    }

    deinit {
        close(descriptor)
    }
}
