// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading
import Dispatch
import Testing

@testable import CurlewCore

// What users answer to challenges.
@Suite(.timeLimit(.minutes(1))) struct ChallengeClosureTests {
    private typealias Completion = @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void

    private let mock = MockTransport { request in
        let isKnown = request.headers["Authorization"] == Request.authorizationHeader(user: "user", password: "password")?.value
        guard !isKnown, request.authentication == nil else { return .response(200, [:], "welcome") }
        let scheme = request.url.hasSuffix("ntlm") ? "NTLM" : "Basic realm=\"r\""
        let extra = request.url.hasSuffix("two") ? "Digest realm=\"r\", nonce=\"1\", " : ""
        return .response(401, ["WWW-Authenticate": extra + scheme, "X-Answer": "401"], "who are you")
    }
    private let manager: SessionManager
    private let credential = URLCredential(user: "user", password: "password", persistence: .none)

    init() {
        manager = SessionManager(mock: mock)
    }

    @Test("the closure sees the challenge as Foundation has it, on the session's queue")
    func challenge() async {
        let seen = Inbox<URLAuthenticationChallenge>()
        manager.delegate.taskDidReceiveChallenge = { [session = manager.session] _, task, challenge, completion in
            dispatchPrecondition(condition: .onQueue(session.queue))
            #expect(task.currentRequest?.url?.absoluteString == "https://mock:8443/a")
            seen.put(challenge)
            completion(.useCredential, seen.count < 3 ? URLCredential(user: "user", password: "wrong", persistence: .none) : nil)
        }
        let request = manager.request("https://mock:8443/a").authenticate(user: "own", password: "one")
        let response = await request.serializingString().response
        #expect(response.error == nil && response.value == "who are you")
        #expect(seen.all.map(\.previousFailureCount) == [0, 1, 2])
        let space = await seen[0].protectionSpace
        #expect(space.host == "mock" && space.port == 8443 && space.realm == "r" && !space.isProxy())
        #expect(space.authenticationMethod == NSURLAuthenticationMethodHTTPBasic && space.receivesCredentialSecurely)
        #expect(await seen[0].proposedCredential?.user == "own")
        let failure = await seen[1].failureResponse as? HTTPURLResponse
        #expect(failure?.statusCode == 401 && failure?.value(forHTTPHeaderField: "X-Answer") == "401")
        #expect(failure?.url == URL(string: "https://mock:8443/a"))
    }

    @Test("its credential is used instead of the request's")
    func useCredential() async {
        manager.delegate.taskDidReceiveChallenge = { [credential] _, _, _, completion in completion(.useCredential, credential) }
        let response = await manager.request("http://mock/").authenticate(user: "own", password: "one").serializingString().response
        #expect(response.value == "welcome")
    }

    @Test("default handling takes the request's credential")
    func performDefaultHandling() async {
        manager.delegate.taskDidReceiveChallenge = { _, _, _, completion in completion(.performDefaultHandling, nil) }
        #expect(
            await manager.request("http://mock/").authenticate(usingCredential: credential).serializingString().response.value == "welcome")
        let refused = await manager.request("http://mock/").authenticate(user: "a", password: "b").serializingString().response
        #expect(refused.error == nil && refused.value == "who are you")
    }

    @Test("cancelling the challenge cancels the request")
    func cancelChallenge() async {
        manager.delegate.taskDidReceiveChallenge = { _, _, _, completion in completion(.cancelAuthenticationChallenge, nil) }
        let response = await manager.request("http://mock/").serializingString().response
        #expect(isCancelled(response.error))
        #expect((response.error as? CurlewError)?.urlError?.code == .cancelled)
        #expect(response.response?.statusCode == 401)
    }

    @Test("rejecting the space leads to the next one, and at last to the 401")
    func rejectProtectionSpace() async {
        let methods = Inbox<String>()
        manager.delegate.taskDidReceiveChallenge = { _, _, challenge, completion in
            methods.put(challenge.protectionSpace.authenticationMethod)
            completion(.rejectProtectionSpace, nil)
        }
        let response = await manager.request("http://mock/two").serializingString().response
        #expect(response.error == nil && response.value == "who are you")
        #expect(methods.all == [NSURLAuthenticationMethodHTTPDigest, NSURLAuthenticationMethodHTTPBasic])
        #expect(mock.started.count == 1)
    }

    @Test("an answer may come later, from any thread, and counts once")
    func completion() async {
        let completions = Inbox<Completion>()
        defer { completions.empty() }
        manager.delegate.taskDidReceiveChallenge = { _, _, _, completion in completions.put(completion) }
        async let response = manager.request("http://mock/").serializingString().response
        let completion = await completions[0]
        for _ in 0..<3 { completion(.useCredential, credential) }
        completion(.cancelAuthenticationChallenge, nil)
        #expect(await response.value == "welcome")
        completion(.cancelAuthenticationChallenge, nil)
        manager.settle()
        #expect(mock.started.count == 2)
    }

    @Test("an answer that never comes does not keep a request from being cancelled", arguments: [true, false])
    func silence(endsSession: Bool) async {
        let completions = Inbox<Completion>()
        defer { completions.empty() }
        manager.delegate.taskDidReceiveChallenge = { _, _, _, completion in completions.put(completion) }
        let request = manager.request("http://mock/")
        async let response = request.serializingString().response
        let completion = await completions[0]
        if endsSession { manager.invalidateAndCancel() } else { request.cancel() }
        let error = await response.error
        #expect(endsSession ? isInvalidated(error) : isCancelled(error))
        completion(.useCredential, credential)
        manager.settle()
        #expect(mock.started.count == 1)
    }

    @Test("nobody is asked about a request that was cancelled")
    func cancelledBefore() async {
        manager.delegate.taskDidReceiveChallenge = { _, _, _, completion in
            Issue.record("Nobody wants to know")
            completion(.performDefaultHandling, nil)
        }
        manager.session.queue.suspend()
        let request = manager.request("http://mock/")
        _ = await mock.started[0]
        request.cancel()
        async let error = request.serializingData().response.error
        manager.session.queue.resume()
        #expect(isCancelled(await error))
        manager.settle()
    }

    @Test("what concerns the connection is the session's closure's, if there is one", .enabled(if: CurlInfo.current.supportsNTLM))
    func connection() async {
        let methods = Inbox<String>()
        manager.delegate.taskDidReceiveChallenge = { [credential] _, _, challenge, completion in
            methods.put("task " + challenge.protectionSpace.authenticationMethod)
            completion(.useCredential, credential)
        }
        #expect(await manager.request("http://mock/ntlm").serializingString().response.value == "welcome")
        manager.delegate.sessionDidReceiveChallenge = { [credential] _, challenge, completion in
            methods.put("session " + challenge.protectionSpace.authenticationMethod)
            completion(.useCredential, credential)
        }
        #expect(await manager.request("http://mock/ntlm").serializingString().response.value == "welcome")
        #expect(await manager.request("http://mock/").serializingString().response.value == "welcome")
        let (ntlm, basic) = (NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodHTTPBasic)
        #expect(methods.all == ["task " + ntlm, "session " + ntlm, "task " + basic])
    }
}
