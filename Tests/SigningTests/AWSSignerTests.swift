// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewSigning
import CurlewTestSupport
import CurlewTesting
import Testing

/// Requests whose signatures a server computes again from what it has received.
// A3.1
@Suite(.timeLimit(.minutes(1))) struct AWSSignerTests {
    /// Has credentials that expire, and counts.
    private final class Provider: AWSCredentialsProvider {
        private let answers: Lock<[Result<AWSCredentials, any Error>]>
        private let gate: Gate?
        private let gatedCall: Int
        let asked = Monitor(0)

        init(_ answers: [Result<AWSCredentials, any Error>], after gate: Gate? = nil, inCall gatedCall: Int = 1) {
            self.answers = Lock(answers)
            self.gate = gate
            self.gatedCall = gatedCall
        }

        func credentials() async throws -> AWSCredentials {
            let call = asked.update { asked in
                asked += 1
                return asked
            }
            if call == gatedCall, let gate { _ = await gate.wait() }
            return try answers.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }.get()
        }
    }

    /// Counts the exchanges that were begun.
    private struct Counter: ExchangeInstrument {
        let begun = Monitor(0)

        func willStart(_ exchange: OutgoingExchange) -> (any ExchangeObservation)? {
            begun.update { $0 += 1 }
            return nil
        }
    }

    private struct Unreachable: Error {}

    private static let credentials = AWSCredentials(accessKeyID: "AKID", secretAccessKey: "secret", sessionToken: "token")

    private static func temporary(_ key: String, expiresIn seconds: TimeInterval) -> AWSCredentials {
        AWSCredentials(accessKeyID: key, secretAccessKey: "secret", expiration: Date().addingTimeInterval(seconds))
    }

    private static func manager(
        _ service: String, _ provider: any AWSCredentialsProvider = credentials, digestsBody: Bool = true,
        _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) -> SessionManager {
        var configuration = SessionConfiguration()
        change(&configuration)
        configuration.callbackQueue = DispatchQueue(label: "callbacks")
        let signature = AWSSignatureV4(service: service, region: "eu-central-1")
        configuration.signer = AWSSigner(signature, credentials: provider, digestsBody: digestsBody)
        return SessionManager(configuration: configuration)
    }

    /// Whether the signature of a request is that of what was received.
    private static func isSigned(_ request: ServerRequest, for service: String, with credentials: AWSCredentials = credentials) throws
        -> Bool
    {
        let field = try #require(request.header("Authorization"))
        let names = try #require(field.splitScalars(separator: ",").first { $0.hasBytePrefix(" SignedHeaders=") }).dropFirst(15)
        var headers = HTTPHeaders()
        for name in names.splitScalars(separator: ";") where !name.hasBytePrefix("x-amz-") {
            headers.append(name: String(name), value: try #require(request.header(String(name))))
        }
        let date = try Date(
            try #require(request.header("X-Amz-Date")), strategy: Date.ISO8601FormatStyle(dateSeparator: .omitted, timeSeparator: .omitted))
        let hash = request.header("X-Amz-Content-Sha256")
        let fields = try AWSSignatureV4(service: service, region: "eu-central-1").sign(
            method: request.method, url: "http://\(request.header("Host") ?? "")\(request.target)", headers: headers,
            payload: hash == "UNSIGNED-PAYLOAD" ? .unsigned : .body(request.body), credentials: credentials, at: date)
        return fields["Authorization"] == field && fields["X-Amz-Security-Token"] == request.header("X-Amz-Security-Token")
    }

    @Test("requests of all kinds are signed as they are received", arguments: ["s3", "execute-api"]) func kinds(_ service: String)
        async throws
    {
        let server = try LoopbackServer { request, _ in request.path == "/from" ? .redirect(to: "/to?b=%2B&a=1", status: 307) : .ok() }
        defer { server.stop() }
        let directory = try TemporaryDirectory()
        let manager = Self.manager(service)
        let file = try directory.write(Data("file".utf8), to: "body")
        _ = try await manager.request(server.url("/a/../b//c%20d?x=1&x=0&y=%C3%BC")).serializingData().value
        _ = try await manager.request(server.url("/p"), method: .post, parameters: ["k": "v"]).serializingData().value
        _ = try await manager.upload(Data("data".utf8), to: server.url("/from"), method: .put).serializingData().value
        _ = try await manager.upload(file, to: server.url("/f"), method: .put).serializingData().value
        #expect(server.requests.map(\.method) == ["GET", "POST", "PUT", "PUT", "PUT"])
        for request in server.requests { #expect(try Self.isSigned(request, for: service)) }
    }

    @Test("a body that can't be digested is unsigned for S3, and refused for other services") func undigested() async throws {
        let server = try LoopbackServer { _, _ in .ok() }
        defer { server.stop() }
        let manager = Self.manager("s3", digestsBody: false)
        _ = try await manager.upload(Data("data".utf8), to: server.url("/a"), method: .put).serializingData().value
        let stream = InputStream(data: Data("stream".utf8))
        _ = try await Self.manager("s3").upload(stream, to: server.url("/b"), method: .put).serializingData().value
        #expect(server.requests.map { $0.header("X-Amz-Content-Sha256") } == ["UNSIGNED-PAYLOAD", "UNSIGNED-PAYLOAD"])
        for request in server.requests { #expect(try Self.isSigned(request, for: "s3")) }
        let other = InputStream(data: Data("stream".utf8))
        let response = await Self.manager("sqs").upload(other, to: server.url("/c"), method: .put).serializingData().response
        #expect(response.error as? AWSSigningError == .bodyNotDigested)
        #expect(server.requestCount == 2)
    }

    @Test("fifty requests obtain credentials once, and again before they expire") func refresh() async throws {
        let server = try LoopbackServer { _, _ in .ok() }
        let gate = Gate()
        defer { gate.open() }
        let (old, new) = (Self.temporary("OLD", expiresIn: 30), Self.temporary("NEW", expiresIn: 3600))
        let provider = Provider([.success(old), .success(new)], after: gate)
        let manager = Self.manager("s3", provider)
        let first = (0..<50).map { _ in manager.request(server.url("/")) }
        gate.open()
        for request in first { _ = try await request.serializingData().value }
        #expect(provider.asked.read { $0 } == 1)
        for request in server.requests { #expect(try Self.isSigned(request, for: "s3", with: old)) }
        for _ in 0..<3 { _ = try await manager.request(server.url("/")).serializingData().value }
        #expect(provider.asked.read { $0 } == 2)
        for request in server.requests.dropFirst(50) { #expect(try Self.isSigned(request, for: "s3", with: new)) }
    }

    @Test("a provider that fails fails requests, but not as long as there are valid credentials") func failures() async throws {
        let server = try LoopbackServer { _, _ in .ok() }
        defer { server.stop() }
        let valid = Self.temporary("A", expiresIn: 200)
        let manager = Self.manager("s3", Provider([.failure(Unreachable()), .success(valid), .failure(Unreachable())]))
        #expect(await manager.request(server.url("/")).serializingData().response.error is Unreachable)
        for _ in 0..<2 { _ = try await manager.request(server.url("/")).serializingData().value }
        #expect(server.requestCount == 2)
        for request in server.requests { #expect(try Self.isSigned(request, for: "s3", with: valid)) }
    }

    @Test("credentials that have expired by this computer's clock are used once") func expired() async throws {
        let server = try LoopbackServer { _, _ in .ok() }
        defer { server.stop() }
        let all = ["A", "B"].map { Self.temporary($0, expiresIn: -7200) }
        let manager = Self.manager("s3", Provider(all.map { .success($0) }))
        for _ in all { _ = try await manager.request(server.url("/")).serializingData().value }
        for (request, credentials) in zip(server.requests, all) { #expect(try Self.isSigned(request, for: "s3", with: credentials)) }
        #expect(server.requestCount == 2)
    }

    @Test("a request that waits for a connection is signed with the credentials that it began with") func replacedMeanwhile() async throws {
        let (held, gate) = (Gate(), Gate())
        let server = try LoopbackServer { request, _ in
            if request.path == "/held" {
                held.arrive()
                _ = held.wait()
            }
            return .ok()
        }
        defer {
            held.open()
            gate.open()
        }
        let all = ["A", "B", "C"].map { Self.temporary($0, expiresIn: 30) }
        let counter = Counter()
        let manager = Self.manager("s3", Provider(all.map { .success($0) }, after: gate, inCall: 3)) {
            $0.maximumConnectionsPerHost = 1
            $0.instruments = [counter]
        }
        let first = manager.request(server.url("/held"))
        first.resume()
        #expect(await held.arrivals())
        let second = manager.request(server.url("/second"))
        second.resume()
        #expect(await eventually { counter.begun.read { $0 } == 2 })
        let third = manager.request(server.url("/third"))
        third.resume()
        gate.open()
        #expect(await eventually { counter.begun.read { $0 } == 3 })
        held.open()
        for request in [first, second, third] { _ = try await request.serializingData().value }
        #expect(server.requests.map(\.path) == ["/held", "/second", "/third"])
        for (request, credentials) in zip(server.requests, all) { #expect(try Self.isSigned(request, for: "s3", with: credentials)) }
    }

    @Test("the deadline of the first request does not end what others wait for") func deadlines() async throws {
        let server = try LoopbackServer { _, _ in .ok() }
        let gate = Gate()
        defer { gate.open() }
        let provider = Provider([.success(Self.credentials)], after: gate)
        let manager = Self.manager("s3", provider)
        let first = manager.request(server.url("/"), options: RequestOptions(deadline: .milliseconds(50)))
        let second = manager.request(server.url("/"))
        guard case .transferFailed(let failure) = await first.serializingData().response.error as? CurlewError else {
            Issue.record("the first request has not failed")
            return
        }
        #expect(failure.kind == .deadline)
        gate.open()
        _ = try await second.serializingData().value
        #expect(provider.asked.read { $0 } == 1)
        #expect(server.requestCount == 1)
    }
}
