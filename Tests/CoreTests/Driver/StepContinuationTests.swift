// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Dispatch
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct StepContinuationTests {
    private final class Calls: Sendable {
        let state = Lock(RequestState())
        let answers = Inbox<Int>()

        /// Waits for an answer, as a driver does.
        func wait() -> StepContinuation<Int> {
            let step = WaitingStep(in: state) { [answers] in answers.put($0) }
            state.withLock { $0.waiting = step }
            return StepContinuation(step)
        }
    }

    @Test("the first answer counts")
    func first() {
        let calls = Calls()
        let continuation = calls.wait()
        #expect(continuation.isPending)
        continuation(1)
        #expect(!continuation.isPending)
        continuation(2)
        #expect(calls.answers.all == [1])
    }

    @Test("an answer to a wait that was given up has no effect, nor has one to an earlier wait")
    func late() {
        let calls = Calls()
        let abandoned = calls.wait()
        let step = calls.state.withLock { $0.stopWaiting() }
        abandoned(1)
        #expect(step != nil)
        let second = calls.wait()
        abandoned(2)
        #expect(second.isPending)
        second(3)
        #expect(calls.answers.all == [3])
    }

    @Test("of many threads that answer at once one does", arguments: 0..<20)
    func concurrent(_ round: Int) async {
        let calls = Calls()
        let continuation = calls.wait()
        await withTaskGroup(of: Void.self) { group in
            for answer in 0..<8 { group.addTask { continuation(answer) } }
        }
        #expect(calls.answers.count == 1)
    }

    /// An adapter of which the preparation never ends, or a retrier that never answers, and what they were given.
    private final class Silent: RequestRetrier, RequestAdapter {
        let asked = Inbox<Void>()
        let kept = Lock<[Any]>([])
        private let adapts: Bool

        init(adapts: Bool) { self.adapts = adapts }

        func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
            guard !adapts else { return urlRequest }
            throw PendingAdaptation(isAsynchronous: false) { [self] _, done in
                kept.withLock { $0.append(done) }
                asked.put(())
            }
        }

        func should(
            _ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion
        ) {
            kept.withLock { $0.append(completion) }
            asked.put(())
        }
    }

    @Test("nothing is left of a request whose adapter or retrier never answers, once its manager is released", arguments: [true, false])
    func noAnswer(_ isRetrier: Bool) async {
        let silent = Silent(adapts: isRetrier)
        var boxes: (WeakBox<DataRequest>, WeakBox<RequestDriver>)?
        do {
            let manager = SessionManager(mock: .answering(500))
            if isRetrier { manager.retrier = silent } else { manager.adapter = silent }
            let request = manager.request("http://mock/").validate()
            boxes = (WeakBox(request), WeakBox(request.driver))
            let errors = Inbox<(any Error)?>()
            request.responseData { errors.put($0.error) }
            _ = await silent.asked[0]
            manager.invalidateAndCancel()
            #expect(isInvalidated(await errors[0]))
        }
        #expect(await eventually { boxes?.0.isEmpty != false && boxes?.1.isEmpty != false })
        // The silent one still has what it was given.
        #expect(silent.kept.withLock { $0.count } == 1)
    }

    /// The events that a transport could send late.
    enum Event: CaseIterable {
        case head, bytes, completion, sent
    }

    @Test("an event of the first attempt has no effect on the second", arguments: Event.allCases)
    func lateEvents(_ event: Event) async {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        manager.retrier = Retrying { request, _, completion in completion(request.retryCount == 0, 0) }
        let request = manager.upload(Data("body".utf8), to: "http://mock/").validate()
        let progress = Inbox<Int64>()
        request.uploadProgress(queue: manager.session.queue) { progress.put($0.completedUnitCount) }
        async let response = request.serializingString().response
        let first = await mock.started[0]
        first.perform(.head(500), .complete())
        let second = await mock.started[1]
        let driver = request.driver
        switch event {
        case .head: #expect(driver.transfer(first.id, didReceive: ResponseHead(statusCode: 404, headers: [:])) == .cancel)
        case .bytes: Data("late".utf8).withUnsafeBytes { #expect(driver.transfer(first.id, didReceive: $0) == .cancel) }
        case .completion:
            driver.transfer(first.id, didComplete: TransferCompletion(error: CurlewError.cancelled, metrics: TransferMetrics()))
        case .sent: driver.transfer(first.id, didSend: 3)
        }
        second.respond(200, [:], "good")
        let result = await response
        #expect(result.value == "good")
        #expect(result.response?.statusCode == 200)
        #expect(request.retryCount == 1)
        #expect(!progress.all.contains(3))
    }
}
