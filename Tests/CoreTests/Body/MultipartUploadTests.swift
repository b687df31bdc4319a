// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Dispatch
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct MultipartUploadTests {
    typealias Encoding = SessionManager.MultipartFormDataEncodingResult

    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func manager(_ mock: MockTransport) -> SessionManager {
        SessionManager(mock: mock) { [directory] in $0.temporaryDirectory = directory.url }
    }

    private static let fill: @Sendable (MultipartFormData) -> Void = { form in
        form.boundary = "B"
        form.append(Data("value".utf8), withName: "name")
    }

    private static var body: Data { Data("--B\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nvalue\r\n--B--\r\n".utf8) }

    /// The upload of the form, from the disk unless the threshold says otherwise.
    private func encode(
        _ manager: SessionManager, threshold: UInt64 = 0, to url: String = "http://mock/",
        _ fill: @escaping @Sendable (MultipartFormData) -> Void = MultipartUploadTests.fill
    ) async -> Encoding {
        let results = Inbox<Encoding>()
        manager.upload(multipartFormData: fill, usingThreshold: threshold, to: url) { results.put($0) }
        return await results[0]
    }

    private func upload(_ manager: SessionManager, threshold: UInt64 = 0) async throws -> UploadRequest {
        try #require(await encode(manager, threshold: threshold).request)
    }

    private var files: [String] { (try? FileManager.default.contentsOfDirectory(atPath: directory.url.path)) ?? ["?"] }

    // MARK: Where the body is

    @Test("a form below the threshold is sent from memory, a larger one from disk", arguments: [(6, false), (5, true), (0, true)])
    func threshold(_ threshold: UInt64, _ isFromDisk: Bool) async throws {
        let mock = MockTransport()
        let manager = manager(mock)
        guard case .success(let request, let streamingFromDisk, let url) = await encode(manager, threshold: threshold) else {
            Issue.record("not encoded")
            return
        }
        #expect(streamingFromDisk == isFromDisk)
        #expect((url != nil) == isFromDisk)
        let exchange = await mock.started[0]
        #expect(exchange.request.method == .post)
        #expect(exchange.request.headers["Content-Type"] == "multipart/form-data; boundary=B")
        #expect(exchange.request.body?.length == Int64(Self.body.count))
        #expect(exchange.request.body is FileBody == isFromDisk)
        if let url {
            #expect(try Data(contentsOf: url) == Self.body)
            let attributes = try FileManager.default.attributesOfItem(atPath: url.path)
            #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
            #expect(url.deletingLastPathComponent().path == directory.url.path)
        }
        exchange.add(.response(200, readsBody: true))
        exchange.pumpLater()
        #expect(await request.serializingData().response.error == nil)
        #expect(exchange.sentBody == Self.body)
        #expect(files.isEmpty)
    }

    @Test("the default threshold is ten million bytes")
    func defaultThreshold() async {
        #expect(SessionManager.multipartFormDataEncodingMemoryThreshold == 10_000_000)
        let manager = manager(.answering())
        for (count, isFromDisk) in [(9_999_999, false), (10_000_000, true)] {
            let results = Inbox<Encoding>()
            manager.upload(multipartFormData: { $0.append(Data(count: count), withName: "a") }, to: "http://mock/") { results.put($0) }
            guard case .success(_, isFromDisk, _) = await results[0] else {
                Issue.record("\(count)")
                return
            }
        }
    }

    @Test("the form is filled off the caller's thread, and the completion runs on the given or the session's queue")
    func queues() async {
        let manager = manager(.answering())
        let key = DispatchSpecificKey<String>()
        let own = DispatchQueue(label: "own")
        own.setSpecific(key: key, value: "own")
        manager.session.configuration.callbackQueue.setSpecific(key: key, value: "session")
        let places = Inbox<String?>()
        for (count, queue) in [(2, own), (4, nil)] {
            // Filled by the caller, the form would wait for what comes after it.
            let returned = DispatchSemaphore(value: 0)
            manager.upload(
                multipartFormData: { _ in places.put(returned.wait(timeout: .now() + 5) == .success ? "elsewhere" : "caller") },
                to: "http://mock/", queue: queue
            ) { _ in places.put(DispatchQueue.getSpecific(key: key)) }
            returned.signal()
            _ = await places.first(count)
        }
        #expect(places.all == ["elsewhere", "own", "elsewhere", "session"])
    }

    @Test("a URLRequest gets the form's content type, and headers keep their order")
    func requests() async throws {
        let mock = MockTransport.answering()
        let manager = manager(mock)
        var urlRequest = URLRequest(url: try "http://mock/path".asURL())
        urlRequest.httpMethod = "PUT"
        urlRequest.setValue("text/plain", forHTTPHeaderField: "Content-Type")
        manager.upload(multipartFormData: Self.fill, with: urlRequest, encodingCompletion: nil)
        let first = await mock.started[0].request
        #expect(first.method == .put)
        #expect(first.url == "http://mock/path")
        #expect(first.headers["Content-Type"] == "multipart/form-data; boundary=B")
        manager.upload(
            multipartFormData: Self.fill, to: "http://mock/", method: .patch,
            headers: ["X-Two": "2", "content-type": "text/plain", "X-One": "1"], encodingCompletion: nil)
        let second = await mock.started[1].request
        #expect(second.method == .patch)
        #expect(second.headers.map(\.name) == ["X-Two", "Content-Type", "X-One"])
        #expect(second.headers["Content-Type"] == "multipart/form-data; boundary=B")
    }

    // MARK: What goes wrong

    @Test("an encoding error leaves no request and no file", arguments: [0, 1_000_000] as [UInt64])
    func encodingFailure(_ threshold: UInt64) async {
        let mock = MockTransport()
        let manager = manager(mock)
        let forms: [@Sendable (MultipartFormData) -> Void] = [
            { $0.append(URL(fileURLWithPath: "/does/not/exist.txt"), withName: "a") },
            { $0.append(InputStream(data: Data(count: 9)), withLength: 10, headers: [:]) },
            { $0.append(InputStream(data: Data(count: 11)), withLength: 10, headers: [:]) },
            { $0.append(InputStream(data: Data()), withLength: 0, headers: ["X": "\r\n"]) },
        ]
        for form in forms {
            let result = await encode(manager, threshold: threshold, form)
            guard case .failure(CurlewError.multipartEncodingFailed) = result else {
                Issue.record("\(result)")
                continue
            }
        }
        #expect(mock.started.count == 0)
        #expect(files.isEmpty)
    }

    @Test("an invalid request gives its error and leaves no file")
    func requestFailure() async throws {
        let manager = manager(.answering())
        guard case .failure(CurlewError.invalidURL) = await encode(manager, to: "no url") else {
            Issue.record("it was made")
            return
        }
        var urlRequest = URLRequest(url: try "http://mock/".asURL())
        urlRequest.url = nil
        let results = Inbox<Encoding>()
        manager.upload(multipartFormData: Self.fill, usingThreshold: 0, with: urlRequest) { results.put($0) }
        guard case .failure(CurlewError.urlRequestValidationFailed(.missingURL, _)) = await results[0] else {
            Issue.record("it was made")
            return
        }
        #expect(await eventually { files.isEmpty })
    }

    @Test("a missing directory or a full disk is an error")
    func missingDirectory() async {
        let missing = directory.file("missing")
        let manager = SessionManager(mock: .answering()) { $0.temporaryDirectory = missing }
        guard case .failure(CurlewError.multipartEncodingFailed(.outputStreamCreationFailed, _)) = await encode(manager) else {
            Issue.record("it was written")
            return
        }
    }

    @Test("an invalidated session encodes no form")
    func endedSession() async {
        let manager = manager(.answering())
        manager.invalidateAndCancel()
        let result = await encode(manager) { _ in Issue.record("it was filled") }
        guard case .failure(CurlewError.sessionInvalidated) = result else {
            Issue.record("\(result)")
            return
        }
    }

    @Test("encoding a form does not retain the manager")
    func managerGoneWhileEncoding() async {
        let gate = Gate()
        let results = Inbox<Encoding>()
        var manager: SessionManager? = manager(.answering())
        manager?.upload(multipartFormData: { $0.append(Data(), withName: gate.wait() ? "a" : "b") }, usingThreshold: 0, to: "http://mock/")
        {
            results.put($0)
        }
        #expect(await gate.arrivals())
        manager = nil
        gate.open()
        guard case .failure(CurlewError.sessionInvalidated) = await results[0] else {
            Issue.record("it was kept")
            return
        }
        #expect(files.isEmpty)
    }

    // MARK: The file's end

    enum Ending: String, CaseIterable {
        case success, failure, validation, cancellation, invalidation, managerGone, neverResumed, neverResumedCancelled, invalidHeader,
            adapter
        case retriesUsedUp, cancelledWhileRetrying, endedWhileRetrying, neverAnsweringRetrier, noHandler
    }

    @Test("the file is removed before the handlers run, however the request ends", arguments: Ending.allCases)
    func fileGone(_ ending: Ending) async throws {
        let mock = MockTransport()
        var manager: SessionManager? = manager(mock)
        let held = Inbox<RequestRetryCompletion>()
        prepare(manager, for: ending, held)
        let wasThere = ending == .invalidHeader
        let result = await manager.mapAsync { manager in
            if wasThere { return await self.encodeWithInvalidHeader(manager) }
            return await self.encode(manager)
        }
        let request = try #require(result?.request)
        if ![.adapter, .invalidHeader].contains(ending) { #expect(files.count == 1) }
        let seen = Inbox<[String]>()
        if ending != .noHandler {
            let directory = directory.url
            if ending == .validation { request.validate(statusCode: [200]) }
            request.response { _ in
                seen.put((try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? ["?"])
            }
        }
        if ending == .managerGone || ending == .neverResumed { manager = nil }
        try await bringAbout(ending, mock, request, manager, held)
        if ending != .noHandler { #expect(await seen[0].isEmpty) }
        #expect(await eventually { files.isEmpty })
        withExtendedLifetime(manager) {}
    }

    private func prepare(_ manager: SessionManager?, for ending: Ending, _ held: Inbox<RequestRetryCompletion>) {
        manager?.startRequestsImmediately = ![.neverResumed, .neverResumedCancelled].contains(ending)
        switch ending {
        case .adapter: manager?.adapter = Adapting { _ in throw UserError() }
        case .retriesUsedUp: manager?.retrier = Retrying { request, _, completion in completion(request.retryCount < 2, 0) }
        case .cancelledWhileRetrying, .endedWhileRetrying, .neverAnsweringRetrier:
            manager?.retrier = Retrying { _, _, completion in held.put(completion) }
        default: break
        }
    }

    private func encodeWithInvalidHeader(_ manager: SessionManager) async -> Encoding {
        let results = Inbox<Encoding>()
        manager.upload(
            multipartFormData: Self.fill, usingThreshold: 0, to: "http://mock/", headers: ["X": "\n"]
        ) { results.put($0) }
        return await results[0]
    }

    private func bringAbout(
        _ ending: Ending, _ mock: MockTransport, _ request: UploadRequest, _ manager: SessionManager?, _ held: Inbox<RequestRetryCompletion>
    ) async throws {
        switch ending {
        case .success, .noHandler: await mock.started[0].respond(200)
        case .failure: await mock.started[0].perform(.complete(CurlewError.failure(.connect)))
        case .validation: await mock.started[0].respond(500)
        case .cancellation: request.cancel()
        case .neverResumedCancelled: request.cancel()
        case .invalidation: manager?.invalidateAndCancel()
        case .managerGone, .neverResumed, .adapter, .invalidHeader: break
        case .retriesUsedUp:
            for attempt in 0..<3 {
                let exchange = await mock.started[attempt]
                #expect(files.count == 1, "attempt \(attempt)")
                exchange.add(.failure(readsBody: true))
                exchange.pumpLater()
                #expect(await eventually { exchange.isOver })
                #expect(exchange.sentBody == Self.body)
            }
        case .cancelledWhileRetrying, .endedWhileRetrying, .neverAnsweringRetrier:
            await mock.started[0].perform(.complete(CurlewError.failure(.connect)))
            _ = await held[0]
            #expect(files.count == 1)
            if ending == .cancelledWhileRetrying { request.cancel() } else { manager?.invalidateAndCancel() }
        }
    }

    @Test("a retry sends the same bytes, including those of streams, from memory and from disk", arguments: [0, 1_000_000] as [UInt64])
    func retry(_ threshold: UInt64) async throws {
        let mock = MockTransport.answering(inTurn: [
            .failure(readsBody: true), .response(500, readsBody: true), .response(200, readsBody: true),
        ])
        let manager = manager(mock)
        // The form is encoded on another thread: a request that is under way already could end without its validation.
        manager.startRequestsImmediately = false
        manager.retrier = Retrying { _, _, completion in completion(true, 0) }
        let result = await encode(manager, threshold: threshold) { form in
            form.append(InputStream(data: Data("stream".utf8)), withLength: 6, name: "a", fileName: "a", mimeType: "a/b")
        }
        let request = try #require(result.request).validate()
        request.resume()
        let response = await request.serializingData().response
        #expect(response.error == nil)
        let bodies = mock.started.all.map(\.sentBody)
        #expect(bodies.count == 3)
        #expect(Set(bodies).count == 1)
        #expect(bodies[0].firstRange(of: Data("\r\n\r\nstream\r\n".utf8)) != nil)
        #expect(files.isEmpty)
    }

    @Test("a finished upload is not retried for a late validation, as its file is removed")
    func lateValidator() async throws {
        let mock = MockTransport.answering(500)
        let manager = manager(mock)
        let asked = Inbox<Void>()
        manager.retrier = Retrying { _, _, completion in
            asked.put(())
            completion(true, 0)
        }
        let request = try await upload(manager)
        #expect(await eventually { files.isEmpty })
        let response = await request.validate().serializingData().response
        #expect(statusOf(response.error) == 500)
        #expect(asked.count == 0)
        #expect(mock.started.count == 1)
    }

    @Test("finished uploads retain neither their forms nor their managers")
    func noLeaks() async throws {
        let (manager, request) = try await finishedUpload(.answering())
        #expect(await eventually { manager.isEmpty && request.isEmpty })
    }

    private func finishedUpload(_ mock: MockTransport) async throws -> (WeakBox<SessionManager>, WeakBox<UploadRequest>) {
        let manager = manager(mock)
        let request = try await upload(manager)
        _ = await request.serializingData().response
        return (WeakBox(manager), WeakBox(request))
    }
}

extension SessionManager.MultipartFormDataEncodingResult {
    fileprivate var request: UploadRequest? {
        if case .success(let request, _, _) = self { request } else { nil }
    }
}

extension Optional {
    fileprivate func mapAsync<Result>(_ body: (Wrapped) async -> Result) async -> Result? {
        guard let self else { return nil }
        return await body(self)
    }
}
