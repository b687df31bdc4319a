// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

// How requests end: every way releases the handlers once, and leaves nothing behind.
@Suite(.timeLimit(.minutes(1))) struct SessionDelegateTests {
    /// The ways to an end. Each is a mock, what the manager is given, and what is done with the request.
    enum Ending: String, CaseIterable, Sendable {
        case success, transportFailure, statusRefused, customRefused
        case cancelledBeforeStart, cancelledWhileRunning, cancelledWhileSuspended, cancelledAtRetrier, cancelledInRetryDelay, cancelledAtEnd
        case encodingFailure, urlFailure, adapterFailure, retriesExhausted, retrierRefuses
        case retrierSilentAtSessionEnd, adapterFailureAndRetrierSilent, retryAdapterFails
        case sessionEndsBeforeStart, sessionEndsWhileRunning, sessionEndsWhileSuspended, sessionEndsInRetryDelay, sessionEndedBefore
        case redirectRefused, tooLarge
    }

    private struct Failing: ParameterEncoding {
        func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
            throw UserError(number: 1)
        }
    }

    /// What a test of an ending works on.
    private final class Scene: Sendable {
        let mock: MockTransport
        let manager: SessionManager
        /// The requests that the retrier was asked about; it answers what the scene says.
        let asked = Inbox<RequestRetryCompletion>()

        init(_ ending: Ending) {
            switch ending {
            case .success: mock = .answering(200, [:], "hello")
            case .transportFailure, .retriesExhausted, .retrierRefuses, .cancelledAtRetrier, .cancelledInRetryDelay,
                .retrierSilentAtSessionEnd, .retryAdapterFails, .sessionEndsInRetryDelay:
                mock = MockTransport { _ in .failure() }
            case .statusRefused, .customRefused, .cancelledAtEnd: mock = .answering(404)
            case .redirectRefused: mock = .answering(302, ["Location": "ftp://elsewhere/"])
            case .tooLarge: mock = .answering(200, [:], "more than ten bytes")
            default: mock = MockTransport()
            }
            manager = SessionManager(mock: mock) { if ending == .tooLarge { $0.maximumBodySize = 10 } }
            let asked = asked
            let count = Lock(0)
            switch ending {
            case .retriesExhausted:
                manager.retrier = Retrying { request, _, completion in completion(request.retryCount < 2, 0) }
            case .retrierRefuses: manager.retrier = Retrying { _, _, completion in completion(false, 0) }
            case .cancelledInRetryDelay, .sessionEndsInRetryDelay:
                manager.retrier = Retrying { _, _, completion in
                    completion(true, 3600)
                    asked.put(completion)
                }
            case .retryAdapterFails:
                manager.adapter = Adapting { request in
                    let isRetry = count.withLock { count in
                        count += 1
                        return count > 1
                    }
                    if isRetry { throw UserError(number: 2) }
                    return request
                }
                manager.retrier = Retrying { _, _, completion in completion(true, 0) }
            case .cancelledAtRetrier, .retrierSilentAtSessionEnd, .adapterFailureAndRetrierSilent:
                manager.retrier = Retrying { _, _, completion in asked.put(completion) }
            default: break
            }
            if ending == .adapterFailure || ending == .adapterFailureAndRetrierSilent {
                manager.adapter = Adapting { _ in throw UserError(number: 3) }
            }
            if ending == .sessionEndedBefore { manager.invalidateAndCancel() }
            if [.cancelledBeforeStart, .sessionEndsBeforeStart].contains(ending) { manager.startRequestsImmediately = false }
        }

        func request(_ ending: Ending) -> DataRequest {
            switch ending {
            case .encodingFailure: return manager.request("http://mock/", parameters: ["a": 1], encoding: Failing())
            case .urlFailure: return manager.request("http://a b/")
            case .statusRefused, .cancelledAtEnd: return manager.request("http://mock/").validate()
            case .customRefused: return manager.request("http://mock/").validate { _, _, _ in .failure(UserError(number: 4)) }
            default: return manager.request("http://mock/")
            }
        }

        /// Brings the request to its end.
        func end(_ request: DataRequest, _ ending: Ending) async {
            switch ending {
            case .cancelledBeforeStart: request.cancel()
            case .cancelledWhileRunning:
                _ = await mock.started[0]
                request.cancel()
            case .cancelledWhileSuspended:
                let exchange = await mock.started[0]
                request.suspend()
                exchange.perform(.head(200))
                request.cancel()
            case .cancelledAtRetrier:
                _ = await asked[0]
                request.cancel()
            case .cancelledInRetryDelay:
                _ = await asked[0]
                request.cancel()
            case .cancelledAtEnd:
                _ = await request.serializingData().response
                request.cancel()
            case .retrierSilentAtSessionEnd, .adapterFailureAndRetrierSilent, .sessionEndsInRetryDelay:
                _ = await asked[0]
                manager.invalidateAndCancel()
            case .sessionEndsBeforeStart: manager.invalidateAndCancel()
            case .sessionEndsWhileRunning:
                _ = await mock.started[0]
                manager.invalidateAndCancel()
            case .sessionEndsWhileSuspended:
                _ = await mock.started[0]
                request.suspend()
                manager.invalidateAndCancel()
            default: break
            }
        }
    }

    private static func isExpected(_ error: (any Error)?, after ending: Ending) -> Bool {
        switch ending {
        case .success: error == nil
        case .transportFailure, .retriesExhausted, .retrierRefuses: kindOf(error) == .connect
        case .statusRefused, .cancelledAtEnd: statusOf(error) == 404
        case .customRefused: error as? UserError == UserError(number: 4)
        case .cancelledBeforeStart, .cancelledWhileRunning, .cancelledWhileSuspended, .cancelledAtRetrier, .cancelledInRetryDelay:
            isCancelled(error)
        case .encodingFailure: error as? UserError == UserError(number: 1)
        case .urlFailure: if case CurlewError.invalidURL? = error { true } else { false }
        case .adapterFailure: error as? UserError == UserError(number: 3)
        case .retryAdapterFails: error as? UserError == UserError(number: 2)
        case .redirectRefused: if case CurlewError.redirectFailed(.invalidLocation, _)? = error { true } else { false }
        case .tooLarge: kindOf(error) == .tooLarge
        case .retrierSilentAtSessionEnd, .adapterFailureAndRetrierSilent, .sessionEndsBeforeStart, .sessionEndsWhileRunning,
            .sessionEndsWhileSuspended, .sessionEndsInRetryDelay, .sessionEndedBefore:
            isInvalidated(error)
        }
    }

    @Test("every ending runs the handlers once, in order", arguments: Ending.allCases)
    func handlersRunOnce(_ ending: Ending) async {
        let scene = Scene(ending)
        let calls = Inbox<(Int, (any Error)?)>()
        let request = scene.request(ending)
        for number in 0..<3 { request.response { calls.put((number, $0.error)) } }
        await scene.end(request, ending)
        let all = await calls.first(3)
        #expect(all.map(\.0) == [0, 1, 2])
        #expect(all.allSatisfy { Self.isExpected($0.1, after: ending) })

        let late = Inbox<(any Error)?>()
        request.response { late.put($0.error) }
        #expect(Self.isExpected(await late[0], after: ending))
        #expect(calls.count == 3)
    }

    @Test("every ending resumes those who await, and those who come later", arguments: Ending.allCases)
    func awaitersResume(_ ending: Ending) async {
        let scene = Scene(ending)
        let request = scene.request(ending)
        async let first = request.serializingData().response.error
        async let second = request.serializingData().response.error
        await scene.end(request, ending)
        let errors = await [first, second, request.serializingData().response.error]
        #expect(errors.allSatisfy { Self.isExpected($0, after: ending) })
    }

    @Test("every ending empties the delegate's map and lets go of the request", arguments: Ending.allCases)
    func nothingLeaks(_ ending: Ending) async {
        let scene = Scene(ending)
        var boxes: (WeakBox<DataRequest>, WeakBox<TaskDelegate>)?
        do {
            let request = scene.request(ending)
            boxes = (WeakBox(request), WeakBox(request.delegate))
            let calls = Inbox<Void>()
            request.response { _ in calls.put(()) }
            await scene.end(request, ending)
            _ = await calls[0]
            if let task = request.task { #expect(scene.manager.delegate[task] == nil) }
        }
        #expect(await eventually { boxes?.0.isEmpty != false && boxes?.1.isEmpty != false })
    }

    // MARK: Without handlers, and late ones

    @Test("a request without a handler ends by itself and is let go")
    func noHandler() async {
        let manager = SessionManager(mock: .answering(200))
        let box = WeakBox(manager.request("http://mock/").validate())
        #expect(await eventually { box.isEmpty })
    }

    @Test("a validation added after the end counts for the first handler, and may retry")
    func lateValidation() async {
        let mock = MockTransport.answering(inTurn: [.response(500), .response(200)])
        let manager = SessionManager(mock: mock)
        manager.retrier = Retrying { _, _, completion in completion(true, 0) }
        let request = manager.request("http://mock/")
        #expect(await eventually { request.driver.state.withLock { $0.lifecycle.stage == .finished } })
        let response = await request.validate().serializingData().response
        #expect(response.response?.statusCode == 200)
        #expect(request.retryCount == 1)
        if let task = request.task { #expect(manager.delegate[task] == nil) }
    }

    @Test("a validation added after the end holds the closures back, too")
    func lateValidationBeforeClosure() async {
        let manager = SessionManager(mock: .answering(500))
        let request = manager.request("http://mock/")
        let operations = Inbox<Int>()
        request.delegate.queue.addOperation { operations.put(0) }
        #expect(await operations.first(1) == [0])
        let errors = Inbox<(any Error)?>()
        request.validate { _, _, _ in .failure(UserError()) }.response { errors.put($0.error) }
        #expect(await errors[0] as? UserError == UserError())
    }

    @Test("operations on the delegate's queue run among the handlers, in order")
    func operations() async {
        let manager = SessionManager(mock: MockTransport())
        let request = manager.request("http://mock/")
        let order = Inbox<Int>()
        request.response(queue: manager.session.queue) { _ in order.put(1) }
        request.delegate.queue.addOperation {
            manager.settle()
            order.put(2)
        }
        request.response(queue: manager.session.queue) { _ in order.put(3) }
        #expect(order.all.isEmpty)
        request.cancel()
        #expect(await order.first(3) == [1, 2, 3])
    }

    @Test("a request that is never resumed keeps its handlers until the session ends")
    func neverResumed() async {
        let mock = MockTransport()
        let calls = Inbox<(any Error)?>()
        do {
            let manager = SessionManager(mock: mock)
            manager.startRequestsImmediately = false
            manager.request("http://mock/").response { calls.put($0.error) }
            manager.settle()
            #expect(calls.all.isEmpty)
        }
        #expect(isInvalidated(await calls[0]))
        #expect(mock.started.all.isEmpty)
    }

    @Test("a manager let go right after the request ends it")
    func managerDropped() async {
        let calls = Inbox<(any Error)?>()
        SessionManager(mock: MockTransport()).request("http://mock/").response { calls.put($0.error) }
        #expect(isInvalidated(await calls[0]))
    }

    @Test("a request that failed before it had a task still asks the retrier when nobody holds it")
    func nobodyHoldsIt() async {
        let count = Lock(0)
        let mock = MockTransport.answering(200)
        let manager = SessionManager(mock: mock)
        manager.adapter = Adapting { request in
            let isFirst = count.withLock { count in
                count += 1
                return count == 1
            }
            if isFirst { throw UserError() }
            return request
        }
        manager.retrier = Retrying { _, _, completion in completion(true, 0) }
        manager.request("http://mock/")
        #expect(await mock.started[0].request.url == "http://mock/")
    }

    @Test("metrics have one entry for each exchange, and none where there was none")
    func metrics() async {
        let mock = MockTransport.answering(inTurn: [.failure(), .response(302, ["Location": "/next"]), .response(200)])
        let manager = SessionManager(mock: mock)
        manager.retrier = Retrying { _, _, completion in completion(true, 0) }
        let metrics = await manager.request("http://mock/").serializingData().response.metrics
        #expect(metrics.transactionMetrics.count == 3)
        #expect(metrics.redirectCount == 1)
        #expect(await manager.request("http://a b/").serializingData().response.metrics.transactionMetrics.isEmpty)
        manager.startRequestsImmediately = false
        let request = manager.request("http://mock/")
        request.cancel()
        #expect(await request.serializingData().response.metrics.transactionMetrics.isEmpty)
    }

    // MARK: Nothing chained is lost

    @Test("all that is chained takes part when the answer is there before the request is", arguments: 0..<20)
    func synchronousAnswer(_ round: Int) async {
        let manager = SessionManager(mock: .answering(404, ["Content-Length": "5"], "hello", isSynchronous: true))
        let progress = Inbox<Int64>()
        let errors = Inbox<(any Error)?>()
        let request = manager.request("http://mock/")
        #expect(request.task?.state == .completed)
        request.downloadProgress { progress.put($0.completedUnitCount) }.validate(statusCode: 200..<300)
            .validate { _, _, _ in .failure(UserError()) }.response { errors.put($0.error) }
        #expect(statusOf(await errors[0]) == 404)
        #expect(await progress.first(1) == [5])
    }

    @Test("redirects followed at once count in order")
    func synchronousRedirect() async {
        let mock = MockTransport(isSynchronous: true) { request in
            request.url.hasSuffix("/3") ? .response(200, [:], request.url) : .response(302, ["Location": "/3"])
        }
        let manager = SessionManager(mock: mock)
        let response = await manager.request("http://mock/1").serializingString().response
        #expect(response.value == "http://mock/3")
        #expect(response.metrics.transactionMetrics.count == 2)
    }
}
