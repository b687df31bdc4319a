// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

/// The body of the request that an adapter returns is the one that is sent.
@Suite(.timeLimit(.minutes(1))) struct AdaptedBodyTests {
    /// What the adapter does with the request.
    enum Change: CaseIterable, Sendable {
        case nothing, header, bytes, emptyBytes, stream, removal

        func adapt(_ urlRequest: URLRequest) -> URLRequest {
            var request = urlRequest
            switch self {
            case .nothing: break
            case .header: request.setValue("1", forHTTPHeaderField: "X-Adapted")
            case .bytes: request.httpBody = Data("sealed".utf8)
            case .emptyBytes: request.httpBody = Data()
            case .stream: request.httpBodyStream = InputStream(data: Data("sealed".utf8))
            case .removal: request.httpBody = nil
            }
            return request
        }

        /// What is sent of a request; `nil` for no body.
        func body(of kind: UploadKind) -> Data? {
            switch self {
            case .nothing, .header: kind.body
            case .bytes, .stream: Data("sealed".utf8)
            case .emptyBytes: Data()
            // A body that can't be seen can't be taken away.
            case .removal: kind.showsBytes || kind == .requestWithStream ? nil : kind.body
            }
        }
    }

    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func manager(_ mock: MockTransport, _ change: Change) -> SessionManager {
        let manager = SessionManager(mock: mock) { [directory] in $0.temporaryDirectory = directory.url }
        manager.adapter = Adapting { change.adapt($0) }
        return manager
    }

    private static let redirect: [MockTransport.Step] = .response(307, ["Location": "/next"], readsBody: true)

    @Test("the body that an adapter returns is sent, by every kind of request", arguments: UploadKind.allCases, Change.allCases)
    func bodies(_ kind: UploadKind, _ change: Change) async throws {
        let mock = MockTransport { _ in .response(200, readsBody: true) }
        let manager = manager(mock, change)
        let response = await (try kind.start(manager, in: directory)).serializingData().response
        #expect(response.error == nil)
        let exchange = try #require(mock.started.all.last)
        #expect(exchange.sentBody == change.body(of: kind) ?? Data())
        #expect((exchange.request.body != nil) == (change.body(of: kind) != nil))
        #expect((exchange.request.headers["X-Adapted"] != nil) == (change == .header))
    }

    @Test("an adapter sees the bytes of an upload, and nothing of a file or a stream", arguments: UploadKind.allCases)
    func shownBodies(_ kind: UploadKind) async throws {
        let shown = Inbox<(Data?, Bool)>()
        let manager = manager(.answering(), .nothing)
        manager.adapter = Adapting { request in
            shown.put((request.httpBody, request.httpBodyStream != nil))
            return request
        }
        _ = await (try kind.start(manager, in: directory)).serializingData().response
        #expect(shown.all.map(\.0) == [kind.showsBytes ? kind.body : nil])
        #expect(shown.all.map(\.1) == [kind == .requestWithStream])
    }

    @Test("a body of the request beside an upload's is neither shown nor sent", arguments: [UploadKind.data, .file, .stream])
    func bodyBesideUpload(_ kind: UploadKind) async throws {
        let mock = MockTransport { _ in .response(200, readsBody: true) }
        let shown = Inbox<Data?>()
        let manager = manager(mock, .nothing)
        manager.adapter = Adapting { request in
            shown.put(request.httpBody)
            return request
        }
        var request = try URLRequest(url: "http://mock/", method: .post)
        request.httpBody = Data("beside".utf8)
        let upload =
            switch kind {
            case .data: manager.upload(kind.body, with: request)
            case .file: manager.upload(try directory.write(kind.body, to: "file"), with: request)
            default: manager.upload(InputStream(data: kind.body), with: request)
            }
        _ = await upload.serializingData().response
        #expect(shown.all == [kind == .data ? kind.body : nil])
        #expect(mock.started.all.map(\.sentBody) == [kind.body])
    }

    @Test("each attempt sends what the adapter returned for it", arguments: UploadKind.allCases, [Change.bytes, .stream])
    func retries(_ kind: UploadKind, _ change: Change) async throws {
        let mock = MockTransport.answering(inTurn: [.failure(.connectionLost, readsBody: true), .response(200, readsBody: true)])
        let manager = manager(mock, change)
        let count = Inbox<Void>()
        manager.adapter = Adapting { request in
            count.put(())
            var request = request
            let bytes = Data("sealed \(count.count)".utf8)
            if change == .bytes { request.httpBody = bytes } else { request.httpBodyStream = InputStream(data: bytes) }
            return request
        }
        manager.retrier = Retrying { request, _, completion in completion(request.retryCount == 0, 0) }
        let response = await (try kind.start(manager, in: directory)).serializingData().response
        #expect(response.error == nil)
        #expect(mock.started.all.map(\.sentBody) == [Data("sealed 1".utf8), Data("sealed 2".utf8)])
    }

    @Test("a redirect that keeps the body sends the adapted one again, or fails if that is a stream", arguments: UploadKind.allCases)
    func redirects(_ kind: UploadKind) async throws {
        for change in [Change.bytes, .stream] {
            let mock = MockTransport.answering(inTurn: [Self.redirect, .response(200, readsBody: true)])
            let manager = manager(mock, change)
            let renewals = Inbox<Void>()
            // The upload's bytes are not those that the adapter has sent.
            manager.delegate.taskNeedNewBodyStream = { _, _, completion in
                renewals.put(())
                completion(InputStream(data: kind.body))
            }
            let response = await (try kind.start(manager, in: directory)).serializingData().response
            let sealed = Data("sealed".utf8)
            #expect(mock.started.all.map(\.sentBody) == (change == .bytes ? [sealed, sealed] : [sealed]))
            #expect(renewals.count == 0)
            guard change == .stream else { continue }
            guard case CurlewError.redirectFailed(reason: .bodyNotRepeatable, _)? = response.error else {
                Issue.record("\(String(describing: response.error))")
                continue
            }
        }
    }

    @Test("a redirect that drops the body drops the adapted one", arguments: [Change.bytes, .stream])
    func droppingRedirects(_ change: Change) async throws {
        let mock = MockTransport.answering(inTurn: [
            .response(303, ["Location": "/next"], readsBody: true), .response(200, readsBody: true),
        ])
        let manager = manager(mock, change)
        let response = await (try UploadKind.data.start(manager, in: directory)).serializingData().response
        #expect(response.error == nil)
        #expect(mock.started.all.map(\.sentBody) == [Data("sealed".utf8), Data()])
    }

    @Test("a body that HEAD forbids may be taken away by the adapter", arguments: [Change.nothing, .removal])
    func head(_ change: Change) async throws {
        let mock = MockTransport { _ in .response(200, readsBody: true) }
        let manager = manager(mock, change)
        let response = await (try UploadKind.data.start(manager, in: directory, method: .head)).serializingData().response
        #expect((response.error == nil) == (change == .removal))
        #expect(mock.started.count == (change == .removal ? 1 : 0))
    }

    @Test("several adapters change the body in turn; one that sets fields only leaves it", arguments: UploadKind.allCases)
    func severalAdapters(_ kind: UploadKind) async throws {
        struct Token: HeaderAdapter {
            func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) { headers["Token"] = "1" }
        }
        for adapters in [[Token()], [Token(), Adapting { Change.stream.adapt($0) }, Token()]] as [[any RequestAdapter]] {
            let mock = MockTransport { _ in .response(200, readsBody: true) }
            let manager = manager(mock, .nothing)
            manager.adapter = Interceptor(adapters: adapters)
            _ = await (try kind.start(manager, in: directory)).serializingData().response
            #expect(mock.started.all.map(\.sentBody) == [adapters.count == 1 ? kind.body : Data("sealed".utf8)])
            #expect(mock.started.all.map { $0.request.headers["Token"] } == ["1"])
        }
    }
}
