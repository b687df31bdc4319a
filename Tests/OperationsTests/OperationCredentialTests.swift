// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewOperations
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct OperationCredentialTests {
    private let server: LoopbackServer
    private let credential = URLCredential(user: "curlew", password: "secret", persistence: .none)

    init() throws {
        server = try LoopbackServer { request, _ in
            let isRight = request.header("Authorization") == "Basic \(Data("curlew:secret".utf8).base64EncodedString())"
            return isRight ? .ok("in") : .status(401, headers: [ServerField("WWW-Authenticate", "Basic realm=\"x\"")])
        }
    }

    private func operation(session: OperationSession? = nil, user: String = "") throws -> URLConnectionOperation {
        try URLConnectionOperation.make("http://\(user)127.0.0.1:\(server.port)/", session: session)
    }

    @Test("a credential answers a challenge; without one the 401 is the response")
    func credentialAnswers() async throws {
        let operation = try operation()
        operation.credential = credential
        #expect(try await operation.run() == Data("in".utf8))
        let without = try self.operation()
        try await without.run()
        #expect(without.response?.statusCode == 401)
    }

    @Test("a wrong credential is sent once")
    func wrongCredential() async throws {
        let operation = try operation()
        operation.credential = URLCredential(user: "curlew", password: "wrong", persistence: .none)
        try await operation.run()
        #expect(operation.response?.statusCode == 401 && server.requestCount == 2)
    }

    @Test("the URL's user and password take precedence over the credential")
    func credentialOfTheURL() async throws {
        let operation = try operation(user: "curlew:secret@")
        operation.credential = URLCredential(user: "curlew", password: "wrong", persistence: .none)
        #expect(try await operation.run() == Data("in".utf8))
    }

    @Test("the credential storage is used unless the operation disables it", arguments: [true, false])
    func storage(isUsed: Bool) async throws {
        let storage = URLCredentialStorage()
        let space = URLProtectionSpace(
            host: "127.0.0.1", port: server.port, protocol: NSURLProtectionSpaceHTTP, realm: "x",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        storage.setDefaultCredential(URLCredential(user: "curlew", password: "secret", persistence: .forSession), for: space)
        let operation = try operation(session: makeSession { $0.credentialStorage = storage })
        operation.shouldUseCredentialStorage = isUsed
        try await operation.run()
        #expect(operation.response?.statusCode == (isUsed ? 200 : 401))
    }

    enum Disposition: CaseIterable {
        case use, later, performDefault, continueWithout, reject, cancel
    }

    @Test("a challenge closure replaces the credential", arguments: Disposition.allCases)
    func challengeBlock(_ disposition: Disposition) async throws {
        let operation = try operation()
        operation.credential = disposition == .performDefault ? credential : URLCredential(user: "x", password: "x", persistence: .none)
        operation.setWillSendRequestForAuthenticationChallengeBlock { [credential] _, challenge in
            switch disposition {
            case .use: challenge.use(credential)
            case .later: callbackQueue.async { challenge.use(credential) }
            case .performDefault: challenge.performDefaultHandling()
            case .continueWithout: challenge.continueWithoutCredential()
            case .reject: challenge.rejectProtectionSpace()
            case .cancel: challenge.cancel()
            }
            if disposition != .later { challenge.cancel() }
        }
        await operation.runToEnd()
        switch disposition {
        case .use, .later, .performDefault: #expect(operation.responseData == Data("in".utf8))
        case .continueWithout, .reject: #expect(operation.response?.statusCode == 401 && operation.error == nil)
        case .cancel: #expect(operation.urlErrorCode == .userCancelledAuthentication)
        }
    }

    @Test("a challenge that is cancelled together with a pause does not fail the operation once it is resumed")
    func cancelledWithAPause() async throws {
        let operation = try operation()
        let challenges = Log<Int>()
        operation.setWillSendRequestForAuthenticationChallengeBlock { [credential] operation, challenge in
            challenges.append(challenge.previousFailureCount)
            guard challenges.count == 1 else { return challenge.use(credential) }
            operation.pause()
            challenge.cancel()
        }
        operation.start()
        await operation.reach(.paused)
        operation.resume()
        #expect(try await operation.value == Data("in".utf8))
        #expect(challenges.elements == [0, 0])
    }
}
