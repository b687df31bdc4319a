// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

/// Nonces that later requests of a session use again.
@Suite(.timeLimit(.minutes(1))) struct DigestMemoryTests {
    private static let users = ["ann": "apple", "bob": "bread"]

    /// A server that gives each challenge a nonce of its own, and accepts each of them as often as it may be used, with growing counts. Its
    /// body is the user's name.
    private final class Server: Sendable {
        private struct State {
            var counts: [String: Int] = [:]
            var last = 0
        }

        private let state = Lock(State())
        private let uses: Int
        private let tellsStale: Bool
        private let domain: String

        init(uses: Int = 100, tellsStale: Bool = true, domain: String = "") {
            (self.uses, self.tellsStale, self.domain) = (uses, tellsStale, domain.isEmpty ? "" : ", domain=\"\(domain)\"")
        }

        /// Forgets all nonces.
        func restart() { state.withLock { $0.counts = [:] } }

        func transport(
            _ answer: @escaping @Sendable (TransferRequest, String) -> [MockTransport.Step] = { .response(200, [:], $1) }
        ) -> MockTransport {
            MockTransport { request in
                switch self.user(of: request) {
                case .success(let user): answer(request, user)
                case .failure(let refusal): .response(401, self.challenge(isStale: refusal.isStale), "who are you", readsBody: true)
                }
            }
        }

        struct Refusal: Error {
            var isStale = false
        }

        private func challenge(isStale: Bool) -> HTTPHeaders {
            let nonce = state.withLock { state in
                state.last += 1
                state.counts["\(state.last)"] = 0
                return state.last
            }
            let stale = isStale && tellsStale ? ", stale=true" : ""
            return ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"\(nonce)\", qop=\"auth\"\(domain)\(stale)"]
        }

        private func user(of request: TransferRequest) -> Result<String, Refusal> {
            let given = DigestMemoryTests.parameters(request)
            guard let nonce = given["nonce"], let user = given["username"] else { return .failure(Refusal()) }
            let count = given["nc"].flatMap { Int($0, radix: 16) } ?? 0
            let isValid = state.withLock { state in
                guard let last = state.counts[nonce], count > last, count <= uses else { return false }
                state.counts[nonce] = count
                return true
            }
            guard isValid else { return .failure(Refusal(isStale: true)) }
            func hash(_ text: String) -> String { MD5.digest(of: text.utf8).hexDigits }
            let middle = "\(nonce):\(given["nc"] ?? ""):\(given["cnonce"] ?? ""):auth"
            let secret = hash("\(user):r:\(DigestMemoryTests.users[user] ?? "")")
            guard given["response"] == hash("\(secret):\(middle):\(hash("\(request.method):\(given["uri"] ?? "")"))") else {
                return .failure(Refusal())
            }
            return .success(user)
        }
    }

    fileprivate static func parameters(_ request: TransferRequest) -> [String: String] {
        AuthenticationChallenge.challenges(in: [request.headers["Authorization"] ?? ""]).first?.parameters ?? [:]
    }

    /// Nonce and count of each exchange; `-` for one without credentials.
    private func sent(_ mock: MockTransport) -> [String] {
        mock.started.all.map {
            let given = Self.parameters($0.request)
            return given["nonce"].map { "\($0):\(Int(given["nc"] ?? "", radix: 16) ?? 0)" } ?? "-"
        }
    }

    private func load(
        _ manager: SessionManager, _ user: String? = "ann", _ password: String? = nil, at url: String = "http://mock/",
        interceptor: (any RequestInterceptor)? = nil
    ) async -> String? {
        // A request that is under way waits for its credential for a tenth of a second only.
        manager.startRequestsImmediately = false
        let request = manager.request(url, interceptor: interceptor).validate()
        if let user { request.authenticate(user: user, password: password ?? Self.users[user] ?? "") }
        manager.startRequestsImmediately = true
        request.resume()
        return await request.serializingString().response.value
    }

    @Test func `later requests use the nonce again, and count`() async {
        let mock = Server().transport()
        let manager = SessionManager(mock: mock)
        for _ in 1...4 { #expect(await load(manager) == "ann") }
        #expect(sent(mock) == ["-", "1:1", "1:2", "1:3", "1:4"])
    }

    @Test func `bodies go once, also those that can't be sent again`() async {
        let mock = Server().transport { _, user in .response(200, [:], user, readsBody: true) }
        let manager = SessionManager(mock: mock)
        let body = Data("order".utf8)
        for _ in 1...2 {
            let request = manager.upload(body, to: "http://mock/").authenticate(user: "ann", password: "apple")
            #expect(await request.serializingString().response.value == "ann")
        }
        let stream = manager.upload(InputStream(data: body), to: "http://mock/").authenticate(user: "ann", password: "apple")
        #expect(await stream.serializingString().response.value == "ann")
        #expect(sent(mock) == ["-", "1:1", "1:2", "1:3"])
        #expect(mock.started.all.map(\.sentBody) == [body, body, body, body])
    }

    @Test func `each user has nonces of their own`() async {
        let mock = Server().transport()
        let manager = SessionManager(mock: mock)
        for user in ["ann", "bob", "ann", "bob"] { #expect(await load(manager, user) == user) }
        #expect(await load(manager, "ann", "wrong") == nil)
        #expect(await load(manager, nil) == nil)
        #expect(sent(mock) == ["-", "1:1", "-", "2:1", "1:2", "2:2", "-", "3:1", "-"])
    }

    @Test func `what is chained behind a handler is no other user's request`() async {
        let mock = Server().transport()
        let manager = SessionManager(mock: mock) { $0.credentialStorage = URLCredentialStorage() }
        #expect(await load(manager) == "ann")
        let values = Inbox<String?>()
        manager.request("http://mock/").responseString { values.put($0.value) }.authenticate(user: "bob", password: "bread")
        _ = await values[0]
        #expect(sent(mock).dropFirst(2).first == "-")
    }

    @Test func `a stored credential is used where no other one can come`() async {
        let mock = Server().transport()
        let manager = SessionManager(mock: mock) { $0.credentialStorage = URLCredentialStorage() }
        #expect(await load(manager) == "ann")
        #expect(await load(manager, nil) == "ann")
        #expect(await load(manager, "bob") == "bob")
        #expect(sent(mock) == ["-", "1:1", "1:2", "-", "2:1"])
    }

    @Test func `the user of a URL is one, too`() async {
        let mock = Server().transport()
        let manager = SessionManager(mock: mock)
        for _ in 1...2 { #expect(await load(manager, nil, at: "http://ann:apple@mock/") == "ann") }
        #expect(sent(mock) == ["-", "1:1", "1:2"] && mock.started.all.last?.request.url == "http://mock/")
    }

    @Test(arguments: [true, false]) func `an expired nonce is replaced without asking, and takes the others along`(tellsStale: Bool) async {
        let server = Server(uses: 2, tellsStale: tellsStale)
        let mock = server.transport()
        let manager = SessionManager(mock: mock)
        for _ in 1...4 { #expect(await load(manager) == "ann") }
        #expect(sent(mock) == ["-", "1:1", "1:2", "1:3", "2:1", "2:2"])
        server.restart()
        for _ in 1...2 { #expect(await load(manager) == "ann") }
        #expect(sent(mock).dropFirst(6) == ["2:3", "3:1", "3:2"])
    }

    @Test func `a password that counts no longer gives the 401`() async {
        let server = Server()
        let isChanged = Lock(false)
        let mock = server.transport { _, user in
            isChanged.withLock { $0 }
                ? .response(401, ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"9\", qop=\"auth\""]) : .response(200, [:], user)
        }
        let manager = SessionManager(mock: mock)
        #expect(await load(manager) == "ann")
        isChanged.withLock { $0 = true }
        #expect(await load(manager) == nil)
        // The second nonce is one that the server does not know, and so stale.
        #expect(sent(mock) == ["-", "1:1", "1:2", "9:1", "2:1"])
    }

    @Test(arguments: ["http://other/", "https://mock/", "http://mock:81/", "http://mock./other-host-field"])
    func `no other server gets anything`(url: String) async {
        let mock = Server().transport()
        let manager = SessionManager(mock: mock)
        #expect(await load(manager) == "ann")
        if url.hasSuffix("other-host-field") {
            let headers: HTTPHeaders = ["Host": "elsewhere"]
            let request = manager.request("http://mock/", headers: headers).authenticate(user: "ann", password: "apple")
            _ = await request.serializingData().response
        } else {
            #expect(await load(manager, at: url) == "ann")
        }
        #expect(sent(mock) == ["-", "1:1", "-", "2:1"])
    }

    @Test func `a Unix domain socket is another server`() async {
        let mock = Server().transport()
        let manager = SessionManager(mock: mock)
        for path in [nil, "/run/a", "/run/b", "/run/a", nil] {
            let request = manager.request("http://mock/", options: RequestOptions(unixSocketPath: path))
            _ = await request.authenticate(user: "ann", password: "apple").serializingData().response
        }
        #expect(sent(mock) == ["-", "1:1", "-", "2:1", "-", "3:1", "2:2", "1:2"])
    }

    @Test(
        arguments: [
            ("/a", ["/a/b", "/a"], ["/b", "/"]), ("/a /b", ["/b/c"], ["/c"]), ("http://mock/a http://other/", ["/a"], ["/b"]),
            ("http://other/", [], ["/a", "/"]), ("https://mock/", [], ["/a"]),
        ])
    func `a domain limits the URIs`(domain: String, inside: [String], outside: [String]) async {
        let mock = Server(domain: domain).transport()
        let manager = SessionManager(mock: mock)
        #expect(await load(manager, at: "http://mock/a") == "ann")
        for path in inside { #expect(await load(manager, at: "http://mock" + path) == "ann") }
        #expect(sent(mock).dropFirst(2).count == inside.count && !sent(mock).dropFirst(2).contains("-"))
        for path in outside { #expect(await load(manager, at: "http://mock" + path) == "ann") }
        #expect(sent(mock).count { $0 == "-" } == 1 + outside.count)
    }

    @Test func `redirects within the origin count on, and one to another takes nothing along`() async {
        let mock = Server().transport { request, user in
            switch request.target {
            case "/first": .response(307, ["Location": "/next"])
            case "/away": .response(307, ["Location": "http://other/"])
            default: .response(200, [:], user)
            }
        }
        let manager = SessionManager(mock: mock)
        #expect(await load(manager, at: "http://mock/first") == "ann")
        #expect(await load(manager, at: "http://mock/first") == "ann")
        #expect(sent(mock) == ["-", "1:1", "1:2", "1:3", "1:4"])
        #expect(await load(manager, at: "http://mock/away") == nil)
        #expect(sent(mock).dropFirst(5) == ["1:5", "-"])
    }

    @Test func `a retry counts on`() async {
        let isFirst = Lock(true)
        let mock = Server().transport { request, user in
            let fails =
                request.target == "/flaky"
                && isFirst.withLock { isFirst in
                    defer { isFirst = false }
                    return isFirst
                }
            return fails ? .response(503) : .response(200, [:], user)
        }
        let manager = SessionManager(mock: mock)
        #expect(await load(manager) == "ann")
        #expect(await load(manager, at: "http://mock/flaky", interceptor: RetryPolicy(exponentialBackoffScale: 0)) == "ann")
        #expect(sent(mock) == ["-", "1:1", "1:2", "1:3"])
    }

    @Test func `a nonce that was lost on the way is not used again`() async {
        let mock = Server().transport { request, user in
            request.target == "/lost" ? .failure(.connectionLost) : .response(200, [:], user)
        }
        let manager = SessionManager(mock: mock)
        #expect(await load(manager) == "ann")
        #expect(await load(manager, at: "http://mock/lost") == nil)
        #expect(await load(manager) == "ann")
        #expect(sent(mock) == ["-", "1:1", "1:2", "-", "2:1"])
    }

    @Test func `a request that is cancelled while its user is unknown sends nothing`() async {
        let mock = Server().transport()
        let manager = SessionManager(mock: mock)
        #expect(await load(manager) == "ann")
        let request = manager.request("http://mock/")
        request.cancel()
        let error = await request.serializingData().response.error
        guard case .cancelled? = error as? CurlewError else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(sent(mock) == ["-", "1:1"])
        #expect(await load(manager) == "ann")
        #expect(sent(mock) == ["-", "1:1", "1:2"])
    }

    @Test func `a request without a handler is sent all the same`() async {
        let mock = Server().transport()
        let manager = SessionManager(mock: mock)
        #expect(await load(manager) == "ann")
        let request = manager.request("http://mock/")
        #expect(await eventually { request.driver.state.withLock { $0.lifecycle.stage } == .finished })
        #expect(sent(mock) == ["-", "1:1", "-"] && request.response?.statusCode == 401)
    }

    @Test func `requests at the same time have nonces of their own, each of which counts`() async {
        let mock = Server().transport()
        let manager = SessionManager(mock: mock)
        await withTaskGroup { group in
            for _ in 0..<200 { group.addTask { #expect(await load(manager) == "ann") } }
        }
        let used = sent(mock).filter { $0 != "-" }
        #expect(Set(used).count == used.count && used.count == 200)
        let counts = Dictionary(grouping: used) { $0.prefix { $0 != ":" } }
        for (nonce, uses) in counts { #expect(uses == (1...uses.count).map { "\(nonce):\($0)" }) }
    }

    @Test func `closures are asked each time`() async {
        let mock = Server().transport()
        let manager = SessionManager(mock: mock)
        manager.delegate.taskDidReceiveChallenge = { _, _, _, completion in
            completion(.useCredential, URLCredential(user: "ann", password: "apple", persistence: .none))
        }
        for _ in 1...2 { #expect(await load(manager, nil) == "ann") }
        #expect(sent(mock) == ["-", "1:1", "-", "2:1"])
    }

    @Test func `an answer of the program's own is not replaced`() async {
        let mock = Server().transport()
        let manager = SessionManager(mock: mock)
        #expect(await load(manager) == "ann")
        let request = manager.request("http://mock/", headers: ["Authorization": "Bearer token"])
        _ = await request.authenticate(user: "ann", password: "wrong").serializingData().response
        #expect(mock.started.all[2].request.headers["Authorization"] == "Bearer token")
    }

    @Test func `documents of a session with a cache are found as before, and bodies go once`() async {
        let mock = Server().transport()
        let manager = SessionManager(mock: mock) { $0.cache = .memory() }
        #expect(await load(manager) == "ann")
        #expect(await load(manager) == "ann")
        let upload = manager.upload(Data("x".utf8), to: "http://mock/").authenticate(user: "ann", password: "apple")
        #expect(await upload.serializingString().response.value == "ann")
        #expect(sent(mock) == ["-", "1:1", "-", "2:1", "2:2"])
    }

    @Test func `the next nonce of a response counts`() async {
        let mock = MockTransport { request in
            let nonce = Self.parameters(request)["nonce"]
            guard let nonce else { return .response(401, ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"1\", qop=\"auth\""]) }
            return .response(200, ["Authentication-Info": "nextnonce=\"\(nonce)1\""], "ann")
        }
        let manager = SessionManager(mock: mock)
        for _ in 1...3 { #expect(await load(manager) == "ann") }
        #expect(sent(mock) == ["-", "1:1", "11:1", "111:1"])
    }

    @Test func `the memory is bounded`() throws {
        let memory = DigestMemory()
        func nonce(_ text: String) throws -> DigestNonce {
            let challenge = AuthenticationChallenge(scheme: "Digest", parameters: ["realm": "r", "nonce": text])
            let answerable = try #require(AnswerableChallenge(challenge))
            let digest = try #require(DigestChallenge(challenge))
            return DigestNonce(try #require(DigestSession(digest, user: "ann", password: "apple")), to: answerable)
        }
        let credential = URLCredential(user: "ann", password: "apple", persistence: .none)
        let request = TransferRequest(url: "http://mock/")
        for number in 1...100 { memory.keep(try nonce("\(number)"), for: request) }
        var taken = 0
        while memory.take(for: request, of: credential) != nil { taken += 1 }
        #expect(taken == DigestMemory.mostNonces)
        for number in 1...1_000 { memory.keep(try nonce("\(number)"), for: TransferRequest(url: "http://mock\(number)/")) }
        let kept = (1...1_000).count { memory.challenge(for: TransferRequest(url: "http://mock\($0)/")) != nil }
        #expect(kept > 0 && kept <= DigestMemory.mostSpaces)
    }
}
