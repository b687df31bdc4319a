// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct SessionTaskTests {
    @Test("a cancellation before the transport knows the task is not lost")
    func cancelledInStart() async {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        manager.startRequestsImmediately = false
        let request = manager.request("http://mock/")
        mock.onStart { _ in request.cancel() }
        request.resume()
        #expect(isCancelled(await request.serializingData().response.error))
    }

    @Test("a suspension before the transport knows the task is not lost")
    func suspendedInStart() async {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        manager.startRequestsImmediately = false
        let request = manager.request("http://mock/")
        mock.onStart { _ in request.suspend() }
        request.resume()
        #expect(await mock.started[0].isSuspended)
        #expect(request.task?.state == .suspended)
    }

    @Test("states follow what is done, and nothing leads out of the end")
    func states() async {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        manager.startRequestsImmediately = false
        let request = manager.request("http://mock/")
        let task = request.task
        #expect(task?.state == .suspended)
        request.resume()
        #expect(task?.state == .running)
        request.suspend()
        #expect(task?.state == .suspended)
        request.resume()
        await mock.started[0].respond()
        _ = await request.serializingData().response
        #expect(task?.state == .completed)
        request.resume()
        request.suspend()
        request.cancel()
        #expect(task?.state == .completed)
        #expect(mock.started.count == 1)
    }

    @Test("tasks are distinguished by identity, and keep what the program notes")
    func identity() throws {
        let manager = SessionManager(mock: MockTransport())
        let tasks = try (0..<2).map { _ in try #require(manager.request("http://mock/").task) }
        #expect(tasks[0] == tasks[0] && tasks[0] != tasks[1])
        var names = [tasks[0]: "first", tasks[1]: "second"]
        names[tasks[0]] = "third"
        #expect(names == [tasks[0]: "third", tasks[1]: "second"])
        #expect(tasks[0].taskDescription == nil)
        tasks[0].taskDescription = "text"
        #expect(tasks.map(\.taskDescription) == ["text", nil])
    }

    @Test("a task's error is that of its transfer, and not of validation")
    func errors() async throws {
        let manager = SessionManager(mock: MockTransport { $0.url.hasSuffix("/fails") ? .failure(.idleTimeout) : .response(404) })
        manager.startRequestsImmediately = false
        let failing = manager.request("http://mock/fails")
        #expect(failing.task?.error == nil)
        failing.resume()
        _ = await failing.serializingData().response
        #expect(kindOf(failing.task?.error) == .idleTimeout)
        let refused = manager.request("http://mock/").validate()
        refused.resume()
        #expect(await refused.serializingData().response.error != nil)
        #expect(refused.task?.state == .completed && refused.task?.error == nil)
        let cancelled = manager.request("http://mock/")
        cancelled.cancel()
        _ = await cancelled.serializingData().response
        #expect(isCancelled(cancelled.task?.error))
    }

    @Test("each attempt's task keeps its error")
    func errorsOfAttempts() async throws {
        let mock = MockTransport.answering(inTurn: [.failure(), .response(200)])
        let manager = SessionManager(mock: mock)
        manager.retrier = Retrying { request, _, completion in completion(request.retryCount == 0, 0) }
        manager.startRequestsImmediately = false
        let request = manager.request("http://mock/")
        let first = try #require(request.task)
        request.resume()
        _ = await request.serializingData().response
        #expect(kindOf(first.error) == .connect)
        #expect(request.task != first && request.task?.error == nil)
    }

    @Test("a task's progress is its request's while it runs, and final afterwards")
    func progress() async throws {
        let mock = MockTransport { _ in [.sendBody] + .response(200, ["Content-Length": "5"], "12345") }
        let manager = SessionManager(mock: mock)
        manager.startRequestsImmediately = false
        let (data, upload) = (manager.request("http://mock/"), manager.upload(Data("123".utf8), to: "http://mock/"))
        let download = manager.download("http://mock/")
        #expect(data.task?.progress === data.progress && upload.task?.progress === upload.uploadProgress)
        #expect(download.task?.progress === download.progress)
        manager.startRequestsImmediately = true
        for request in [data, upload, download] { request.resume() }
        _ = await (data.serializingData().response, upload.serializingData().response, download.serializingURL().response)
        for task in [data, upload, download].compactMap(\.task) {
            #expect(task.state == .completed && task.progress.fractionCompleted == 1, "\(task.progress)")
        }
    }
}
