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
}
