// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

/// What a redirect closure returns decides about the body.
@Suite(.timeLimit(.minutes(1))) struct RedirectBodyTests {
    /// What the closure does with the proposed request.
    enum Answer: CaseIterable, Sendable {
        case proposed, otherPath, otherOrigin, plainGet, otherMethod, withoutBytes, ownData, ownStream, nothing

        func request(from proposed: URLRequest) throws -> URLRequest? {
            var request = proposed
            switch self {
            case .proposed: break
            case .otherPath: request.url = try "http://mock/other".asURL()
            case .otherOrigin: request.url = try "http://other/".asURL()
            case .plainGet: request.httpMethod = "GET"
            case .otherMethod: request.httpMethod = "PATCH"
            case .withoutBytes: request.httpBody = nil
            case .ownData:
                request.httpMethod = "POST"
                request.httpBody = Data("own".utf8)
            case .ownStream:
                request.httpMethod = "POST"
                request.url = try "http://other/".asURL()
                request.httpBodyStream = InputStream(data: Data("own".utf8))
            case .nothing: return nil
            }
            return request
        }

        /// Whether the body of an upload follows that the redirect policy keeps.
        func keepsBody(of kind: UploadKind) -> Bool {
            switch self {
            case .proposed, .otherPath: true
            case .otherOrigin, .otherMethod: kind.showsBytes
            // Nothing was to be seen, so nothing was taken away.
            case .withoutBytes: !kind.showsBytes
            case .plainGet, .ownData, .ownStream, .nothing: false
            }
        }
    }

    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func manager(_ mock: MockTransport) -> SessionManager {
        SessionManager(mock: mock) { [directory] in $0.temporaryDirectory = directory.url }
    }

    /// A manager with a redirect closure, whose requests for new streams are counted.
    private func manager(_ mock: MockTransport, _ kind: UploadKind, _ answer: Answer, renewals: Inbox<Void>) -> SessionManager {
        let manager = manager(mock)
        manager.delegate.taskWillPerformHTTPRedirection = { _, _, _, proposed, completion in completion(try? answer.request(from: proposed))
        }
        manager.delegate.taskNeedNewBodyStream = { _, _, completion in
            renewals.put(())
            completion(InputStream(data: kind.body))
        }
        return manager
    }

    private static func redirect(_ status: Int, to url: String = "/next") -> [MockTransport.Step] {
        .response(status, ["Location": url], readsBody: true)
    }

    @Test(
        "the body follows a redirect only as the closure's request says",
        arguments: pairs(UploadKind.allCases, Answer.allCases), pairs([HTTPMethod.post, .put], [301, 302, 303, 307, 308]))
    func followUps(_ upload: (UploadKind, Answer), _ redirect: (HTTPMethod, Int)) async throws {
        let (kind, answer) = upload
        let (method, status) = redirect
        let mock = MockTransport.answering(inTurn: [Self.redirect(status), .response(200, readsBody: true)])
        let renewals = Inbox<Void>()
        let manager = manager(mock, kind, answer, renewals: renewals)
        let response = await (try kind.start(manager, in: directory, method: method)).serializingData().response
        #expect(response.error == nil && response.response?.statusCode == (answer == .nothing ? status : 200))
        #expect(mock.started.count == (answer == .nothing ? 1 : 2))
        #expect(mock.started.all.first?.sentBody == kind.body)

        let policyKeeps = status > 303 || method == .put && status != 303
        let follows = policyKeeps && answer.keepsBody(of: kind)
        // A stream is renewed only for being sent.
        #expect(renewals.count == (follows && kind.isStream ? 1 : 0))
        guard answer != .nothing, let next = mock.started.all.last else { return }
        let isOwn = answer == .ownData || answer == .ownStream
        #expect(next.sentBody == (isOwn ? Data("own".utf8) : follows ? kind.body : Data()))
        #expect((next.request.body != nil) == (isOwn || follows))
        if !isOwn { #expect((next.request.headers["Content-Type"] != nil) == follows) }
    }

    @Test("fields that the closure sets itself stay, also without the body; another body has its own length")
    func fields() async throws {
        for answer in [Answer.plainGet, .ownData] {
            let mock = MockTransport.answering(inTurn: [Self.redirect(307), .response(200)])
            let manager = manager(mock)
            manager.delegate.taskWillPerformHTTPRedirection = { _, _, _, proposed, completion in
                var request = try? answer.request(from: proposed)
                request?.setValue("text/own", forHTTPHeaderField: "Content-Type")
                completion(request)
            }
            let headers: HTTPHeaders = ["Content-Type": "text/secret", "Content-Length": "6", "Content-Language": "rm", "X-Kept": "1"]
            let file = try directory.write(Data("secret".utf8), to: "secret")
            _ = await manager.upload(file, to: "http://mock/", headers: headers).serializingData().response
            let next = try #require(mock.started.all.last).request
            #expect(next.headers["Content-Type"] == "text/own" && next.headers["X-Kept"] == "1")
            #expect(next.headers["Content-Length"] == nil)
            #expect(next.headers["Content-Language"] == (answer == .ownData ? "rm" : nil))
        }
    }

    @Test("a request that the closure returns with one more field, and nothing else changed, goes out with it")
    func onlyAField() async throws {
        let mock = MockTransport.answering(inTurn: [Self.redirect(307), .response(200, readsBody: true)])
        let manager = manager(mock)
        manager.delegate.taskWillPerformHTTPRedirection = { _, _, _, proposed, completion in
            var request = proposed
            request.setValue("1", forHTTPHeaderField: "X-Added")
            completion(request)
        }
        let response = await (try UploadKind.file.start(manager, in: directory)).serializingData().response
        #expect(response.error == nil)
        #expect(mock.started.all.map { $0.request.headers["X-Added"] } == [nil, "1"])
        #expect(mock.started.all.map(\.sentBody) == [UploadKind.file.body, UploadKind.file.body])
    }

    @Test(
        "the session's credentials don't come back to another origin with a changed request",
        arguments: [("http://other/", "http://other/", false), ("/next", "http://other/", false), ("/next", "http://mock/x", true)])
    func sessionCredentials(_ location: String, _ chosen: String, _ areSent: Bool) async throws {
        let mock = MockTransport.answering(inTurn: [Self.redirect(302, to: location), .response(200)])
        let manager = SessionManager(mock: mock) { $0.headers = ["Authorization": "Bearer 1", "X-Own": "1"] }
        manager.delegate.taskWillPerformHTTPRedirection = { _, _, _, _, completion in completion(try? URLRequest(url: chosen, method: .get))
        }
        _ = await manager.request("http://mock/").serializingData().response
        let next = try #require(mock.started.all.last).request
        #expect(next.url == chosen)
        #expect(next.headers["Authorization"] == (areSent ? "Bearer 1" : nil))
        #expect(next.headers["X-Own"] == "1")
    }

    @Test("a retry after a changed redirect begins with the original and its body", arguments: UploadKind.allCases)
    func retries(_ kind: UploadKind) async throws {
        let mock = MockTransport.answering(inTurn: [
            Self.redirect(307), .failure(.connectionLost), Self.redirect(307), .response(200, readsBody: true),
        ])
        let renewals = Inbox<Void>()
        let manager = manager(mock, kind, .plainGet, renewals: renewals)
        manager.retrier = Retrying { request, _, completion in completion(request.retryCount == 0, 0) }
        let response = await (try kind.start(manager, in: directory)).serializingData().response
        #expect(response.error == nil)
        #expect(mock.started.all.map(\.request.method) == [.post, .get, .post, .get])
        #expect(mock.started.all.map(\.sentBody) == [kind.body, Data(), kind.body, Data()])
        #expect(renewals.count == (kind.isStream ? 1 : 0))
    }

    @Test("a stream that can't be sent again fails only the redirects that send it", arguments: Answer.allCases)
    func drainedStream(_ answer: Answer) async throws {
        let mock = MockTransport.answering(inTurn: [Self.redirect(308), .response(200, readsBody: true)])
        let manager = manager(mock)
        manager.delegate.taskWillPerformHTTPRedirection = { _, _, _, proposed, completion in completion(try? answer.request(from: proposed))
        }
        let response = await (try UploadKind.stream.start(manager, in: directory)).serializingData().response
        guard answer.keepsBody(of: .stream) else {
            #expect(response.error == nil && response.response?.statusCode == (answer == .nothing ? 308 : 200))
            return
        }
        guard case CurlewError.redirectFailed(reason: .bodyNotRepeatable, _)? = response.error else {
            Issue.record("\(String(describing: response.error))")
            return
        }
        #expect(mock.started.count == 1)
    }

    @Test("a challenge repeats what the closure sent, not the upload", arguments: UploadKind.allCases, [Answer.plainGet, .ownData])
    func challenges(_ kind: UploadKind, _ answer: Answer) async throws {
        let challenge: [MockTransport.Step] = .response(401, ["WWW-Authenticate": "Basic realm=\"x\""], readsBody: true)
        let mock = MockTransport.answering(inTurn: [Self.redirect(307), challenge, .response(200, readsBody: true)])
        let renewals = Inbox<Void>()
        let manager = manager(mock, kind, answer, renewals: renewals)
        // A form is encoded on another thread: a request that is under way already could get the challenge before its credential.
        manager.startRequestsImmediately = false
        let request = try await kind.start(manager, in: directory).authenticate(user: "user", password: "password")
        request.resume()
        #expect(await request.serializingData().response.response?.statusCode == 200)
        let own = answer == .ownData ? Data("own".utf8) : Data()
        #expect(mock.started.all.map(\.sentBody) == [kind.body, own, own])
        #expect(renewals.count == 0)
    }

    @Test("the upload's stream never takes the place of a stream that the closure gave", arguments: [307, 401])
    func ownStreamIsNotRenewed(_ status: Int) async throws {
        let second: [MockTransport.Step] = .response(
            status, ["Location": "/again", "WWW-Authenticate": "Basic realm=\"x\""], readsBody: true)
        let mock = MockTransport.answering(inTurn: [Self.redirect(307), second, .response(200, readsBody: true)])
        let renewals = Inbox<Void>()
        let manager = manager(mock, .stream, .proposed, renewals: renewals)
        manager.delegate.taskWillPerformHTTPRedirection = { _, _, _, proposed, completion in
            completion(proposed.url?.path == "/next" ? try? Answer.ownStream.request(from: proposed) : proposed)
        }
        manager.delegate.taskDidReceiveChallenge = { _, _, _, completion in
            completion(.useCredential, URLCredential(user: "user", password: "password", persistence: .none))
        }
        let response = await (try UploadKind.stream.start(manager, in: directory)).serializingData().response
        #expect(mock.started.all.map(\.sentBody) == [Data("secret".utf8), Data("own".utf8)])
        #expect(renewals.count == 0)
        if status == 401 {
            #expect(response.error == nil && response.response?.statusCode == 401)
        } else if case CurlewError.redirectFailed(reason: .bodyNotRepeatable, _)? = response.error {
            #expect(mock.started.count == 2)
        } else {
            Issue.record("\(String(describing: response.error))")
        }
    }

    @Test("a request is cancelled while the closure for streams thinks")
    func cancelledWhileRenewed() async {
        let mock = MockTransport.answering(inTurn: [Self.redirect(307), .response(200)])
        let manager = manager(mock)
        manager.delegate.taskWillPerformHTTPRedirection = { _, _, _, proposed, completion in completion(proposed) }
        let asked = Inbox<@Sendable (InputStream?) -> Void>()
        defer { asked.empty() }
        manager.delegate.taskNeedNewBodyStream = { _, _, completion in asked.put(completion) }
        let request = manager.upload(InputStream(data: Data("secret".utf8)), to: "http://mock/")
        async let response = request.serializingData().response
        let completion = await asked.first(1)[0]
        request.cancel()
        #expect(isCancelled(await response.error))
        completion(InputStream(data: Data("secret".utf8)))
        manager.settle()
        #expect(mock.started.count == 1)
    }
}
