// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import CurlewURLLoading
import Dispatch
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct ChallengeHandlingTests {
    private static let basic: HTTPHeaders = ["WWW-Authenticate": "Basic realm=\"r\""]

    private static func digest(_ nonce: Int, stale: Bool = false) -> HTTPHeaders {
        ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"\(nonce)\", qop=\"auth\"" + (stale ? ", stale=true" : "")]
    }

    private static func header(user: String, password: String) -> String? {
        Request.authorizationHeader(user: user, password: password)?.value
    }

    /// A server that knows `user` with `password`, by Basic.
    private static func server(isSynchronous: Bool = false) -> MockTransport {
        MockTransport(isSynchronous: isSynchronous) { request in
            request.headers["Authorization"] == header(user: "user", password: "password")
                ? .response(200, [:], "welcome") : .response(401, basic, "who are you")
        }
    }

    private static func sent(_ mock: MockTransport) -> [String?] {
        mock.started.all.map { $0.request.headers["Authorization"] }
    }

    // MARK: The request's credential

    @Test("a credential counts that is chained when the 401 is there already, every time")
    func lateCredential() async {
        let manager = SessionManager(mock: Self.server(isSynchronous: true))
        for _ in 0..<1_000 {
            let response = await manager.request("http://mock/").authenticate(user: "user", password: "password").serializingString()
                .response
            #expect(response.value == "welcome")
        }
    }

    @Test("it counts also when everything has come to rest meanwhile")
    func credentialForWaitingChallenge() async {
        let manager = SessionManager(mock: Self.server(isSynchronous: true))
        let request = manager.request("http://mock/")
        manager.settle()
        request.authenticate(user: "user", password: "password")
        #expect(await request.serializingString().response.value == "welcome")
    }

    @Test("it counts also without a handler, at once")
    func unheardCredential() async {
        let manager = SessionManager(mock: Self.server())
        let request = manager.request("http://mock/").authenticate(user: "user", password: "password")
        #expect(await eventually { request.driver.state.withLock { $0.lifecycle.stage } == .finished })
        #expect(request.response?.statusCode == 200)
    }

    @Test("it counts also behind a validation, and for a handler")
    func chaining() async {
        let manager = SessionManager(mock: Self.server(isSynchronous: true))
        let values = Inbox<String?>()
        manager.request("http://mock/").validate().authenticate(user: "user", password: "password").responseString { values.put($0.value) }
        #expect(await values[0] == "welcome")
    }

    @Test("nothing is sent before the server asks")
    func unasked() async {
        let mock = MockTransport.answering(200, [:], "free")
        let manager = SessionManager(mock: mock)
        let response = await manager.request("http://mock/").authenticate(user: "a", password: "b").serializingString()
            .response
        #expect(response.value == "free")
        #expect(Self.sent(mock) == [nil])
    }

    @Test("a 401 without anybody who knows an answer is the response", arguments: [basic, ["WWW-Authenticate": "Bearer"], [:]])
    func unanswered(headers: HTTPHeaders) async {
        let mock = MockTransport.answering(401, headers, "who are you")
        let manager = SessionManager(mock: mock)
        let response = await manager.request("http://mock/").serializingString().response
        #expect(response.error == nil && response.value == "who are you")
        #expect(mock.started.count == 1)
    }

    @Test(
        "the number of challenges is limited, and the stack does not grow with them",
        arguments: [nil, .performDefaultHandling, .rejectProtectionSpace] as [URLSession.AuthChallengeDisposition?], [1_500, 20_000])
    func manyChallenges(disposition: URLSession.AuthChallengeDisposition?, count: Int) async {
        let mock = MockTransport.answering(401, ["WWW-Authenticate": String(repeating: "Basic,", count: count)], "who are you")
        let manager = SessionManager(mock: mock)
        let calls = Lock(0)
        if let disposition {
            manager.delegate.taskDidReceiveChallenge = { _, _, _, completion in
                calls.withLock { $0 += 1 }
                completion(disposition, nil)
            }
        }
        let response = await manager.request("http://mock/").serializingString().response
        #expect(response.error == nil && response.value == "who are you")
        #expect(mock.started.count == 1)
        #expect(calls.withLock { $0 } == (disposition == nil ? 0 : 16))
    }

    @Test("a credential that fits none of many challenges gives the 401")
    func manyUnfitting() async {
        // A colon in the user name has no form in Basic.
        let mock = MockTransport.answering(401, ["WWW-Authenticate": String(repeating: "Basic,", count: 100_000)], "who are you")
        let manager = SessionManager(mock: mock)
        let response = await manager.request("http://mock/").authenticate(user: "us:er", password: "password").serializingString().response
        #expect(response.value == "who are you" && mock.started.count == 1)
    }

    @Test("the strongest challenge is answered behind many weak ones, within the limit of those that are parsed")
    func strongestOfMany() async {
        let digest = Self.digest(1)["WWW-Authenticate"] ?? ""
        let mock = MockTransport { request in
            guard request.headers["Authorization"]?.hasPrefix("Digest ") == true else {
                return .response(401, ["WWW-Authenticate": String(repeating: "Basic, ", count: 40) + digest], "who are you")
            }
            return .response(200, [:], "welcome")
        }
        let response = await SessionManager(mock: mock).request("http://mock/").authenticate(user: "user", password: "password")
            .serializingString().response
        #expect(response.value == "welcome")
    }

    @Test("a request without a handler ends all the same")
    func unheard() async {
        let manager = SessionManager(mock: Self.server())
        let request = manager.request("http://mock/")
        #expect(await eventually { request.driver.state.withLock { $0.lifecycle.stage } == .finished })
        #expect(request.response?.statusCode == 401)
    }

    @Test("a refused credential gives the 401, without an error and without another try")
    func refused() async {
        let mock = Self.server()
        let manager = SessionManager(mock: mock)
        let response = await manager.request("http://mock/").authenticate(user: "user", password: "wrong")
            .serializingString().response
        #expect(response.error == nil && response.value == "who are you")
        #expect(response.response?.statusCode == 401)
        #expect(Self.sent(mock) == [nil, Self.header(user: "user", password: "wrong")])
        #expect(response.metrics.transactionMetrics.count == 2)
    }

    @Test("a retry begins without refusals and without credentials")
    func retry() async {
        let mock = Self.server()
        let manager = SessionManager(mock: mock)
        manager.retrier = Retrying { request, _, completion in
            request.authenticate(user: "user", password: "password")
            completion(request.retryCount < 1, 0)
        }
        let response = await manager.request("http://mock/").authenticate(user: "user", password: "wrong").validate().serializingString()
            .response
        #expect(response.value == "welcome")
        #expect(
            Self.sent(mock) == [nil, Self.header(user: "user", password: "wrong"), nil, Self.header(user: "user", password: "password")])
    }

    @Test("the URL's name and password, which go out unasked, are not tried twice")
    func userInfo() async {
        let mock = Self.server()
        let manager = SessionManager(mock: mock)
        let refused = await manager.request("http://user:password@mock/").serializingString().response
        #expect(refused.response?.statusCode == 401)
        #expect(mock.started.count == 1)
        let response = await manager.request("http://other:one@mock/").authenticate(user: "user", password: "password").serializingString()
            .response
        #expect(response.value == "welcome")
        #expect(mock.started.all.last?.request.url == "http://mock/")
    }

    // MARK: Digest

    private static func parameters(_ exchange: Exchange) -> [String: String] {
        AuthenticationChallenge.challenges(in: [exchange.request.headers["Authorization"] ?? ""]).first?.parameters ?? [:]
    }

    @Test("a forgotten nonce is renewed, once, and counts as no refusal")
    func stale() async {
        let mock = MockTransport.answering(inTurn: [
            .response(401, Self.digest(1)), .response(401, Self.digest(2, stale: true)), .response(200, [:], "welcome"),
        ])
        let manager = SessionManager(mock: mock)
        let response = await manager.request("http://mock/").authenticate(user: "a", password: "b").serializingString()
            .response
        #expect(response.value == "welcome")
        #expect(mock.started.all.map { Self.parameters($0)["nonce"] } == [nil, "1", "2"])
    }

    @Test("nonces that are always forgotten come to an end")
    func staleForEver() async {
        let mock = MockTransport { _ in .response(401, Self.digest(.random(in: 1...1_000_000), stale: true)) }
        let manager = SessionManager(mock: mock)
        let response = await manager.request("http://mock/").authenticate(user: "a", password: "b").serializingData()
            .response
        #expect(response.error == nil && response.response?.statusCode == 401)
        #expect(mock.started.count == 3)
    }

    @Test("a server that asks with another realm each time comes to an end")
    func realms() async {
        let mock = MockTransport { _ in .response(401, ["WWW-Authenticate": "Basic realm=\(Int.random(in: 1...1_000_000))"]) }
        let manager = SessionManager(mock: mock)
        let response = await manager.request("http://mock/").authenticate(user: "a", password: "b").serializingData()
            .response
        #expect(response.error == nil && response.response?.statusCode == 401)
        #expect(mock.started.count == TaskAuthentication.limit + 1)
    }

    @Test("a redirect within the origin goes with a digest of its own, with the nonce that the server wants")
    func redirectWithin() async {
        let mock = MockTransport.answering(inTurn: [
            .response(401, Self.digest(1)), .response(307, ["Location": "/next?a=b", "Authentication-Info": "nextnonce=\"7\", qop=auth"]),
            .response(302, ["Location": "/last"]), .response(200),
        ])
        let manager = SessionManager(mock: mock)
        _ = await manager.request("http://mock/first", method: .post).authenticate(user: "a", password: "b")
            .serializingData().response
        let parameters = mock.started.all.map(Self.parameters)
        #expect(parameters.map { $0["uri"] } == [nil, "/first", "/next?a=b", "/last"])
        #expect(parameters.map { $0["nonce"] } == [nil, "1", "7", "7"])
        #expect(parameters.map { $0["nc"] } == [nil, "00000001", "00000001", "00000002"])
        #expect(mock.started.all.last?.request.method == .get)
    }

    @Test(
        "a redirect to another origin takes nothing along, and nobody there gets an answer",
        arguments: ["http://other/", "https://mock/", "http://mock:81/"])
    func redirectElsewhere(target: String) async {
        let mock = MockTransport { request in
            if request.url == target { return .response(401, Self.basic, "me too") }
            return request.headers["Authorization"] == nil ? .response(401, Self.basic) : .response(302, ["Location": target])
        }
        let manager = SessionManager(mock: mock)
        let response = await manager.request("http://mock/").authenticate(user: "a", password: "b").serializingString()
            .response
        #expect(response.value == "me too")
        #expect(Self.sent(mock) == [nil, Self.header(user: "a", password: "b"), nil])
    }

    @Test("the strongest scheme is answered, and a weaker one where the credential is none for it")
    func schemes() async {
        let mock = MockTransport { request in
            guard request.headers["Authorization"] == nil, request.authentication == nil else { return .response(200) }
            let fields = "Basic realm=r, Negotiate, Digest realm=r, nonce=5, Digest realm=r, nonce=2, algorithm=SHA-256"
            return .response(401, ["WWW-Authenticate": fields])
        }
        let manager = SessionManager(mock: mock)
        _ = await manager.request("http://mock/").authenticate(user: "a", password: "b").serializingData().response
        #expect(mock.started.all.map { Self.parameters($0)["algorithm"] } == [nil, "SHA-256"])
    }

    // MARK: libcurl's schemes

    private static func connection(_ scheme: String, user: String) async -> [ConnectionAuthentication?] {
        let mock = MockTransport { request in
            request.authentication == nil ? .response(401, ["WWW-Authenticate": scheme]) : .response(200)
        }
        let manager = SessionManager(mock: mock)
        _ = await manager.request("http://a:b@mock/").authenticate(user: user, password: "p").serializingData().response
        return mock.started.all.map(\.request.authentication)
    }

    @Test("NTLM is left to the transport", .enabled(if: CurlInfo.current.supportsNTLM)) func ntlm() async {
        #expect(await Self.connection("NTLM", user: "D\\u") == [nil, .ntlm(user: "D\\u", password: "p")])
        #expect(await Self.connection("NTLM", user: "") == [nil])
    }

    @Test("Kerberos tickets are used when nobody is named, only", .enabled(if: CurlInfo.current.supportsNegotiate)) func negotiate() async {
        #expect(await Self.connection("Negotiate", user: "") == [nil, .negotiate])
        #expect(await Self.connection("Negotiate", user: "u") == [nil])
        let ntlm: [ConnectionAuthentication?] = CurlInfo.current.supportsNTLM ? [nil, .ntlm(user: "u", password: "p")] : [nil]
        #expect(await Self.connection("Negotiate, NTLM", user: "u") == ntlm)
    }

    // MARK: Bodies

    @Test("a body is sent again, and a stream that can't be gives the 401")
    func bodies() async {
        let mock = MockTransport { request in
            request.headers["Authorization"] == nil
                ? .response(401, Self.basic, "who are you", readsBody: true) : .response(200, [:], "welcome", readsBody: true)
        }
        let manager = SessionManager(mock: mock)
        let data = await manager.upload(Data("body".utf8), to: "http://mock/").authenticate(user: "a", password: "b").serializingString()
            .response
        #expect(data.value == "welcome")
        #expect(mock.started.all.map(\.sentBody) == [Data("body".utf8), Data("body".utf8)])
        let stream = await manager.upload(InputStream(data: Data("body".utf8)), to: "http://mock/").authenticate(user: "a", password: "b")
            .serializingString().response
        #expect(stream.error == nil && stream.value == "who are you")
        manager.delegate.taskNeedNewBodyStream = { _, _, completion in completion(InputStream(data: Data("again".utf8))) }
        let renewed = await manager.upload(InputStream(data: Data("body".utf8)), to: "http://mock/").authenticate(user: "a", password: "b")
            .serializingString().response
        #expect(renewed.value == "welcome")
        #expect(mock.started.all.last?.sentBody == Data("again".utf8))
    }

    // MARK: Storage

    @Test(
        "the session's storage is asked where the request has no credential",
        arguments: [
            (NSURLProtectionSpaceHTTP, NSURLAuthenticationMethodHTTPBasic), ("http", NSURLAuthenticationMethodHTTPBasic),
            (NSURLProtectionSpaceHTTP, NSURLAuthenticationMethodDefault),
        ])
    func stored(_ name: String, _ method: String) async {
        let storage = URLCredentialStorage()
        let space = URLProtectionSpace(host: "mock", port: 80, protocol: name, realm: "r", authenticationMethod: method)
        storage.setDefaultCredential(URLCredential(user: "user", password: "password", persistence: .forSession), for: space)
        let manager = SessionManager(mock: Self.server()) { $0.credentialStorage = storage }
        #expect(await manager.request("http://mock/").serializingString().response.value == "welcome")
        #expect(await manager.request("http://mock:81/").serializingString().response.value == "who are you")
        let own = await manager.request("http://mock/").authenticate(user: "other", password: "one").serializingString().response
        #expect(own.value == "who are you")
    }

    @Test(
        "an accepted credential is kept for others, unless it is for one request alone",
        arguments: [URLCredential.Persistence.forSession, .permanent, .none])
    func storing(_ persistence: URLCredential.Persistence) async {
        let storage = URLCredentialStorage()
        let manager = SessionManager(mock: Self.server()) { $0.credentialStorage = storage }
        let request = manager.request("http://mock/").authenticate(user: "user", password: "password", persistence: persistence)
        #expect(await request.serializingString().response.value == "welcome")
        let users = storage.allCredentials.map {
            "\($0.key.host) \($0.key.realm ?? "") \(storage.defaultCredential(for: $0.key)?.user ?? "")"
        }
        #expect(users == (persistence == .none ? [] : ["mock r user"]))
        let next = await manager.request("http://mock/").serializingString().response
        #expect(next.value == (persistence == .none ? "who are you" : "welcome"))
        let again = manager.request("http://mock/").authenticate(user: "user", password: "password", persistence: persistence)
        #expect(await again.serializingString().response.value == "welcome")
        #expect(storage.allCredentials.count == users.count)
    }

    @Test("a credential that is nobody's default counts where there is no other") func storedWithoutDefault() async {
        let storage = URLCredentialStorage()
        let space = URLProtectionSpace(
            host: "mock", port: 80, protocol: "http", realm: "r", authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        storage.set(URLCredential(user: "user", password: "password", persistence: .forSession), for: space)
        let manager = SessionManager(mock: Self.server()) { $0.credentialStorage = storage }
        #expect(await manager.request("http://mock/").serializingString().response.value == "welcome")
    }

    @Test("a refused credential is not kept") func storingRefused() async {
        let storage = URLCredentialStorage()
        let manager = SessionManager(mock: Self.server()) { $0.credentialStorage = storage }
        _ = await manager.request("http://mock/").authenticate(user: "user", password: "wrong").serializingString().response
        #expect(storage.allCredentials.isEmpty)
    }
}
