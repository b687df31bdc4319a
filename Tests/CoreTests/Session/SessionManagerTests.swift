// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Dispatch
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct SessionManagerTests {
    /// Counts what goes through the functions that can be overridden.
    private final class Counting: SessionManager, @unchecked Sendable {
        let counts = Lock<[String: Int]>([:])

        private func count(_ name: String) { counts.withLock { $0[name, default: 0] += 1 } }

        @discardableResult override func request(_ urlRequest: any URLRequestConvertible) -> DataRequest {
            count("request")
            return super.request(urlRequest)
        }

        @discardableResult override func download(
            _ urlRequest: any URLRequestConvertible, to destination: DownloadRequest.DownloadFileDestination?
        ) -> DownloadRequest {
            count("download")
            return super.download(urlRequest, to: destination)
        }

        @discardableResult override func upload(_ data: Data, with urlRequest: any URLRequestConvertible) -> UploadRequest {
            count("data")
            return super.upload(data, with: urlRequest)
        }

        @discardableResult override func upload(_ fileURL: URL, with urlRequest: any URLRequestConvertible) -> UploadRequest {
            count("file")
            return super.upload(fileURL, with: urlRequest)
        }

        @discardableResult override func upload(_ stream: InputStream, with urlRequest: any URLRequestConvertible) -> UploadRequest {
            count("stream")
            return super.upload(stream, with: urlRequest)
        }
    }

    @Test("overriding one function of a kind catches all of that kind") func overridingCatchesAll() {
        let manager = Counting(transport: MockTransport.answering())
        let url = "http://mock/"
        manager.request(url)
        manager.request(url, parameters: ["a": 1])
        manager.request(URLRequest(url: URL(fileURLWithPath: "/")))
        manager.download(url)
        manager.download(url, parameters: ["a": 1], to: { url, _ in (url, []) })
        manager.upload(Data(), to: url)
        manager.upload(URL(fileURLWithPath: "/none"), to: url)
        manager.upload(InputStream(data: Data()), to: url)
        #expect(manager.counts.withLock { $0 } == ["request": 3, "download": 2, "data": 1, "file": 1, "stream": 1])
    }

    @Test("an override sees requests with an interceptor and options, which reach the original") func overridingWithSettings() {
        let manager = Counting(transport: MockTransport.answering())
        let url = "http://mock/"
        let (file, target) = (URL(fileURLWithPath: "/none"), URL(fileURLWithPath: "/nowhere/file"))
        let options = RequestOptions(name: "name")
        let interceptor = Interceptor()
        let requests: [Request] = [
            manager.request(url, options: options), manager.request(url, parameters: ["a": 1], interceptor: interceptor, options: options),
            manager.request(URLRequest(url: file), options: options), manager.download(url, requestOptions: options),
            manager.download(url, interceptor: interceptor, requestOptions: options, to: { url, _ in (url, []) }),
            manager.download(url, requestOptions: options, to: target), manager.upload(Data(), to: url, options: options),
            manager.upload(file, to: url, options: options), manager.upload(InputStream(data: Data()), to: url, options: options),
        ]
        #expect(requests.map(\.name) == Array(repeating: "name", count: 9))
        #expect(manager.counts.withLock { $0 } == ["request": 3, "download": 3, "data": 1, "file": 1, "stream": 1])
        manager.download(url, to: target)
        #expect(manager.counts.withLock { $0["download"] } == 4)
        #expect(Handover.current == nil)
    }

    /// A manager whose override calls the function with an interceptor, which calls it.
    private final class Adding: SessionManager, @unchecked Sendable {  // has a lock only
        let count = Lock(0)

        @discardableResult override func request(_ urlRequest: any URLRequestConvertible) -> DataRequest {
            count.withLock { $0 += 1 }
            return request(urlRequest, interceptor: Interceptor(), options: RequestOptions(name: "override"))
        }
    }

    @Test("an override that adds an interceptor itself does not call itself for ever") func overridingWithCallback() {
        let manager = Adding(transport: MockTransport.answering())
        #expect(manager.request("http://mock/").name == "override")
        #expect(manager.count.withLock { $0 } <= 2)
    }

    @Test("requests that are made while a request is converted do not get its settings") func overridingNested() {
        struct Nested: URLRequestConvertible {
            let manager: SessionManager
            let inner: Lock<String?>

            func asURLRequest() throws -> URLRequest {
                let name = manager.request(URLRequest(url: URL(fileURLWithPath: "/"))).name
                inner.withLock { $0 = name ?? "none" }
                return URLRequest(url: try "http://mock/".asURL())
            }
        }
        let manager = Counting(transport: MockTransport.answering())
        let inner = Lock<String?>(nil)
        #expect(manager.request(Nested(manager: manager, inner: inner), options: RequestOptions(name: "outer")).name == "outer")
        #expect(inner.withLock { $0 } == "none")
    }

    // MARK: Shutdown

    @Test("a transport that has ended with its shutdown needs nothing more") func mockShutdown() async {
        let transport = MockTransport { $0.url.hasSuffix("/whole") ? .response() : [] }
        let manager = SessionManager(mock: transport)
        let whole = manager.request("http://mock/whole")
        let endless = manager.request("http://mock/endless")
        #expect(await eventually { whole.task?.state == .completed })
        await manager.shutdown(gracePeriod: .milliseconds(50))
        #expect(await whole.serializingData().response.error == nil)
        #expect(isShutDown(await endless.serializingData().response.error))
    }

    @Test("requests in flight wait for adapters and decisions during the grace period") func waiting() async {
        let adapted = Inbox<Void>()
        let decide = Inbox<@Sendable (URLRequest?) -> Void>()
        let transport = MockTransport { $0.url.hasSuffix("/next") ? .response(200) : .response(302, ["Location": "/next"]) }
        let manager = SessionManager(mock: transport)
        manager.delegate.taskWillPerformHTTPRedirection = { _, _, _, request, completion in
            decide.put { completion($0 ?? request) }
            adapted.put(())
        }
        let request = manager.request("http://mock/")
        _ = await adapted.first(1)
        async let end: Void = manager.shutdown(gracePeriod: .seconds(60))
        for completion in await decide.first(1) { completion(nil) }
        #expect(await request.serializingData().response.response?.statusCode == 200)
        await end
    }

    @Test("a decision that does not arrive ends with the grace period") func undecided() async {
        let asked = Inbox<Void>()
        let manager = SessionManager(mock: .answering(302, ["Location": "/next"]))
        manager.delegate.taskWillPerformHTTPRedirection = { _, _, _, _, _ in asked.put(()) }
        let request = manager.request("http://mock/")
        _ = await asked.first(1)
        await manager.shutdown(gracePeriod: .milliseconds(50))
        #expect(isShutDown(await request.serializingData().response.error))
    }

    private final class EndMonitor: EventMonitor {
        let ends = Lock(0)

        func requestDidFinish(_ request: Request) { ends.withLock { $0 += 1 } }
    }

    @Test("a shutdown that begins when the last request is released ends after its monitors have been told") func lastRequest() async {
        let monitor = EndMonitor()
        let manager = SessionManager(mock: .answering(200)) { $0.eventMonitors = [monitor] }
        let request = manager.request("http://mock/")
        let seen = Inbox<Int>()
        let isShutDown = DispatchSemaphore(value: 0)
        request.driver.addWaiter(
            .closure {
                Task {
                    await manager.shutdown(gracePeriod: .seconds(60))
                    seen.put(monitor.ends.withLock { $0 })
                    isShutDown.signal()
                }
                // Holds the thread that is about to tell the monitors: a shutdown that does not wait for it ends here.
                _ = isShutDown.wait(timeout: .now() + .milliseconds(300))
            }, to: request)
        #expect(await seen.first(1) == [1])
    }

    private func isShutDown(_ error: (any Error)?) -> Bool {
        if case CurlewError.sessionShutDown? = error { true } else { false }
    }
}
