// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

/// How long connections may be idle and then be used again.
@Suite(.timeLimit(.minutes(1))) struct IdleTimeTests {
    @Test(
        arguments: [
            (["timeout=5"], 4_000), (["timeout=5, max=100"], 4_000), (["max=100, Timeout = 60"], 59_000), (["timeout=\"15\""], 14_000),
            (["max=1", "timeout=3"], 2_000), (["timeout=1"], 500), (["timeout=0"], 0), (["timeout=99999999999999999999"], 999_999_999_000),
            (["timeout"], nil), (["timeout="], nil), (["timeout=-1"], nil), (["timeout=5s"], nil), (["x-timeout=5"], nil), ([""], nil),
            ([], nil),
        ] as [([String], Nanoseconds?)])
    func `the field's time counts, less what a request needs to arrive`(fields: [String], milliseconds: Nanoseconds?) {
        #expect(KeepAlive.idleTime(fields) == milliseconds.map { $0 * 1_000_000 })
    }

    @Test(
        arguments: [
            (.seconds(118), nil, nil), (nil, nil, 2_147_483), (.seconds(30), 30_000_000_000, 30), (.milliseconds(1_500), 1_500_000_000, 1),
            (.zero, 0, 0), (.seconds(-1), 0, 0), (.seconds(Int64.max), 3_155_760_000_000_000_000, 2_147_483),
        ] as [(Duration?, Nanoseconds?, Int?)])
    func `libcurl gets whole seconds`(time: Duration?, own: Nanoseconds?, seconds: Int?) {
        var configuration = TransportConfiguration()
        configuration.maximumIdleTime = time
        #expect(configuration.ownIdleTime == own && configuration.idleSeconds == seconds)
    }

    @Test(
        arguments: [
            (nil, 5, 999, false), (nil, 5, 1_004, false), (nil, 5, 1_005, true), (3, nil, 1_002, false), (3, nil, 1_003, true),
            (3, 5, 1_003, true), (7, 5, 1_005, true), (.max, nil, .max - 1, false), (nil, nil, .max - 1, false),
        ] as [(Nanoseconds?, Nanoseconds?, Nanoseconds, Bool)])
    func `a connection expires by the earlier limit`(limit: Nanoseconds?, told: Nanoseconds?, time: Nanoseconds, hasExpired: Bool) {
        let connections = PooledConnections()
        connections.opened(7, 1, ConnectionInfo(ConnectionInfo.Values()), for: "http://example.org/")
        connections.becameIdle(7, at: 1_000, limit: limit, ofServer: told)
        #expect(connections.hasExpired(7, at: time) == hasExpired)
        #expect(!connections.hasExpired(8, at: .max - 1))
        connections.forget(7)
        #expect(!connections.hasExpired(7, at: .max - 1))
    }

    @Test func `what a server said once counts for its connection from then on`() {
        let connections = PooledConnections()
        connections.opened(7, 1, ConnectionInfo(ConnectionInfo.Values()), for: "http://example.org/")
        connections.becameIdle(7, at: 1_000, limit: nil, ofServer: 5)
        connections.becameIdle(7, at: 2_000, limit: nil, ofServer: nil)
        #expect(!connections.hasExpired(7, at: 2_004) && connections.hasExpired(7, at: 2_005))
    }

    @Test func `connections with several users are libcurl's`() {
        let connections = PooledConnections()
        let info = ConnectionInfo(ConnectionInfo(ConnectionInfo.Values())) { $0.httpVersion = .http2 }
        connections.opened(7, 1, info, for: "https://example.org/")
        connections.becameIdle(7, at: 1_000, limit: 0, ofServer: 0)
        #expect(!connections.hasExpired(7, at: 2_000))
    }

    private func connections(
        _ fields: [ServerField] = [], isSecure: Bool = false, path: String? = nil, method: HTTPMethod = .get,
        _ change: (inout TransportConfiguration) -> Void = { _ in }
    ) async throws -> Int {
        let answer = ServerResponse(status: 200, headers: fields, body: .data(Data("done".utf8)))
        let identity = isSecure ? ServerTLS(try CertificateAuthority().issue()) : nil
        let server = try LoopbackServer(tls: identity, unixSocketPath: path) { _, _ in answer }
        var configuration = TransportConfiguration()
        change(&configuration)
        let transport = CurlTransport(configuration: configuration)
        var request = TransferRequest(url: server.url("/"), method: method)
        request.options.proxy = .none
        request.options.unixSocketPath = path
        if isSecure { request.options.tls.verifiesCertificateChain = false }
        for _ in 1...3 {
            if method == .post { request.body = DataBody(Data("order".utf8)) }
            let record = await transport.run(request)
            #expect(record.error == nil && record.body == Data("done".utf8))
        }
        #expect(server.requestCount == 3)
        return server.connectionCount
    }

    @Test(arguments: [(nil, 1), ("timeout=60", 1), ("timeout=0", 3), ("max=3", 1)] as [(String?, Int)])
    func `a connection is not used again when its server is about to close it`(value: String?, count: Int) async throws {
        let fields = value.map { [ServerField("Keep-Alive", $0)] } ?? []
        #expect(try await connections(fields) == count)
        #expect(try await connections(fields, isSecure: true) == count)
        #expect(try await connections(fields, method: .post) == count)
        let directory = try TemporaryDirectory()
        #expect(try await connections(fields, path: directory.file("socket").path) == count)
    }

    @Test(arguments: [(.zero, 3), (nil, 1), (.seconds(60), 1), (.seconds(118), 1)] as [(Duration?, Int)])
    func `nor when it has been idle for longer than the configuration allows`(time: Duration?, count: Int) async throws {
        #expect(try await connections { $0.maximumIdleTime = time } == count)
        #expect(try await connections(isSecure: true) { $0.maximumIdleTime = time } == count)
    }
}
