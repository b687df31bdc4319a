// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct SessionRequestsTests {
    @Test("the requests of a manager are listed in order, once each, until they have finished") func listed() async {
        let mock = MockTransport { $0.url.hasSuffix("/whole") ? .response() : [] }
        let manager = SessionManager(mock: mock)
        #expect(manager.requests.isEmpty)
        let requests: [Request] = [
            manager.request("http://mock/endless"), manager.download("http://mock/endless"),
            manager.upload(Data(), to: "http://mock/endless"),
        ]
        requests[1].suspend()
        _ = await manager.request("http://mock/whole").serializingData().response
        let unmade = manager.request("http://a b/")
        #expect(await unmade.serializingData().response.error != nil)
        #expect(manager.requests.map { ObjectIdentifier($0) } == requests.map { ObjectIdentifier($0) })
    }

    @Test("all requests are cancelled, in each state, and the session stays") func cancelled() async {
        let mock = MockTransport { $0.url.hasSuffix("/whole") ? .response() : $0.url.hasSuffix("/fails") ? .failure() : [] }
        let manager = SessionManager(mock: mock)
        let asked = Inbox<Void>()
        manager.retrier = Retrying { _, _, completion in
            completion(true, 1000)
            asked.put(())
        }
        let waiting = manager.request("http://mock/fails")
        _ = await asked.first(1)
        let running = manager.download("http://mock/endless")
        let suspended = manager.request("http://mock/endless")
        suspended.suspend()
        manager.startRequestsImmediately = false
        let unstarted = manager.request("http://mock/endless")
        #expect(manager.requests.count == 4)
        manager.cancelAllRequests()
        for request in [waiting, suspended, unstarted] { #expect(isCancelled(await request.serializingData().response.error)) }
        #expect(isCancelled(await running.serializingURL().response.error))
        #expect(manager.requests.isEmpty)
        manager.startRequestsImmediately = true
        #expect(await manager.request("http://mock/whole").serializingData().response.error == nil)
    }

    @Test("a session ends when its last request has finished, and refuses others until then") func finished() async {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        let ended = Inbox<Void>()
        manager.delegate.sessionDidBecomeInvalidWithError = { _, _ in ended.put(()) }
        let running = manager.request("http://mock/")
        let exchange = await mock.started[0]
        manager.startRequestsImmediately = false
        let unstarted = manager.request("http://mock/")
        manager.session.finishTasksAndInvalidate()
        guard case .sessionShutDown? = await manager.request("http://mock/").serializingData().response.error as? CurlewError else {
            Issue.record("not refused")
            return
        }
        exchange.respond()
        #expect(await running.serializingData().response.error == nil)
        manager.settle()
        #expect(!manager.session.isInvalidated && ended.all.isEmpty)
        unstarted.resume()
        await mock.started[1].respond()
        #expect(await unstarted.serializingData().response.error == nil)
        _ = await ended.first(1)
        #expect(manager.session.isInvalidated)
    }

    @Test("a session without requests ends at once, and once") func finishedAtOnce() async {
        let manager = SessionManager(mock: MockTransport())
        let ended = Inbox<Void>()
        manager.delegate.sessionDidBecomeInvalidWithError = { _, _ in ended.put(()) }
        manager.session.finishTasksAndInvalidate()
        manager.session.finishTasksAndInvalidate()
        _ = await ended.first(1)
        await manager.shutdown(gracePeriod: .zero)
        manager.settle()
        #expect(ended.all.count == 1)
    }
}
