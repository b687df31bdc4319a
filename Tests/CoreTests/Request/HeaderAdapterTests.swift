// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct HeaderAdapterTests {
    /// Sets a field to its arguments.
    private struct Naming: HeaderAdapter {
        let name: String

        func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) throws {
            guard name != "Throw" else { throw UserError(number: 7) }
            headers[name] = "\(method) \(url)"
            headers["Remove"] = nil
        }
    }

    @Test("requests created from parts and from a URLRequest get the same fields")
    func fields() async throws {
        let mock = MockTransport.answering(200)
        let manager = SessionManager(mock: mock)
        manager.adapter = Naming(name: "Token")
        let headers: HTTPHeaders = ["Remove": "1", "Keep": "2"]
        let urlRequest = try URLRequest(url: "http://mock/path", method: .put, headers: headers)
        for request in [manager.request("http://mock/path", method: .put, headers: headers), manager.request(urlRequest)] {
            _ = await request.serializingData().response
        }
        for started in mock.started.all {
            #expect(started.request.headers.dictionary == ["Token": "PUT http://mock/path", "Keep": "2"])
        }
        #expect(mock.started.count == 2)
    }

    @Test("repeated fields are preserved in a request created from parts")
    func repeated() async {
        let mock = MockTransport.answering(200)
        let manager = SessionManager(mock: mock)
        manager.adapter = Naming(name: "Token")
        var headers: HTTPHeaders = ["A": "1"]
        headers.append(name: "A", value: "2")
        _ = await manager.request("http://mock/", headers: headers).serializingData().response
        #expect(await mock.started[0].request.headers.map(\.value) == ["1", "2", "GET http://mock/"])
    }

    @Test("an error or an invalid field fails the request", arguments: ["Throw", "In valid"])
    func failures(_ name: String) async throws {
        let manager = SessionManager(mock: .answering(200))
        manager.adapter = Naming(name: name)
        let urlRequest = try URLRequest(url: "http://mock/", method: .get)
        for request in [manager.request("http://mock/"), manager.request(urlRequest)] {
            let error = await request.serializingData().response.error
            if name == "Throw" {
                #expect(error as? UserError == UserError(number: 7))
            } else {
                #expect(error is CurlewError)
            }
        }
    }

    @Test("adapters are combined unless one needs the whole request")
    func composed() throws {
        let both = Interceptor(adapters: [Naming(name: "A"), Interceptor(adapters: [Naming(name: "B")])], retriers: [])
        let all = Interceptor(adapters: [both], interceptors: [RetryPolicy()])
        var headers = HTTPHeaders()
        try #require(all.headerAdapter).adapt(&headers, of: .get, to: "u")
        #expect(headers.map(\.name) == ["A", "B"])
        #expect(Interceptor(adapters: [both, Adapter { $0 }]).headerAdapter == nil)
        #expect(Interceptor(adapters: [both, RequestCompression.gzip]).headerAdapter == nil)
    }

    @Test("the request's adapter is applied before the session's, for every combination of types")
    func order() async {
        let mock = MockTransport.answering(200)
        let manager = SessionManager(mock: mock)
        manager.adapter = Naming(name: "Token")
        let own = Adapter { request in
            var request = request
            request.setValue("own", forHTTPHeaderField: "Token")
            return request
        }
        _ = await manager.request("http://mock/", interceptor: own).serializingData().response
        #expect(await mock.started[0].request.headers["Token"] == "GET http://mock/")
    }

    /// A header adapter that is also an interceptor, and implements one method only.
    private struct Both: RequestInterceptor, HeaderAdapter {
        func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) { headers["Token"] = "both" }
    }

    @Test("an interceptor may be a header adapter", arguments: [true, false])
    func interceptor(isWhole: Bool) async throws {
        let mock = MockTransport.answering(200)
        let manager = SessionManager(mock: mock)
        if isWhole { manager.adapter = Adapter { $0 } }
        _ = await manager.request("http://mock/", interceptor: Both()).serializingData().response
        #expect(await mock.started[0].request.headers["Token"] == "both")
        #expect(Both().headerAdapter != nil)
    }
}
