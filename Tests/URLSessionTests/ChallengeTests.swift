// SPDX-License-Identifier: Apache-2.0
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewURLSession
import Testing

/// Answers challenges, at the level of the task or of the session.
private final class AnsweringDelegate: NSObject, URLSessionTaskDelegate, @unchecked Sendable {  // set before use
    let challenges = Log<(method: String, failures: Int, host: String, hasResponse: Bool)>()
    let trusts = Log<ServerTrust>()
    var answer: @Sendable (URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?) = { _ in
        (.performDefaultHandling, nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        let space = challenge.protectionSpace
        challenges.append((space.authenticationMethod, challenge.previousFailureCount, space.host, challenge.failureResponse != nil))
        if let trust = space.serverTrust { trusts.append(trust) }
        return answer(challenge)
    }
}

/// Answers at the level of the session.
private final class SessionDelegate: NSObject, URLSessionTaskDelegate {
    let methods = Log<String>()

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        methods.append(challenge.protectionSpace.authenticationMethod)
        completionHandler(.useCredential, challenge.protectionSpace.serverTrust.map { URLCredential(trust: $0) })
    }
}

@Suite(.timeLimit(.minutes(1))) struct ChallengeTests {
    private let delegate = AnsweringDelegate()

    private func session(_ delegate: (any URLSessionDelegate)?) -> URLSession {
        URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    }

    private func basicServer() throws -> LoopbackServer { try LoopbackServer.standard() }

    // U2.8
    @Test func `a challenge is answered by the delegate with what it knows of the attempts`() async throws {
        let server = try basicServer()
        delegate.answer = { challenge in
            let password = challenge.previousFailureCount == 0 ? "wrong" : "secret"
            return (.useCredential, URLCredential(user: "me", password: password, persistence: .none))
        }
        let session = session(delegate)
        defer { session.invalidateAndCancel() }
        let (_, response) = try await session.data(from: server.address("/auth-basic?user=me&password=secret"))
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        #expect(delegate.challenges.elements.map(\.failures) == [0, 1])
        #expect(delegate.challenges.elements.allSatisfy { $0.method == NSURLAuthenticationMethodHTTPBasic && $0.hasResponse })
    }

    // U2.8
    @Test(arguments: [URLSession.AuthChallengeDisposition.performDefaultHandling, .rejectProtectionSpace])
    func `a challenge without an answer gives the 401`(disposition: URLSession.AuthChallengeDisposition) async throws {
        let server = try basicServer()
        delegate.answer = { _ in (disposition, nil) }
        for delegate in [delegate, nil] {
            let session = session(delegate)
            defer { session.invalidateAndCancel() }
            let (_, response) = try await session.data(from: server.address("/auth-basic?user=me&password=secret"))
            #expect((response as? HTTPURLResponse)?.statusCode == 401)
        }
    }

    // U2.8
    @Test func `a cancelled challenge cancels the task`() async throws {
        let server = try basicServer()
        delegate.answer = { _ in (.cancelAuthenticationChallenge, nil) }
        let session = session(delegate)
        defer { session.invalidateAndCancel() }
        let error = await #expect(throws: URLError.self) {
            try await session.data(from: server.address("/auth-basic?user=me&password=secret"))
        }
        #expect(error?.code == .cancelled)
    }

    // U3.5
    @Test func `a credential of the session's storage answers a challenge`() async throws {
        let server = try basicServer()
        let configuration = URLSessionConfiguration.ephemeral
        let space = URLProtectionSpace(
            host: "127.0.0.1", port: server.port, protocol: "http", realm: "test", authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        let url = try server.address("/auth-basic?user=me&password=secret")
        let (_, asked) = try await URLSession(configuration: configuration).data(from: url)
        let field = (asked as? HTTPURLResponse)?.value(forHTTPHeaderField: "WWW-Authenticate") ?? ""
        let realm = field.components(separatedBy: "\"").dropFirst().first ?? ""
        let known = URLProtectionSpace(
            host: space.host, port: space.port, protocol: "http", realm: realm, authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        configuration.urlCredentialStorage?.setDefaultCredential(
            URLCredential(user: "me", password: "secret", persistence: .forSession), for: known)
        let (_, response) = try await URLSession(configuration: configuration).data(from: url)
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
    }
}

/// Trust in servers, which delegates decide about.
@Suite(.timeLimit(.minutes(1)), .enabled(if: TLSAuthority.isAvailable)) struct TrustChallengeTests {
    private let authority: TLSAuthority

    init() async throws {
        authority = try await TLSAuthority.shared()
    }

    // U2.8
    @Test func `a task's method decides about a server where the session's is not implemented, and before a byte is sent`() async throws {
        let server = try await TLSServer(authority, "self")
        let delegate = AnsweringDelegate()
        delegate.answer = { (.useCredential, $0.protectionSpace.serverTrust.map { URLCredential(trust: $0) }) }
        let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        let url = try #require(URL(string: server.url))
        for _ in 0..<2 { _ = try await session.data(from: url) }
        #expect(delegate.challenges.elements.map(\.method) == [NSURLAuthenticationMethodServerTrust])
        #expect(delegate.trusts.elements.first?.sentCertificates == [try authority.certificate("self")])
    }

    // U2.8
    @Test func `the session's method is asked before the task's, and a rejected server gets nothing`() async throws {
        let server = try await TLSServer(authority, "self")
        let url = try #require(URL(string: server.url))
        let accepting = SessionDelegate()
        let session = URLSession(configuration: .ephemeral, delegate: accepting, delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        _ = try await session.data(from: url)
        #expect(accepting.methods.elements == [NSURLAuthenticationMethodServerTrust])
        for disposition in [URLSession.AuthChallengeDisposition.cancelAuthenticationChallenge, .performDefaultHandling] {
            let rejecting = AnsweringDelegate()
            rejecting.answer = { _ in (disposition, nil) }
            let other = URLSession(configuration: .ephemeral, delegate: rejecting, delegateQueue: nil)
            defer { other.invalidateAndCancel() }
            await #expect(throws: URLError.self) { try await other.data(from: url) }
            #expect(rejecting.challenges.count == 1)
        }
    }

    // U2.8: what one delegate accepts, another session or task does not get.
    @Test func `a connection that a delegate has accepted is not shared`() async throws {
        let server = try await TLSServer(authority, "self")
        let url = try #require(URL(string: server.url))
        let accepting = AnsweringDelegate()
        accepting.answer = { (.useCredential, $0.protectionSpace.serverTrust.map { URLCredential(trust: $0) }) }
        let session = URLSession(configuration: .ephemeral)
        defer { session.invalidateAndCancel() }
        _ = try await session.data(from: url, delegate: accepting)
        await #expect(throws: URLError.self) { try await session.data(from: url) }
        let rejecting = AnsweringDelegate()
        rejecting.answer = { _ in (.cancelAuthenticationChallenge, nil) }
        await #expect(throws: URLError.self) { try await session.data(from: url, delegate: rejecting) }
        #expect(rejecting.challenges.count == 1)
        let other = URLSession(configuration: .ephemeral, delegate: nil, delegateQueue: nil)
        await #expect(throws: URLError.self) { try await other.data(from: url) }
    }
}
