// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// Whether a server that computes a request's signature from what it has received gets the same.
@Suite(.timeLimit(.minutes(1))) struct SignedRequestTests {
    /// Signs all that is sent but what changes on the way, and counts.
    private final class Signer: ExchangeSigner {
        let identity: String
        let digestsBody: Bool
        private let counts = Lock((prepared: 0, signed: 0))
        private let failures: Lock<(prepare: [any Error], sign: [any Error])>

        init(_ identity: String = "key", digestsBody: Bool = true, prepare: [any Error] = [], sign: [any Error] = []) {
            self.identity = identity
            self.digestsBody = digestsBody
            failures = Lock((prepare, sign))
        }

        var prepared: Int { counts.withLock { $0.prepared } }
        var signed: Int { counts.withLock { $0.signed } }

        func prepare() async throws {
            counts.withLock { $0.prepared += 1 }
            if let error = failures.withLock({ $0.prepare.popLast() }) { throw error }
        }

        func sign(_ exchange: SignableExchange) throws -> HTTPHeaders {
            let number = counts.withLock { counts in
                counts.signed += 1
                return counts.signed
            }
            if let error = failures.withLock({ $0.sign.popLast() }) { throw error }
            let text = SignedRequestTests.text(
                exchange.method.rawValue, exchange.url, exchange.bodyDigest?.hexDigits ?? "none", { exchange.headers[$0] })
            return ["Signature": "\(identity) \(text)", "Signature-Number": "\(number)"]
        }
    }

    private struct Failure: Error {}

    fileprivate static func text(_ method: String, _ url: String, _ digest: String, _ field: (String) -> String?) -> String {
        let names = ["Host", "Content-Length", "Content-Type", "Accept-Encoding", "Cookie", "Range", "X-Own"]
        return "\(method) \(url) \(names.map { "\($0)=\(field($0) ?? "-")" }) \(digest)"
    }

    /// Whether a request has the signature of what was received.
    private func isSigned(_ request: ServerRequest, by identity: String = "key", digest: String? = nil) -> Bool {
        let url = "http://\(request.header("Host") ?? "")\(request.target)"
        let text = Self.text(request.method, url, digest ?? SHA256.digest(of: request.body).hexDigits, request.header)
        return request.header("Signature") == "\(identity) \(text)"
    }

    private func number(_ request: ServerRequest) -> Int? { request.header("Signature-Number").flatMap { Int($0) } }

    private let server: LoopbackServer
    private let manager = makeManager()

    init() throws {
        server = try LoopbackServer.standard()
    }

    // A3.1
    @Test("the fields are those that are sent, with Host, Content-Length, Accept-Encoding and the body's digest") func fields() async throws
    {
        let directory = try TemporaryDirectory()
        let options = RequestOptions(signer: Signer())
        let body = GeneratedBody().data(count: 700_000)
        let file = try directory.write(body, to: "body")
        _ = try await manager.request(server.url("/echo?q=%41"), headers: ["X-Own": "1"], options: options).serializingData().value
        _ = try await manager.request(server.url("/echo"), headers: ["Range": "bytes=0-3"], options: options).serializingData().value
        _ = try await manager.request(server.url("/echo"), method: .post, options: options).serializingData().value
        _ = try await manager.request(server.url("/echo"), method: .post, parameters: ["a": "ü"], options: options).serializingData().value
        _ = try await manager.upload(body, to: server.url("/upload"), method: .put, options: options).serializingData().value
        _ = try await manager.upload(file, to: server.url("/upload"), method: .put, options: options).serializingData().value
        _ = try await manager.download(server.url("/echo"), requestOptions: options, to: directory.file("d")).serializingData().value
        let slice = manager.upload(file, offset: 600_001, length: 9_000, to: server.url("/echo"), method: .patch, options: options)
        _ = try await slice.serializingData().value
        let requests = server.requests
        #expect(requests.map(\.method) == ["GET", "GET", "POST", "POST", "PUT", "PUT", "GET", "PATCH"])
        // `/upload` keeps no bodies.
        let digest = SHA256.digest(of: body).hexDigits
        for request in requests { #expect(isSigned(request, digest: request.method == "PUT" ? digest : nil)) }
    }

    // A3.1
    @Test("the host is signed as it is sent, in each form that a URL may have", arguments: ["LocalHost", "127.1", "0x7f000001"])
    func host(_ host: String) async throws {
        let options = RequestOptions(signer: Signer(), connectTo: ["*": "127.0.0.1:\(server.port)"])
        let url = "http://\(host):\(server.port)/echo"
        _ = try await manager.request(url, options: options).serializingData().value
        let request = try #require(server.requests.first)
        let text = Self.text("GET", url, SHA256.digest(of: Data()).hexDigits, request.header)
        #expect(request.header("Signature") == "key \(text)")
    }

    // A3.1
    @Test("a body that is neither in memory nor a file has no digest, and one that is not asked for neither") func noDigest() async throws {
        let stream = InputStream(data: Data("body".utf8))
        _ = try await manager.upload(stream, to: server.url("/upload"), options: RequestOptions(signer: Signer())).serializingData().value
        let options = RequestOptions(signer: Signer(digestsBody: false))
        _ = try await manager.upload(Data("body".utf8), to: server.url("/upload"), options: options).serializingData().value
        #expect(server.requests.count == 2)
        for request in server.requests { #expect(isSigned(request, digest: "none")) }
    }

    // A3.1
    @Test("each exchange is signed: of retries, redirects within the origin, challenges") func exchanges() async throws {
        let signer = Signer()
        let options = RequestOptions(signer: signer)
        let failing = try LoopbackServer { request, _ in
            switch request.target {
            case "/retry": request.header("Signature-Number") == "1" ? .status(503) : .ok("retried")
            case "/from": .redirect(to: "/to", status: 307)
            case "/basic" where request.header("Authorization") == nil:
                .status(401, headers: [ServerField("WWW-Authenticate", "Basic realm=\"r\"")])
            default: .ok("done")
            }
        }
        let retried = manager.request(failing.url("/retry"), interceptor: RetryPolicy(exponentialBackoffScale: 0.001), options: options)
        #expect(try await retried.validate().serializingString().value == "retried")
        _ = try await manager.upload(Data("body".utf8), to: failing.url("/from"), options: options).serializingData().value
        _ = try await manager.request(failing.url("/basic"), options: options).authenticate(user: "u", password: "p").serializingData()
            .value
        #expect(failing.requests.map(\.path) == ["/retry", "/retry", "/from", "/to", "/basic", "/basic"])
        #expect(failing.requests.map(number) == [1, 2, 3, 4, 5, 6])
        for request in failing.requests { #expect(isSigned(request)) }
        // Once for each attempt.
        #expect(signer.prepared == 4)
    }

    // A3.1
    @Test("nothing is signed for another origin, also if that redirects back") func otherOrigin() async throws {
        let other = try LoopbackServer { [server] _, _ in .redirect(to: server.url("/echo")) }
        let first = try LoopbackServer { _, _ in .redirect(to: other.url("/")) }
        let signer = Signer()
        let manager = makeManager { $0.signer = signer }
        _ = try await manager.request(first.url("/")).serializingData().value
        #expect(first.requests.map { isSigned($0) } == [true])
        #expect(other.requests.map { $0.header("Signature") } == [nil])
        #expect(server.requests.map { $0.header("Signature") } == [nil])
        #expect(signer.signed == 1)
    }

    // A3.1
    @Test("what a signer throws ends the attempt, with its error, and a retrier may retry") func failures() async throws {
        let failing = Signer(prepare: [Failure()])
        let response = await manager.request(server.url("/echo"), options: RequestOptions(signer: failing)).serializingData().response
        #expect(response.error is Failure)
        let signing = Signer(sign: [Failure()])
        let unsigned = await manager.request(server.url("/echo"), options: RequestOptions(signer: signing)).serializingData().response
        #expect(unsigned.error is Failure)
        #expect(server.requestCount == 0)
        let once = Signer(prepare: [Failure()], sign: [Failure()])
        let retrier = Interceptor(retriers: [Retrier.attempts(2)])
        _ = try await manager.request(server.url("/echo"), interceptor: retrier, options: RequestOptions(signer: once)).serializingData()
            .value
        #expect(server.requests.map(number) == [2])
        #expect(once.prepared == 3)
    }

    // A3.1
    @Test("a file that can't be read any more when it is to be digested fails the request, with its path") func lostFile() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("body".utf8), to: "body")
        struct Losing: ExchangeSigner {
            let identity = "key"
            let digestsBody = true
            let file: URL
            func prepare() throws { try FileManager.default.removeItem(at: file) }
            func sign(_ exchange: SignableExchange) -> HTTPHeaders { [:] }
        }
        let request = manager.upload(file, to: server.url("/upload"), options: RequestOptions(signer: Losing(file: file)))
        let error = await request.serializingData().response.error
        #expect("\(try #require(error))".contains(file.path))
        #expect(server.requestCount == 0)
    }

    // A3.1
    @Test("a field that would break the request is refused") func invalidField() async throws {
        struct Bad: ExchangeSigner {
            let identity = "bad"
            func sign(_ exchange: SignableExchange) -> HTTPHeaders { HTTPHeaders([HTTPHeader(name: "Signature", value: "a\r\nX: b")]) }
        }
        let response = await manager.request(server.url("/echo"), options: RequestOptions(signer: Bad())).serializingData().response
        #expect(throws: CurlewError.self) { try response.result.get() }
        #expect(server.requestCount == 0)
    }
}
