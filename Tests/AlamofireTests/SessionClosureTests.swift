// SPDX-License-Identifier: Apache-2.0
import CurlewAlamofire
import CurlewTestSupport
import Foundation
import Testing

/// The closures of a session's delegate that Alamofire has twice: with a result, and with a completion.
@Suite(.timeLimit(.minutes(1))) struct SessionClosureTests {
    private let server: LoopbackServer
    private let manager = SessionManager()

    init() throws {
        server = try LoopbackServer.standard()
    }

    private var delegate: SessionDelegate { manager.delegate }

    @Test("reading returns what was set by the same name") func readingBack() {
        #expect(delegate.taskWillPerformHTTPRedirection == nil && delegate.taskWillPerformHTTPRedirectionWithCompletion == nil)
        delegate.taskWillPerformHTTPRedirection = { _, _, _, request in request }
        #expect(delegate.taskWillPerformHTTPRedirection != nil && delegate.taskWillPerformHTTPRedirectionWithCompletion == nil)
        delegate.taskWillPerformHTTPRedirectionWithCompletion = { _, _, _, request, completion in completion(request) }
        delegate.taskWillPerformHTTPRedirection = nil
        #expect(delegate.taskWillPerformHTTPRedirection == nil && delegate.taskWillPerformHTTPRedirectionWithCompletion != nil)
        delegate.taskNeedNewBodyStream = { _, _ in InputStream(data: Data([7])) }
        let task = manager.request(server.url("/json")).task
        let stream = task.flatMap { delegate.taskNeedNewBodyStream?(manager.session, $0) }
        #expect(stream != nil)
        delegate.sessionDidReceiveChallengeWithCompletion = { _, _, completion in completion(.performDefaultHandling, nil) }
        delegate.dataTaskWillCacheResponse = { _, _, response in response }
        #expect(delegate.sessionDidReceiveChallenge == nil && delegate.sessionDidReceiveChallengeWithCompletion != nil)
        #expect(delegate.dataTaskWillCacheResponse != nil && delegate.dataTaskWillCacheResponseWithCompletion == nil)
    }

    @Test("of two closures the one with a completion is called, until it is removed") func both() async {
        delegate.taskWillPerformHTTPRedirectionWithCompletion = { _, _, _, _, completion in completion(nil) }
        delegate.taskWillPerformHTTPRedirection = { _, _, _, request in request }
        let url = server.url("/redirect-to?url=/json&status=302")
        #expect(await manager.request(url).plainResponse().response?.statusCode == 302)
        delegate.taskWillPerformHTTPRedirectionWithCompletion = nil
        #expect(await manager.request(url).plainResponse().response?.statusCode == 200)
        delegate.taskWillPerformHTTPRedirection = { _, _, _, _ in nil }
        #expect(await manager.request(url).plainResponse().response?.statusCode == 302)
        delegate.taskWillPerformHTTPRedirection = nil
        #expect(await manager.request(url).plainResponse().response?.statusCode == 200)
    }

    @Test("credentials for a challenge", arguments: [false, true]) func challenges(withCompletion: Bool) async {
        let credential = URLCredential(user: "user", password: "password", persistence: .none)
        if withCompletion {
            delegate.taskDidReceiveChallengeWithCompletion = { _, _, challenge, completion in
                DispatchQueue.global().async {
                    completion(challenge.previousFailureCount == 0 ? .useCredential : .rejectProtectionSpace, credential)
                }
            }
        } else {
            delegate.taskDidReceiveChallenge = { _, _, challenge in
                (challenge.previousFailureCount == 0 ? .useCredential : .rejectProtectionSpace, credential)
            }
        }
        let response = await manager.request(server.url("/auth-basic?user=user&password=password")).plainResponse()
        #expect(response.response?.statusCode == 200)
    }

    @Test("whether a body is received", arguments: [false, true]) func dispositions(withCompletion: Bool) async {
        if withCompletion {
            delegate.dataTaskDidReceiveResponseWithCompletion = { _, _, _, completion in completion(.cancel) }
        } else {
            delegate.dataTaskDidReceiveResponse = { _, _, _ in .cancel }
        }
        #expect((await manager.request(server.url("/json")).plainResponse().error as? URLError)?.code == .cancelled)
    }

    @Test("what is stored in the cache", arguments: [false, true]) func caching(withCompletion: Bool) async throws {
        let configuration = URLSessionConfiguration.default
        configuration.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        let manager = SessionManager(configuration: configuration)
        let changed = { @Sendable (proposed: CachedURLResponse) in
            CachedURLResponse(response: proposed.response, data: Data("changed".utf8), storagePolicy: .allowed)
        }
        if withCompletion {
            manager.delegate.dataTaskWillCacheResponseWithCompletion = { _, _, proposed, completion in completion(changed(proposed)) }
        } else {
            manager.delegate.dataTaskWillCacheResponse = { _, _, proposed in changed(proposed) }
        }
        let url = server.url("/headers?Cache-Control=max-age%3D60")
        #expect(await manager.request(url).plainResponse().data != Data("changed".utf8))
        #expect(await manager.request(url).plainResponse().data == Data("changed".utf8))
        #expect(server.requestCount == 1)
    }

    @Test("a new stream for a redirect", arguments: [false, true]) func bodyStreams(withCompletion: Bool) async throws {
        let body = Data("stream".utf8)
        if withCompletion {
            delegate.taskNeedNewBodyStreamWithCompletion = { _, _, completion in completion(InputStream(data: body)) }
        } else {
            delegate.taskNeedNewBodyStream = { _, _ in InputStream(data: body) }
        }
        let request = manager.upload(InputStream(data: body), to: server.url("/redirect-to?url=/echo&status=307"))
        #expect(try await request.echoed().body == body)
    }
}
