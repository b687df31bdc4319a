// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import CurlewURLLoading
import Dispatch
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct SessionClosuresTests {
    private static let redirect: [MockTransport.Step] = .response(302, ["Location": "/next"], "moved")

    private let mock = MockTransport.answering(inTurn: [redirect, .response(200, [:], "answer")])

    /// When a closure answers: before it returns, or later on another thread.
    enum Form: CaseIterable, Sendable {
        case atOnce, elsewhere
    }

    /// Answers in one of the forms.
    private static func answer<Value: Sendable>(_ value: Value, _ form: Form, to completion: @escaping @Sendable (Value) -> Void) {
        if form == .elsewhere { DispatchQueue.global().async { completion(value) } } else { completion(value) }
    }

    // MARK: Redirects

    private func decideRedirects(_ manager: SessionManager, _ form: Form, _ decide: @escaping @Sendable (URLRequest) -> URLRequest?) {
        manager.delegate.taskWillPerformHTTPRedirection = { _, _, _, request, completion in
            Self.answer(decide(request), form, to: completion)
        }
    }

    @Test(arguments: Form.allCases) func `a redirect follows the request of the closure`(_ form: Form) async {
        let manager = SessionManager(mock: mock)
        decideRedirects(manager, form) { proposed in
            var request = proposed
            request.url = URL(string: "http://mock/elsewhere")
            request.setValue("yes", forHTTPHeaderField: "Changed")
            return request
        }
        let response = await manager.request("http://mock/", headers: ["Kept": "1"]).serializingString().response
        #expect(response.value == "answer")
        let last = mock.started.all.last?.request
        #expect(last?.url == "http://mock/elsewhere")
        #expect(last?.headers["Changed"] == "yes")
        #expect(last?.headers["Kept"] == "1")
    }

    @Test(arguments: Form.allCases)
    func `a redirect that the closure leaves unchanged is followed as proposed`(_ form: Form) async {
        let manager = SessionManager(mock: mock)
        decideRedirects(manager, form) { $0 }
        let response = await manager.request("http://mock/").serializingString().response
        #expect(response.value == "answer")
        #expect(response.metrics.redirectCount == 1)
        #expect(mock.started.all.last?.request.url == "http://mock/next")
    }

    @Test(arguments: Form.allCases)
    func `a redirect that the closure declines is the response, with its body`(_ form: Form) async {
        let manager = SessionManager(mock: mock)
        decideRedirects(manager, form) { _ in nil }
        let response = await manager.request("http://mock/").serializingString().response
        #expect(response.response?.statusCode == 302)
        #expect(response.value == "moved")
        #expect(mock.started.count == 1)
    }

    @Test func `a request is cancelled while a closure decides`() async {
        // With nothing left to come the transfer is over, and nobody but the cancellation can end the request.
        for answer: [MockTransport.Step] in [.response(302, ["Location": "/next"]), [.head(302, ["Location": "/next"])]] {
            let manager = SessionManager(mock: MockTransport { _ in answer })
            let asked = Inbox<@Sendable (URLRequest?) -> Void>()
            defer { asked.empty() }
            manager.delegate.taskWillPerformHTTPRedirection = { _, _, _, _, completion in asked.put(completion) }
            let request = manager.request("http://mock/")
            async let response = request.serializingData().response
            let completion = await asked.first(1)[0]
            request.cancel()
            #expect(isCancelled(await response.error))
            // Too late, and without any effect.
            completion(nil)
        }
    }

    @Test func `a session ends while a closure decides`() async {
        let manager = SessionManager(mock: .answering(302, ["Location": "/next"]))
        let asked = Inbox<Void>()
        manager.delegate.taskWillPerformHTTPRedirection = { _, _, _, _, _ in asked.put(()) }
        async let response = manager.request("http://mock/").serializingData().response
        _ = await asked.first(1)
        manager.invalidateAndCancel()
        guard case CurlewError.sessionInvalidated? = await response.error else { return #expect(Bool(false), "another error") }
    }

    // MARK: Dispositions

    @Test(arguments: Form.allCases) func `a closure decides whether a body is received`(_ form: Form) async {
        for disposition in [URLSession.ResponseDisposition.allow, .cancel] {
            let manager = SessionManager(mock: .answering(200, [:], "body"))
            manager.delegate.dataTaskDidReceiveResponse = { _, _, _, completion in Self.answer(disposition, form, to: completion) }
            let response = await manager.request("http://mock/").serializingString().response
            #expect(response.value == (disposition == .allow ? "body" : nil))
            #expect(isCancelled(response.error) == (disposition == .cancel))
            #expect(response.response?.statusCode == 200)
        }
    }

    @Test func `a data task becomes a download`() async throws {
        let directory = try TemporaryDirectory()
        let manager = SessionManager(mock: .answering(200, [:], "body")) { $0.temporaryDirectory = directory.url }
        let became = Inbox<Int>()
        let files = Inbox<String?>()
        manager.delegate.dataTaskDidReceiveResponse = { _, _, _, completion in completion(.download ?? .allow) }
        manager.delegate.dataTaskDidBecomeDownloadTask = { _, task, _ in became.put(task.taskIdentifier) }
        manager.delegate.downloadTaskDidFinishDownloadingToURL = { _, _, url in files.put(try? String(contentsOf: url, encoding: .utf8)) }
        let request = manager.request("http://mock/")
        let response = await request.serializingResponse(using: DataResponseSerializer { _, _, _, error in .success(error == nil) })
            .response
        #expect(response.value == true)
        #expect(response.data == nil)
        #expect(became.all == [request.task?.taskIdentifier])
        #expect(files.all == ["body"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path).isEmpty)
    }

    // MARK: Bodies

    @Test(arguments: Form.allCases) func `a closure provides a new stream for a redirect`(_ form: Form) async {
        let mock = MockTransport.answering(inTurn: [
            .response(307, ["Location": "/next"], readsBody: true), .response(200, [:], "answer", readsBody: true),
        ])
        let manager = SessionManager(mock: mock)
        giveStreams(manager, form)
        let response = await manager.upload(InputStream(data: Data("stream".utf8)), to: "http://mock/").serializingString().response
        #expect(response.value == "answer")
        #expect(mock.started.all.map(\.sentBody) == [Data("stream".utf8), Data("stream".utf8)])
    }

    @Test(arguments: Form.allCases) func `a closure provides a new stream for a retry`(_ form: Form) async {
        let mock = MockTransport.answering(inTurn: [
            .failure(.connectionLost, readsBody: true), .response(200, [:], "answer", readsBody: true),
        ])
        let manager = SessionManager(mock: mock)
        manager.retrier = Retrying { request, _, completion in completion(request.retryCount == 0, 0) }
        giveStreams(manager, form)
        let response = await manager.upload(InputStream(data: Data("stream".utf8)), to: "http://mock/").serializingString().response
        #expect(response.value == "answer")
        #expect(mock.started.all.map(\.sentBody) == [Data("stream".utf8), Data("stream".utf8)])
    }

    private func giveStreams(_ manager: SessionManager, _ form: Form) {
        manager.delegate.taskNeedNewBodyStream = { _, _, completion in
            let give = { @Sendable in completion(InputStream(data: Data("stream".utf8))) }
            if form == .elsewhere { DispatchQueue.global().async(execute: give) } else { give() }
        }
    }

    @Test func `without a new stream a redirect that repeats the body fails`() async {
        let manager = SessionManager(mock: .answering(inTurn: [.response(307, ["Location": "/next"], readsBody: true)]))
        manager.delegate.taskNeedNewBodyStream = { _, _, completion in completion(nil) }
        let response = await manager.upload(InputStream(data: Data("stream".utf8)), to: "http://mock/").serializingString().response
        guard case CurlewError.redirectFailed(reason: .bodyNotRepeatable, _)? = response.error else {
            return #expect(Bool(false), "\(String(describing: response.error))")
        }
    }

    @Test func `sent bytes are reported to the closure instead of the progress`() async {
        let manager = SessionManager(mock: MockTransport { _ in [.sent(3), .sent(7)] + .response() })
        let told = Inbox<[Int64]>()
        manager.delegate.taskDidSendBodyData = { _, _, piece, count, total in told.put([piece, count, total]) }
        let request = manager.upload(Data("1234567".utf8), to: "http://mock/")
        _ = await request.serializingData().response
        #expect(await told.first(2) == [[3, 3, 7], [4, 7, 7]])
    }

    @Test func `pieces of a body go to the closure, and the request's data stays empty`() async throws {
        let manager = SessionManager(
            mock: MockTransport { _ in [.head(200), .bytes(Data("one".utf8)), .bytes(Data("two".utf8)), .complete()] })
        let pieces = Inbox<Data>()
        manager.delegate.dataTaskDidReceiveData = { _, _, data in pieces.put(data) }
        let response = await manager.request("http://mock/").serializingData().response
        #expect(response.data == Data())
        #expect(pieces.all.reduce(Data(), +) == Data("onetwo".utf8))
    }

    // MARK: Downloads

    @Test func `a download's file goes to the closure, and is removed afterwards`() async throws {
        let directory = try TemporaryDirectory()
        let manager = SessionManager(mock: .answering(200, [:], "file")) { $0.temporaryDirectory = directory.url }
        let files = Inbox<String?>()
        let written = Inbox<[Int64]>()
        manager.delegate.downloadTaskDidFinishDownloadingToURL = { _, _, url in files.put(try? String(contentsOf: url, encoding: .utf8)) }
        manager.delegate.downloadTaskDidWriteData = { _, _, piece, count, total in written.put([piece, count, total]) }
        let target = directory.url.appendingPathComponent("target")
        let request = manager.download("http://mock/", to: { _, _ in (target, []) })
        let serializer = DownloadResponseSerializer<Bool> { _, _, _, error in .success(error == nil) }
        #expect(await request.serializingResponse(using: serializer).response.value == true)
        #expect(files.all == ["file"])
        #expect(await written.first(1) == [[4, 4, -1]])
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path).isEmpty)
    }

    // MARK: Ends

    @Test(arguments: [200, 500]) func `the completion of a task is reported before its handlers run`(_ status: Int) async {
        let manager = SessionManager(mock: .answering(status))
        let events = Inbox<String>()
        manager.delegate.taskDidComplete = { _, task, error in events.put("\(task.taskIdentifier) \(error == nil)") }
        // A request that is under way already could end without its validation.
        manager.startRequestsImmediately = false
        await withTrackedContinuation { continuation in
            manager.request("http://mock/").validate().response { _ in
                events.put("handler")
                continuation.resume()
            }.resume()
        }
        #expect(events.all == ["1 \(status == 200)", "handler"])
    }

    @Test func `the end of a session is reported once`() async {
        let manager = SessionManager(mock: mock)
        let ends = Inbox<Bool>()
        manager.delegate.sessionDidBecomeInvalidWithError = { _, error in ends.put(error == nil) }
        #expect(manager.session.delegate === manager.delegate)
        manager.session.invalidateAndCancel()
        manager.invalidateAndCancel()
        #expect(await ends.first(1) == [true])
        manager.session.queue.sync {}
        #expect(ends.count == 1)
    }
}
