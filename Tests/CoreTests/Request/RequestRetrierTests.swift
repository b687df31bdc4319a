// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Dispatch
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct RequestRetrierTests {
    @Test("a retry starts anew: error, head, body, times; the count goes up")
    func startsAnew() async {
        let mock = MockTransport.answering(inTurn: [[.head(500), .bytes(Data("bad".utf8)), .complete()], .response(200, [:], "good")])
        let manager = SessionManager(mock: mock)
        let asked = Inbox<(UInt, Int?)>()
        manager.retrier = Retrying { request, error, completion in
            asked.put((request.retryCount, statusOf(error)))
            completion(true, 0)
        }
        let request = manager.request("http://mock/").validate()
        let response = await request.serializingString().response
        #expect(response.value == "good")
        #expect(response.response?.statusCode == 200)
        #expect(request.retryCount == 1)
        #expect(asked.all.map(\.0) == [0])
        #expect(asked.all.map(\.1) == [500])
    }

    @Test("the validations run again for each attempt")
    func validatesAgain() async {
        let manager = SessionManager(mock: .answering(200))
        manager.retrier = Retrying { request, _, completion in completion(request.retryCount < 3, 0) }
        let runs = Inbox<Void>()
        let request = manager.request("http://mock/").validate { _, _, _ in
            runs.put(())
            return .failure(UserError())
        }
        #expect(await request.serializingData().response.error as? UserError == UserError())
        #expect(runs.count == 4)
        #expect(request.retryCount == 3)
    }

    @Test("the delay passes before the retry")
    func delay() async throws {
        let mock = MockTransport.answering(inTurn: [.failure(), .response(200)])
        let manager = SessionManager(mock: mock)
        // Of the first attempt, of the answer, and of the second attempt.
        let times = Inbox<ContinuousClock.Instant>()
        manager.adapter = Adapting { request in
            times.put(.now)
            return request
        }
        manager.retrier = Retrying { _, _, completion in
            times.put(.now)
            completion(true, 0.2)
        }
        _ = await manager.request("http://mock/").serializingData().response
        let all = times.all
        try #require(all.count == 3)
        #expect(all[2] - all[1] >= .milliseconds(190))
    }

    @Test("odd delays count as none", arguments: [-1, Double.nan, -Double.infinity, 0])
    func oddDelays(_ delay: Double) async {
        let manager = SessionManager(mock: .answering(inTurn: [.failure(), .response(200)]))
        manager.retrier = Retrying { _, _, completion in completion(true, delay) }
        #expect(await manager.request("http://mock/").serializingData().response.error == nil)
    }

    @Test("an infinite delay can be cancelled")
    func infiniteDelay() async {
        let manager = SessionManager(mock: MockTransport { _ in .failure() })
        let asked = Inbox<Void>()
        manager.retrier = Retrying { _, _, completion in
            completion(true, Double.infinity)
            asked.put(())
        }
        let request = manager.request("http://mock/")
        async let error = request.serializingData().response.error
        _ = await asked[0]
        request.cancel()
        #expect(isCancelled(await error))
    }

    @Test("only the retrier's first answer counts", arguments: [true, false])
    func answersTwice(_ first: Bool) async {
        let mock = MockTransport.answering(inTurn: [.failure(), .response(200)])
        let manager = SessionManager(mock: mock)
        manager.retrier = Retrying { _, _, completion in
            completion(first, 0)
            completion(!first, 0)
            completion(true, 0)
        }
        let error = await manager.request("http://mock/").serializingData().response.error
        manager.settle()
        #expect((error == nil) == first)
        #expect(mock.started.count == (first ? 2 : 1))
    }

    @Test("an answer after the end does nothing")
    func answersLate() async {
        let mock = MockTransport { _ in .failure() }
        let manager = SessionManager(mock: mock)
        let asked = Inbox<RequestRetryCompletion>()
        manager.retrier = Retrying { _, _, completion in asked.put(completion) }
        let request = manager.request("http://mock/")
        async let error = request.serializingData().response.error
        let completion = await asked[0]
        request.cancel()
        #expect(isCancelled(await error))
        completion(true, 0)
        manager.settle()
        #expect(mock.started.count == 1)
    }

    @Test("a cancelled request is not tried again")
    func cancelledIsNotAsked() async {
        let manager = SessionManager(mock: MockTransport())
        let asked = Inbox<Void>()
        manager.retrier = Retrying { _, _, completion in
            asked.put(())
            completion(true, 0)
        }
        let request = manager.request("http://mock/")
        request.cancel()
        #expect(isCancelled(await request.serializingData().response.error))
        #expect(asked.all.isEmpty)
    }

    @Test("cancelling while a retry is adapted ends the request, and the retry does not start")
    func cancelledInAdapter() async {
        let mock = MockTransport { _ in .failure() }
        let manager = SessionManager(mock: mock)
        let adapting = Inbox<Void>()
        let goOn = DispatchSemaphore(value: 0)
        manager.adapter = Adapting { request in
            if adapting.count == 1 { goOn.wait() }
            return request
        }
        manager.retrier = Retrying { _, _, completion in
            adapting.put(())
            completion(true, 0)
        }
        let request = manager.request("http://mock/")
        let errors = Inbox<(any Error)?>()
        request.response { errors.put($0.error) }
        _ = await adapting[0]
        request.cancel()
        goOn.signal()
        #expect(isCancelled(await errors[0]))
        manager.settle()
        #expect(mock.started.count == 1)
        #expect(request.driver.state.withLock { $0.lifecycle.stage } == .finished)
    }

    @Test("encoding and URL failures are not asked about; the adapter's is, unwrapped")
    func whatIsAsked() async {
        let manager = SessionManager(mock: .answering(200))
        let asked = Inbox<(any Error)?>()
        manager.retrier = Retrying { _, error, completion in
            asked.put(error)
            completion(false, 0)
        }
        #expect(await manager.request("http://a b/").serializingData().response.error != nil)
        #expect(asked.all.isEmpty)
        manager.adapter = Adapting { _ in throw UserError(number: 5) }
        #expect(await manager.request("http://mock/").serializingData().response.error as? UserError == UserError(number: 5))
        #expect(asked.all.map { $0 as? UserError } == [UserError(number: 5)])
    }

    @Test("the body is made anew for each attempt")
    func bodyAnew() async throws {
        let mock = MockTransport.answering(inTurn: [.failure(readsBody: true), .response(readsBody: true)])
        let manager = SessionManager(mock: mock)
        manager.retrier = Retrying { _, _, completion in completion(true, 0) }
        #expect(await manager.upload(Data("abc".utf8), to: "http://mock/").serializingData().response.error == nil)
        #expect(mock.started.all.map { String(decoding: $0.sentBody, as: UTF8.self) } == ["abc", "abc"])

        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("file".utf8), to: "body")
        let second = MockTransport.answering(inTurn: [.failure(readsBody: true), .response(readsBody: true)])
        let other = SessionManager(mock: second)
        other.retrier = manager.retrier
        #expect(await other.upload(file, to: "http://mock/").serializingData().response.error == nil)
        #expect(second.started.all.map { String(decoding: $0.sentBody, as: UTF8.self) } == ["file", "file"])
    }

    @Test("a stream that was read is not sent again: the first error stays", arguments: [true, false])
    func streamIsNotRepeated(_ asUpload: Bool) async throws {
        let mock = MockTransport { _ in .failure(readsBody: true) }
        let manager = SessionManager(mock: mock)
        manager.retrier = Retrying { _, _, completion in completion(true, 0) }
        let stream = InputStream(data: Data("abc".utf8))
        let request: DataRequest
        if asUpload {
            request = manager.upload(stream, to: "http://mock/")
        } else {
            var urlRequest = try URLRequest(url: "http://mock/", method: .post)
            urlRequest.httpBodyStream = stream
            request = manager.request(urlRequest)
        }
        #expect(kindOf(await request.serializingData().response.error) == .connect)
        #expect(mock.started.count == 1)
    }

    @Test("a stream that was not read yet is sent by the retry")
    func unreadStream() async {
        let mock = MockTransport.answering(inTurn: [.failure(), .response(readsBody: true)])
        let manager = SessionManager(mock: mock)
        manager.retrier = Retrying { _, _, completion in completion(true, 0) }
        _ = await manager.upload(InputStream(data: Data("abc".utf8)), to: "http://mock/").serializingData().response
        #expect(await mock.started[1].sentBody == Data("abc".utf8))
    }

    @Test("a raw connection is tried again until it is established, not afterwards")
    func rawStream() async {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        manager.retrier = Retrying { _, _, completion in completion(true, 0) }
        let request = manager.stream(withHostName: "mock", port: 1)
        await mock.opened[0].complete(CurlewError.failure())
        let established = await mock.opened[1]
        established.open()
        established.complete(CurlewError.failure())
        await #expect(throws: CurlewError.self) { try await request.waitUntilCompleted() }
        #expect(mock.opened.count == 2)
    }

    @Test("an adapter that throws after a wait is a failure about which the retrier is asked", arguments: [true, false])
    func adapterAfterWait(isRetried: Bool) async {
        let mock = MockTransport.answering(200, [:], "answer")
        let manager = SessionManager(mock: mock)
        let calls = Lock(0)
        manager.adapter = Adapting { request in
            switch calls.withLock({ calls -> Int in
                calls += 1
                return calls
            }) {
            case 1: throw PendingAdaptation(isAsynchronous: false) { _, done in done(.success(())) }
            case 2: throw UserError()
            default: return request
            }
        }
        let asked = Inbox<UserError?>()
        manager.retrier = Retrying { _, error, completion in
            asked.put(error as? UserError)
            completion(isRetried, 0)
        }
        let response = await manager.request("http://mock/").serializingString().response
        #expect(asked.all == [UserError()])
        #expect(isRetried ? response.value == "answer" : response.error as? UserError == UserError())
    }

    @Test("a request whose retrier has refused ends once, also if it is cancelled at that moment")
    func cancelledAfterRefusal() async {
        let manager = SessionManager(mock: .answering(inTurn: [.failure()]))
        let asked = Inbox<RequestRetryCompletion>()
        manager.retrier = Retrying { _, _, completion in asked.put(completion) }
        let told = Inbox<Void>()
        manager.delegate.taskDidComplete = { _, _, _ in told.put(()) }
        let request = manager.request("http://mock/")
        let ended = Inbox<DataResponse<Data>>()
        request.responseData { ended.put($0) }
        let answer = await asked[0]
        let gate = DispatchSemaphore(value: 0)
        manager.session.queue.async { gate.wait() }
        answer(false, 0)
        request.cancel()
        gate.signal()
        #expect(kindOf(await ended[0].error) == .connect)
        manager.settle()
        #expect(told.count == 1)
        asked.empty()
    }
}
