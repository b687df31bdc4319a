// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct RetryTests {
    private let server: LoopbackServer
    private let manager = makeManager()

    init() throws {
        server = try LoopbackServer.standard()
    }

    @Test("a failed request is retried after a delay") func delay() async throws {
        manager.retrier = Retrier.attempts(5, delay: 0.1)
        let start = ContinuousClock.now
        let request = manager.request(server.url("/flaky?fail=2")).validate()
        let response = await request.serializingString().response
        #expect(response.value == "Attempt 3")
        #expect(start.duration(to: .now) >= .milliseconds(200))
        #expect(request.retryCount == 2)
        #expect(response.metrics.transactionMetrics.count == 3)
        #expect(server.requestCount == 3)
    }

    @Test("the last failure is reported when the retrier gives up") func lastFailure() async throws {
        manager.retrier = Retrier.attempts(2)
        let response = await manager.request(server.url("/flaky?fail=9")).validate().serializingString().response
        #expect(response.error?.unacceptableStatus == 503)
        #expect(server.requestCount == 3)
    }

    @Test("handlers run once, after the last attempt") func handlersOnce() async throws {
        manager.retrier = Retrier.attempts(3)
        let handled = Log<Int?>()
        manager.request(server.url("/flaky?fail=3")).validate().response { handled.append($0.response?.statusCode) }
            .responseData { handled.append($0.data?.count) }
        await handled.wait(for: 2)
        #expect(handled.elements == [200, "Attempt 4".utf8.count])
    }

    @Test("validations run for each attempt") func validations() async throws {
        manager.retrier = Retrier.attempts(3)
        let statuses = Log<Int>()
        let response = await manager.request(server.url("/flaky?fail=2")).validate { _, response, _ in
            statuses.append(response.statusCode)
            return response.statusCode == 200 ? .success : .failure(TestError("again"))
        }.serializingData().response
        #expect(response.error == nil)
        #expect(statuses.elements == [503, 503, 200])
    }

    @Test("a lost connection is retried") func lostConnection() async throws {
        let attempts = Lock(0)
        let unreliable = try LoopbackServer { _, connection in
            let attempt = attempts.withLock { attempts in
                attempts += 1
                return attempts
            }
            guard attempt < 3 else { return .ok("third") }
            connection.close()
            return nil
        }
        manager.retrier = Retrier.attempts(5)
        let text = try await manager.request(unreliable.url("/")).serializingString().value
        #expect(text == "third")
        #expect(attempts.withLock { $0 } == 3)
    }

    @Test("a body from data or a file is sent again") func repeatableBody() async throws {
        let directory = try TemporaryDirectory()
        let body = GeneratedBody().data(count: 300_000)
        let file = try directory.write(body, to: "body")
        manager.retrier = Retrier.attempts(1)
        for (key, request) in [
            ("data", manager.upload(body, to: server.url("/flaky?fail=1&key=data"))),
            ("file", manager.upload(file, to: server.url("/flaky?fail=1&key=file"))),
        ] {
            let response = await request.validate().serializingString().response
            #expect(response.value == "Attempt 2", "\(key)")
        }
        #expect(server.requests.map(\.bodyChecksum) == [UInt32](repeating: CRC32.checksum(of: body), count: 4))
    }

    @Test("a stream is not sent twice") func stream() async throws {
        manager.retrier = Retrier.attempts(1)
        let response = await manager.upload(InputStream(data: Data(count: 1000)), to: server.url("/flaky")).validate()
            .serializingString().response
        #expect(response.error?.unacceptableStatus == 503)
        #expect(server.requestCount == 1)
    }

    @Test("a retried download contains only the last attempt's bytes")
    func download() async throws {
        let directory = try TemporaryDirectory()
        manager.retrier = Retrier.attempts(1)
        let response = await manager.download(server.url("/flaky?fail=1"), to: directory.file("file")).validate().serializingString()
            .response
        #expect(response.value == "Attempt 2")
        #expect(try contents(of: directory) == ["file"])
    }

    @Test("a retrier's second decision is ignored") func secondDecision() async throws {
        manager.retrier = Retrier { request, _, completion in
            completion(request.retryCount == 0, 0)
            completion(true, 0)
            completion(false, 0)
        }
        let response = await manager.request(server.url("/flaky?fail=9")).validate().serializingString().response
        #expect(response.error?.unacceptableStatus == 503)
        #expect(server.requestCount == 2)
    }

    @Test("a request is cancelled while its retry is pending") func cancelledBeforeRetry() async throws {
        let asked = Log<Void>()
        manager.retrier = Retrier { _, _, completion in
            completion(true, 3600)
            asked.append(())
        }
        let request = manager.request(server.url("/status/503")).validate()
        let handled = Log<Bool>()
        request.response { handled.append($0.error?.isCancelled == true) }
        await asked.wait(for: 1)
        request.cancel()
        await handled.wait(for: 1)
        #expect(handled.elements == [true])
        #expect(server.requestCount == 1)
    }

    @Test("a retrier that never decides does not outlive the session") func neverDecides() async throws {
        let asked = Log<Void>()
        var manager: SessionManager? = makeManager()
        manager?.retrier = Retrier { _, _, _ in asked.append(()) }
        let handled = Log<Bool>()
        manager?.request(server.url("/status/503")).validate().response { handled.append($0.error?.isSessionInvalidated == true) }
        await asked.wait(for: 1)
        manager = nil
        await handled.wait(for: 1)
        #expect(handled.elements == [true])
    }

    @Test("an adapter's error is passed to the retrier, an encoding error is not") func adapterAndEncoding()
        async throws
    {
        let asked = Log<Bool>()
        manager.retrier = Retrier { request, error, completion in
            asked.append(error is TestError)
            completion(request.retryCount == 0, 0)
        }
        manager.adapter = Adapter { _ in throw TestError("adapter") }
        let adapted = await manager.request(server.url("/echo")).serializingData().response
        #expect(adapted.error as? TestError == TestError("adapter"))
        let encoded = await manager.request("not a url").serializingData().response
        #expect(encoded.error is CurlewError)
        #expect(asked.elements.count >= 1)
        #expect(asked.elements.allSatisfy { $0 })
        #expect(server.requestCount == 0)
    }
}
