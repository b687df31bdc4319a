// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import CurlewURLLoading
import Dispatch
import Testing

@testable import CurlewCore

/// Answers that come when what they were asked for is over must have no effect at all.
@Suite(.timeLimit(.minutes(1))) struct LateAnswerTests {
    private let temporary: TemporaryDirectory

    init() throws {
        temporary = try TemporaryDirectory()
    }

    private func manager(_ mock: MockTransport) -> SessionManager {
        SessionManager(mock: mock) { [temporary] in $0.temporaryDirectory = temporary.url }
    }

    private static func stream(_ text: String) -> InputStream { InputStream(data: Data(text.utf8)) }

    /// Retries every failure at once.
    private static let retrier = Retrying { _, _, completion in completion(true, 0) }

    // MARK: Streams

    @Test("a stream given for a redirect of an attempt that is over does not replace that of the next", arguments: [true, false])
    func lateStream(isTwice: Bool) async {
        let mock = MockTransport()
        let manager = manager(mock)
        manager.retrier = Self.retrier
        let asked = Inbox<@Sendable (InputStream?) -> Void>()
        manager.delegate.taskNeedNewBodyStream = { _, _, completion in asked.put(completion) }
        let request = manager.upload(Self.stream("first"), to: "http://mock/")
        let first = await mock.started[0]
        first.perform(.sendBody, .head(307, ["Location": "/next"]))
        let late = await asked[0]
        first.end(with: CurlewError.failure(.connectionLost))
        first.pumpLater()
        let current = await asked[1]
        current(Self.stream("second"))
        let second = await mock.started[1]
        if isTwice { current(Self.stream("again")) } else { late(Self.stream("late")) }
        manager.settle()
        second.perform(.sendBody)
        #expect(second.sentBody == Data("second".utf8))
        second.respond(200, [:], "answer")
        #expect(await request.serializingString().response.value == "answer")
        #expect(mock.started.count == 2)
    }

    @Test("a late redirect requests no stream")
    func lateRedirect() async {
        let mock = MockTransport()
        let manager = manager(mock)
        manager.retrier = Self.retrier
        let redirects = Inbox<@Sendable (URLRequest?) -> Void>()
        let proposals = Inbox<URLRequest>()
        manager.delegate.taskWillPerformHTTPRedirection = { _, _, _, proposed, completion in
            proposals.put(proposed)
            redirects.put(completion)
        }
        let asked = Inbox<Void>()
        manager.delegate.taskNeedNewBodyStream = { _, _, completion in
            asked.put(())
            completion(Self.stream("second"))
        }
        let request = manager.upload(Self.stream("first"), to: "http://mock/")
        let first = await mock.started[0]
        first.perform(.sendBody, .head(307, ["Location": "/next"]))
        let late = await redirects[0]
        first.end(with: CurlewError.failure(.connectionLost))
        first.pumpLater()
        let second = await mock.started[1]
        second.perform(.sendBody)
        late(await proposals[0])
        manager.settle()
        #expect(asked.count == 1)
        #expect(second.sentBody == Data("second".utf8))
        second.respond(200, [:], "answer")
        #expect(await request.serializingString().response.value == "answer")
    }

    @Test("late credentials request no stream")
    func lateCredential() async {
        let mock = MockTransport()
        let manager = manager(mock)
        manager.retrier = Self.retrier
        let challenges = Inbox<@Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void>()
        manager.delegate.taskDidReceiveChallenge = { _, _, _, completion in challenges.put(completion) }
        let asked = Inbox<Void>()
        manager.delegate.taskNeedNewBodyStream = { _, _, completion in
            asked.put(())
            completion(Self.stream("second"))
        }
        let request = manager.upload(Self.stream("first"), to: "http://mock/").responseString { _ in }
        let first = await mock.started[0]
        first.perform(.sendBody, .head(401, ["WWW-Authenticate": "Basic realm=\"r\""]))
        let late = await challenges[0]
        first.end(with: CurlewError.failure(.connectionLost))
        first.pumpLater()
        let second = await mock.started[1]
        second.perform(.sendBody)
        late(.useCredential, URLCredential(user: "u", password: "p", persistence: .none))
        manager.settle()
        #expect(asked.count == 1)
        second.respond(200, [:], "answer")
        #expect(second.sentBody == Data("second".utf8))
        #expect(await request.serializingString().response.value == "answer")
    }

    // MARK: Dispositions

    @Test("a late wish to become a download takes no body and leaves no file", arguments: [true, false])
    func lateDisposition(isRetried: Bool) async throws {
        let mock = MockTransport()
        let manager = manager(mock)
        if isRetried { manager.retrier = Self.retrier }
        let asked = Inbox<@Sendable (URLSession.ResponseDisposition) -> Void>()
        manager.delegate.dataTaskDidReceiveResponse = { _, _, _, completion in asked.put(completion) }
        let became = Inbox<Void>()
        manager.delegate.dataTaskDidBecomeDownloadTask = { _, _, _ in became.put(()) }
        let request = manager.request("http://mock/")
        let first = await mock.started[0]
        first.perform(.head(200))
        let late = await asked[0]
        if isRetried { first.end(with: CurlewError.failure(.connectionLost)) } else { request.cancel() }
        first.pumpLater()
        if isRetried {
            let second = await mock.started[1]
            second.perform(.head(200))
            (await asked[1])(.allow)
            manager.settle()
            late(try #require(.download))
            manager.settle()
            second.perform(.bytes(Data("answer".utf8)), .complete())
        } else {
            late(try #require(.download))
            manager.settle()
        }
        let response = await request.serializingString().response
        #expect(isRetried ? response.value == "answer" : isCancelled(response.error))
        #expect(became.count == 0)
        #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.url.path).isEmpty)
    }

    // MARK: Cancellation

    @Test("a request that is cancelled, or whose session ends, while a challenge is decided is not refused", arguments: [true, false])
    func cancelledWhileChallenged(isInvalidated: Bool) async {
        let mock = MockTransport()
        let manager = manager(mock)
        let challenges = Inbox<@Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void>()
        manager.delegate.taskDidReceiveChallenge = { _, _, _, completion in challenges.put(completion) }
        let request = manager.streamRequest("http://mock/").validate()
        let ended = Inbox<DataResponse<Data>>()
        request.responseData { ended.put($0) }
        let exchange = await mock.started[0]
        exchange.perform(.head(401, ["WWW-Authenticate": "Basic realm=\"r\""]))
        let answer = await challenges[0]
        mock.holdsCancellations.withLock { $0 = true }
        if isInvalidated { manager.invalidateAndCancel() } else { request.cancel() }
        answer(.performDefaultHandling, nil)
        manager.settle()
        mock.holdsCancellations.withLock { $0 = false }
        exchange.end(with: CurlewError.cancelled)
        exchange.pumpLater()
        let error = await ended[0].error
        #expect(isInvalidated ? CoreTests.isInvalidated(error) : isCancelled(error))
    }

    @Test("a streamed response that is cancelled at its head, or whose session ends, is not refused", arguments: [true, false])
    func cancelledAtHead(isInvalidated: Bool) async {
        let mock = MockTransport()
        let manager = manager(mock)
        let request = manager.streamRequest("http://mock/").validate()
        let exchange = await mock.started[0]
        exchange.perform(.head(500))
        mock.holdsCancellations.withLock { $0 = true }
        if isInvalidated { manager.invalidateAndCancel() } else { request.cancel() }
        let ended = Inbox<DataResponse<Data>>()
        request.responseData { ended.put($0) }
        mock.holdsCancellations.withLock { $0 = false }
        exchange.end(with: CurlewError.cancelled)
        exchange.pumpLater()
        let error = await ended[0].error
        #expect(isInvalidated ? CoreTests.isInvalidated(error) : isCancelled(error))
    }

    /// Cancels its request while that has it forget what the last attempt has brought.
    private final class CancellingReceiver: BodyReceiver {
        let request = Lock<Request?>(nil)
        let isReset = Lock(false)
        let hasFinishedInBetween = Lock(false)

        var data: Data? { nil }
        var receivedCount: Int64 { 0 }
        var concludesOnQueue: Bool { false }

        func receive(_ head: ResponseHead, _ exchange: CurlewCore.Exchange) throws -> HeadAction { .proceed }
        func receive(_ bytes: UnsafeRawBufferPointer) throws -> ReceiveAction { .proceed }
        func settle(_ attempt: CompletedAttempt) throws {}
        func commit(_ attempt: CompletedAttempt) throws {}
        func holdForRetry() -> Bool { true }

        func reset() {
            let request = request.withLock { $0 }
            request?.cancel()
            let hasFinished = request?.driver.state.withLock { $0.lifecycle.stage == .finished }
            hasFinishedInBetween.withLock { $0 = hasFinished ?? false }
            isReset.withLock { $0 = true }
        }
    }

    @Test("a request that is cancelled while its next attempt is made ready ends behind that, and starts nothing")
    func cancelledAtBeginning() async throws {
        let mock = MockTransport.answering(500, [:], "page")
        let manager = manager(mock)
        manager.retrier = Self.retrier
        manager.startRequestsImmediately = false
        let receiver = CancellingReceiver()
        let driver = RequestDriver(session: manager.session, sessionDelegate: manager.delegate, body: receiver, settings: nil)
        let request = manager.perform(Request(original: .success(.data(try Requestable("http://mock/", .get, nil), nil)), driver: driver))
        receiver.request.withLock { $0 = request }
        driver.state.withLock { $0.add(.statusCodes(.range(200..<300))) }
        request.resume()
        await request.waitForEnd()
        receiver.request.withLock { $0 = nil }
        #expect(isCancelled(request.delegate.error))
        #expect(receiver.isReset.withLock { $0 })
        #expect(!receiver.hasFinishedInBetween.withLock { $0 })
        #expect(mock.started.count == 1)
    }

    /// The kinds of requests that a transport runs.
    enum Kind: CaseIterable {
        case data, download, upload, stream

        func request(_ manager: SessionManager) -> Request {
            switch self {
            case .data: manager.request("http://mock/")
            case .download: manager.download("http://mock/")
            case .upload: manager.upload(Data("body".utf8), to: "http://mock/")
            case .stream: manager.streamRequest("http://mock/")
            }
        }
    }

    /// Completes transfers when the test says so, like a loop that has not learned of a cancellation yet.
    private final class UnawareTransport: Transport {
        let started = Inbox<(id: Int, observer: any TransferObserver)>()

        func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
            UnawareTransfer { [started] in started.put((id, observer)) }
        }

        func makeStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) -> any StreamHandle {
            UnawareTransfer {}
        }

        func shutDown() {}
    }

    /// The error of a request whose transfer fails behind, or in front of, its cancellation; how often it was sent, and its retrier asked.
    private func end(of kind: Kind, failsFirst: Bool) async -> (error: (any Error)?, sent: Int, asked: Int) {
        let transport = UnawareTransport()
        let manager = SessionManager(configuration: SessionConfiguration(), transport: transport)
        let asked = Inbox<Void>()
        if !failsFirst {
            manager.retrier = Retrying { _, _, completion in
                asked.put(())
                completion(true, 0)
            }
        }
        let request = kind.request(manager)
        let (id, observer) = await transport.started[0]
        if !failsFirst { request.cancel() }
        observer.transfer(id, didComplete: TransferCompletion(error: CurlewError.failure(.connectionLost), metrics: TransferMetrics()))
        if failsFirst { request.cancel() }
        await request.waitForEnd()
        defer {
            // An observer retains its session, and that this transport.
            transport.started.empty()
            manager.invalidateAndCancel()
        }
        return (request.delegate.error, transport.started.count, asked.count)
    }

    @Test("a failure that comes behind a cancellation is neither reported nor retried", arguments: Kind.allCases)
    func failedAfterCancellation(kind: Kind) async {
        let end = await end(of: kind, failsFirst: false)
        #expect(isCancelled(end.error) && end.sent == 1 && end.asked == 0)
    }

    @Test("a failure that came before a cancellation is reported", arguments: Kind.allCases)
    func failedBeforeCancellation(kind: Kind) async {
        #expect(kindOf(await end(of: kind, failsFirst: true).error) == .connectionLost)
    }
}
