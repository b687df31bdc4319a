// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Dispatch
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct RequestAdapterTests {
    @Test("the adapter is called at creation and for each retry, with the original")
    func calls() async {
        let mock = MockTransport.answering(inTurn: [.failure(), .failure(), .response(200)])
        let manager = SessionManager(mock: mock)
        let seen = Inbox<String?>()
        manager.adapter = Adapting { request in
            seen.put(request.value(forHTTPHeaderField: "Token"))
            var request = request
            request.setValue("\(seen.count)", forHTTPHeaderField: "Token")
            return request
        }
        manager.retrier = Retrying { _, _, completion in completion(true, 0) }
        let request = manager.request("http://mock/")
        _ = await request.serializingData().response
        #expect(seen.all == [nil, nil, nil])
        #expect(mock.started.all.map { $0.request.headers["Token"] } == ["1", "2", "3"])
        #expect(request.request?.value(forHTTPHeaderField: "Token") == "3")
    }

    @Test("the adapter's error reaches the handlers unchanged, with the original request")
    func throwing() async {
        let manager = SessionManager(mock: .answering(200))
        manager.adapter = Adapting { _ in throw UserError(number: 9) }
        let response = await manager.request("http://mock/path").serializingData().response
        #expect(response.error as? UserError == UserError(number: 9))
        #expect(response.request?.url?.path == "/path")
        #expect(response.response == nil)
        #expect(response.data == Data())
    }

    @Test("the adapter is not called for raw connections")
    func rawStream() async {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        manager.adapter = Adapting { _ in throw UserError() }
        manager.stream(withHostName: "mock", port: 1)
        #expect(await mock.opened[0].request.host == "mock")
    }
}
