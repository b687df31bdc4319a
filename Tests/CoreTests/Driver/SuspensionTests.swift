// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Dispatch
import Testing

@testable import CurlewCore

/// What is suspended stays so, also while there is no task to be suspended.
@Suite(.timeLimit(.minutes(1))) struct SuspensionTests {
    enum Kind: CaseIterable, Sendable {
        case data, upload, download, stream

        func start(_ manager: SessionManager) -> Request {
            switch self {
            case .data: manager.request("http://mock/").responseData { _ in }
            case .upload: manager.upload(Data("body".utf8), to: "http://mock/").responseData { _ in }
            case .download: manager.download("http://mock/").responseData { _ in }
            case .stream: manager.streamRequest("http://mock/").responseData { _ in }
            }
        }
    }

    @Test(
        "a request that is suspended while a retry is due starts when it is resumed, and not before",
        arguments: Kind.allCases, [true, false])
    func retry(_ kind: Kind, isResumedBefore: Bool) async {
        let mock = MockTransport.answering(inTurn: [.failure(), .response(200, [:], "answer")])
        let manager = SessionManager(mock: mock)
        let asked = Inbox<RequestRetryCompletion>()
        manager.retrier = Retrying { _, _, completion in asked.put(completion) }
        let request = kind.start(manager)
        let retry = await asked[0]
        request.suspend()
        if isResumedBefore { request.resume() }
        retry(true, 0)
        #expect(await eventually { request.retryCount == 1 })
        manager.settle()
        #expect(mock.started.count == (isResumedBefore ? 2 : 1))
        request.resume()
        await request.waitForEnd()
        #expect(request.delegate.ownError == nil)
        #expect(mock.started.count == 2)
        if let download = request as? DownloadRequest, let url = download.receiver.temporaryURL { unlink(url.path) }
    }

    private struct Token: AuthenticationCredential {
        let requiresRefresh: Bool
    }

    private final class Tokens: Authenticator {
        let refreshes = Inbox<@Sendable (Result<Token, any Error>) -> Void>()
        func apply(_ credential: Token, to urlRequest: inout URLRequest) {}
        func refresh(_ credential: Token, for manager: SessionManager, completion: @escaping @Sendable (Result<Token, any Error>) -> Void) {
            refreshes.put(completion)
        }
        func didRequest(_ urlRequest: URLRequest, with response: HTTPURLResponse, failDueToAuthenticationError error: any Error) -> Bool {
            false
        }
        func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: Token) -> Bool { true }
    }

    @Test(
        "a request that is suspended while its credential is refreshed starts when it is resumed",
        arguments: Kind.allCases, [true, false])
    func refresh(_ kind: Kind, isCancelled: Bool) async {
        let mock = MockTransport.answering(200, [:], "answer")
        let manager = SessionManager(mock: mock)
        let tokens = Tokens()
        defer { tokens.refreshes.empty() }
        manager.adapter = AuthenticationInterceptor(authenticator: tokens, credential: Token(requiresRefresh: true))
        let request = kind.start(manager)
        let refreshed = await tokens.refreshes[0]
        request.suspend()
        refreshed(.success(Token(requiresRefresh: false)))
        #expect(await eventually { request.task != nil })
        manager.settle()
        #expect(mock.started.count == 0)
        if isCancelled { request.cancel() } else { request.resume() }
        await request.waitForEnd()
        #expect((request.delegate.ownError == nil) == !isCancelled)
        #expect(mock.started.count == (isCancelled ? 0 : 1))
        if let download = request as? DownloadRequest, let url = download.receiver.temporaryURL { unlink(url.path) }
    }
}
