// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct RequestInterceptorTests {
    /// Adds its name to the header `Trace`.
    private static func tracing(_ name: String) -> Adapter {
        Adapter { request in
            var request = request
            request.setValue((request.value(forHTTPHeaderField: "Trace") ?? "") + name, forHTTPHeaderField: "Trace")
            return request
        }
    }

    /// Records its calls, and decides.
    private static func noting(_ name: String, in log: Inbox<String>, retry: Bool) -> Retrier {
        Retrier { _, _, _, completion in
            log.put(name)
            completion(retry, 0)
        }
    }

    @Test("a request's interceptor adapts before its session's")
    func adaptOrder() async {
        let mock = MockTransport.answering(200)
        let manager = SessionManager(mock: mock)
        manager.adapter = Self.tracing("session")
        _ = await manager.request("http://mock/", interceptor: Self.tracing("request ")).serializingData().response
        _ = await manager.request("http://mock/").serializingData().response
        #expect(mock.started.all.map { $0.request.headers["Trace"] } == ["request session", "session"])
    }

    @Test("every type of request accepts an interceptor")
    func everyKind() async throws {
        let mock = MockTransport.answering(200)
        let manager = SessionManager(mock: mock)
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("abc".utf8), to: "file")
        let one = Self.tracing("1")
        let url = try URLRequest(url: "http://mock/", method: .get)
        let requests: [Request] = [
            manager.request("http://mock/", interceptor: one), manager.request(url, interceptor: one),
            manager.streamRequest("http://mock/", interceptor: one), manager.streamRequest(url, interceptor: one),
            manager.download("http://mock/", interceptor: one), manager.download(url, interceptor: one),
            manager.download("http://mock/", interceptor: one, to: directory.file("1")),
            manager.download(url, interceptor: one, to: directory.file("2")),
            manager.upload(Data(), to: "http://mock/", interceptor: one), manager.upload(Data(), with: url, interceptor: one),
            manager.upload(file, to: "http://mock/", interceptor: one), manager.upload(file, with: url, interceptor: one),
            manager.upload(InputStream(data: Data()), to: "http://mock/", interceptor: one),
            manager.upload(InputStream(data: Data()), with: url, interceptor: one),
        ]
        let started = await mock.started.first(requests.count)
        #expect(started.map { $0.request.headers["Trace"] } == [String?](repeating: "1", count: requests.count))
    }

    @Test("a request's retrier is called before its session's, until one retries")
    func retryOrder() async {
        let mock = MockTransport { _ in .failure() }
        let manager = SessionManager(mock: mock)
        let log = Inbox<String>()
        manager.retrier = Self.noting("session", in: log, retry: false)
        let interceptor = Interceptor(retriers: [Self.noting("first", in: log, retry: false), Self.noting("second", in: log, retry: false)])
        _ = await manager.request("http://mock/", interceptor: interceptor).serializingData().response
        #expect(log.all == ["first", "second", "session"])
        let eager = Retrier { _, request, _, completion in
            log.put("eager")
            completion(request.retryCount == 0, 0)
        }
        _ = await manager.request("http://mock/", interceptor: eager).serializingData().response
        #expect(log.all.dropFirst(3) == ["eager", "eager", "session"])
    }

    @Test("Interceptor adapts in order; interceptors come last, as adapters and as retriers")
    func composition() async throws {
        let log = Inbox<String>()
        let both = Interceptor(adapter: Self.tracing("c"), retrier: Self.noting("2", in: log, retry: false))
        let interceptor = Interceptor(
            adapters: [Self.tracing("a"), Self.tracing("b")], retriers: [Self.noting("1", in: log, retry: false)], interceptors: [both])
        let adapted = try interceptor.adapt(URLRequest(url: "http://mock/", method: .get))
        #expect(adapted.value(forHTTPHeaderField: "Trace") == "abc")
        let manager = SessionManager(mock: MockTransport { _ in .failure() })
        manager.retrier = interceptor
        _ = await manager.request("http://mock/").serializingData().response
        #expect(log.all == ["1", "2"])
    }

    @Test("the first adapter that throws fails the request")
    func throwing() async {
        let manager = SessionManager(mock: .answering(200))
        let log = Inbox<Void>()
        let interceptor = Interceptor(adapters: [
            Adapter { _ in throw UserError(number: 1) },
            Adapter { request in
                log.put(())
                return request
            },
        ])
        let response = await manager.request("http://mock/", interceptor: interceptor).serializingData().response
        #expect(response.error as? UserError == UserError(number: 1))
        #expect(log.all.isEmpty)
    }

    @Test("only the first completion of each retrier counts")
    func answersTwice() async {
        let mock = MockTransport { _ in .failure() }
        let manager = SessionManager(mock: mock)
        let log = Inbox<String>()
        let restless = Retrier { _, _, _, completion in
            completion(false, 0)
            completion(true, 0)
            completion(false, 0)
        }
        manager.retrier = Interceptor(retriers: [restless, Self.noting("next", in: log, retry: false)])
        _ = await manager.request("http://mock/").serializingData().response
        #expect(log.all == ["next"])
        #expect(mock.started.count == 1)
    }

    @Test("after a cancellation no further retrier is called")
    func cancelledMeanwhile() async {
        let manager = SessionManager(mock: MockTransport { _ in .failure() })
        let answers = Inbox<RequestRetryCompletion>()
        defer { answers.empty() }
        let slow = Retrier { _, _, _, completion in answers.put(completion) }
        manager.retrier = Interceptor(retriers: [slow, Retrier { _, _, _, completion in completion(true, 0) }])
        let request = manager.request("http://mock/")
        async let error = request.serializingData().response.error
        let answer = await answers[0]
        request.cancel()
        #expect(isCancelled(await error))
        answer(false, 0)
        manager.settle()
        #expect(request.retryCount == 0)
    }

    @Test("the default implementations change nothing and do not retry")
    func defaults() async throws {
        struct Idle: RequestInterceptor {}
        let mock = MockTransport { _ in .failure() }
        let manager = SessionManager(mock: mock)
        _ = await manager.request("http://mock/", headers: ["A": "b"], interceptor: Idle()).serializingData().response
        #expect(mock.started.count == 1)
        #expect(mock.started.all.first?.request.headers["A"] == "b")
    }

    @Test("a retrier that never completes retains neither the request nor the manager")
    func leaks() async {
        let answers = Inbox<RequestRetryCompletion>()
        defer { answers.empty() }
        let slow = Retrier { _, _, _, completion in answers.put(completion) }
        var manager: SessionManager? = SessionManager(mock: MockTransport { _ in .failure() })
        let errors = Inbox<(any Error)?>()
        let (managerBox, requestBox): (WeakBox<SessionManager>?, WeakBox<Request>?) = {
            guard let manager else { return (nil, nil) }
            let request = manager.request("http://mock/", interceptor: Interceptor(retriers: [slow, slow]))
            request.response { errors.put($0.error) }
            return (WeakBox(manager), WeakBox(request))
        }()
        _ = await answers[0]
        manager = nil
        #expect(isInvalidated(await errors[0]))
        #expect(await eventually { managerBox?.isEmpty == true && requestBox?.isEmpty == true })
    }
}
