// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct EventMonitorTests {
    /// Records the events.
    private struct Recorder: EventMonitor {
        let events = Inbox<String>()
        func request(_ request: Request, didCreate task: SessionTask) { events.put("task \(task.taskIdentifier)") }
        func requestDidResume(_ request: Request) { events.put("resume") }
        func requestDidSuspend(_ request: Request) { events.put("suspend") }
        func requestDidCancel(_ request: Request) { events.put("cancel") }
        func request(_ request: Request, didReceiveInterim head: ResponseHead) { events.put("interim \(head.statusCode)") }
        func request(_ request: Request, didReceive response: HTTPURLResponse) { events.put("response \(response.statusCode)") }
        func request(_ request: Request, willContinueWith newRequest: URLRequest) { events.put("next \(newRequest.url?.path ?? "")") }
        func request(_ request: Request, didComplete task: SessionTask, with error: (any Error)?) { events.put("complete \(error == nil)") }
        func request(_ request: Request, willRetryAfter delay: TimeInterval, because error: any Error) { events.put("retry \(delay)") }
        func requestDidFinish(_ request: Request) { events.put("finish") }
    }

    private struct Silent: EventMonitor {}

    private let recorder = Recorder()

    @Test func `each step of a redirected request is reported`() async {
        let hints = MockTransport.Step.interim(ResponseHead(statusCode: 103))
        let mock = MockTransport.answering(inTurn: [[hints] + .response(302, ["Location": "/next"]), [hints] + .response(200)])
        let manager = SessionManager(mock: mock) { [recorder] in $0.eventMonitors = [Silent(), recorder] }
        _ = await manager.request("http://mock/").serializingData().response
        let steps = ["interim 103", "response 302", "next /next", "interim 103", "response 200", "complete true", "finish"]
        #expect(await recorder.events.first(9) == ["task 1", "resume"] + steps)
    }

    @Test func `each attempt of a retried request is reported`() async {
        let mock = MockTransport.answering(inTurn: [.failure(), .response(200)])
        let manager = SessionManager(mock: mock) { [recorder] in $0.eventMonitors = [recorder] }
        manager.retrier = Retrying { request, _, completion in completion(request.retryCount == 0, 0) }
        _ = await manager.request("http://mock/").serializingData().response
        let steps = ["complete false", "retry 0.0", "task 2", "response 200", "complete true", "finish"]
        #expect(await recorder.events.first(8) == ["task 1", "resume"] + steps)
    }

    @Test func `a start is reported before what the transport does at once`() async {
        let mock = MockTransport.answering(200, [:], "", isSynchronous: true)
        let manager = SessionManager(mock: mock) { [recorder] in $0.eventMonitors = [recorder] }
        manager.startRequestsImmediately = false
        let request = manager.request("http://mock/")
        request.whenFinished {}
        request.resume()
        #expect(await recorder.events.first(5) == ["task 1", "resume", "response 200", "complete true", "finish"])
    }

    @Test func `a cancellation is reported before the end that it causes`() async {
        let manager = SessionManager(mock: MockTransport()) { [recorder] in $0.eventMonitors = [recorder] }
        manager.startRequestsImmediately = false
        let request = manager.request("http://mock/")
        request.whenFinished {}
        request.cancel()
        #expect(await recorder.events.first(4) == ["task 1", "cancel", "complete false", "finish"])
    }

    @Test func `no start is reported of a request that another thread cancels just before it`() async throws {
        let manager = SessionManager(mock: MockTransport()) { [recorder] in $0.eventMonitors = [recorder] }
        manager.startRequestsImmediately = false
        let request = manager.request("http://mock/")
        request.whenFinished {}
        request.cancel()
        // What the thread does next that has made the task.
        manager.startRequestsImmediately = true
        request.driver.startDeferred(try #require(request.task), of: request, by: manager)
        await withCheckedContinuation { continuation in request.session.queue.async { continuation.resume() } }
        #expect(await recorder.events.first(4) == ["task 1", "cancel", "complete false", "finish"])
        #expect(recorder.events.count == 4)
    }

    @Test func `suspending and cancelling are reported`() async {
        let manager = SessionManager(mock: MockTransport()) { [recorder] in $0.eventMonitors = [recorder] }
        let request = manager.request("http://mock/")
        request.suspend()
        request.cancel()
        _ = await request.serializingData().response
        let events = await recorder.events.first(6)
        #expect(events.prefix(3) == ["task 1", "resume", "suspend"])
        #expect(Set(events.dropFirst(3)) == ["cancel", "complete false", "finish"])
    }
}
