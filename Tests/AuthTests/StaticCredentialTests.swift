// SPDX-License-Identifier: Apache-2.0
import CurlewAuth
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct StaticCredentialTests {
    private let directory: TemporaryDirectory
    private let server: LoopbackServer

    init() throws {
        directory = try TemporaryDirectory()
        server = try LoopbackServer { request, _ in
            .ok(
                "\(request.target) \(request.header("Authorization") ?? "") \(request.header("X-Key") ?? request.header("X-API-Key") ?? "")"
            )
        }
    }

    private func manager(_ interceptor: (any RequestInterceptor)?) -> SessionManager {
        SessionManager(configuration: makeConfiguration(), interceptor: interceptor)
    }

    private func text(_ path: String, headers: HTTPHeaders = [:], _ interceptor: (any RequestInterceptor)?) async throws -> String {
        let url = try URLRequest(url: server.url(path), method: .get, headers: headers)
        return try await manager(interceptor).request(url).validate().serializingString().value
    }

    // A4.4
    @Test func `a credential is a line`() async throws {
        let basic = "Basic \(Data("me:p:w".utf8).base64EncodedString())"
        #expect(try await text("/", .bearer("t")) == "/ Bearer t ")
        #expect(try await text("/", .basic(user: "me", password: "p:w")) == "/ \(basic) ")
        #expect(try await text("/", .apiKey("k")) == "/  k")
        #expect(try await text("/", .apiKey("k", header: "X-Key")) == "/  k")
        #expect(try await text("/", .apiKey("k&", queryItem: "key")) == "/?key=k%26  ")
        #expect(try await text("/?a=b", .apiKey("k", queryItem: "key")) == "/?a=b&key=k  ")
        let file = try directory.write(Data("machine 127.0.0.1 login me password p:w\n".utf8), to: "netrc")
        #expect(try await text("/", .netrc(file)) == "/ \(basic) ")
        let other = try directory.write(Data("machine example.org login me password p\n".utf8), to: "other")
        #expect(try await text("/", .netrc(other)) == "/  ")
    }

    // A4.4
    @Test func `what the request has is kept`() async throws {
        #expect(try await text("/", headers: ["Authorization": "Mine"], .bearer("t")) == "/ Mine ")
        #expect(try await text("/?k%65y=mine", .apiKey("k", queryItem: "key")) == "/?k%65y=mine  ")
        #expect(try await manager(.bearer("t")).request(server.url("/")).serializingString().value == "/ Bearer t ")
    }

    // A4.4
    @Test func `it is for origins`() async throws {
        #expect(try await text("/", .bearer("t", for: [server.url("/x")])) == "/ Bearer t ")
        #expect(try await text("/", .bearer("t", for: ["https://127.0.0.1:\(server.port)"])) == "/  ")
        #expect(try await text("/", .apiKey("k", queryItem: "key", for: ["http://127.0.0.1"])) == "/  ")
        #expect(try await text("/", .bearer("t", for: [])) == "/  ")
    }

    @Test func `an invalid one fails the request`() async throws {
        for interceptor in [.basic(user: "a:b", password: ""), .bearer("a\nb")] as [StaticCredential] {
            await #expect(throws: CurlewError.self) { try await text("/", interceptor) }
        }
        #expect(server.requests.isEmpty)
        #expect(throws: CocoaError.self) { try StaticCredential.netrc(directory.file("none")) }
        let file = try directory.write(Data("machine \"x".utf8), to: "netrc")
        #expect(throws: CocoaError.self) { try StaticCredential.netrc(file) }
    }

    @Test func `no text has it`() throws {
        let file = try directory.write(Data("machine h login s3cret password s3cret\n".utf8), to: "netrc")
        let all: [StaticCredential] = [
            .bearer("s3cret"), .basic(user: "s3cret", password: "s3cret"), .apiKey("s3cret", header: "X-Mine"),
            .apiKey("s3cret", queryItem: "mine"), try .netrc(file),
        ]
        var text = ""
        dump(all, to: &text)
        #expect(!(text + all.map { "\($0) \(String(reflecting: $0))" }.joined()).contains("s3cret"))
        #expect(!Redaction.current.url("https://example.org/?mine=s3cret").contains("s3cret"))
        #expect(Redaction.current.hides(header: "X-Mine"))
    }
}
