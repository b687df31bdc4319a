// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading
import Dispatch
import Testing

@testable import CurlewCore

/// Responds according to the request's path.
private final class Stub: URLProtocol {
    static let stopped = Inbox<String>()

    override class func canInit(with request: URLRequest) -> Bool { request.url?.host == "stub" }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest {
        var canonical = request
        canonical.setValue("yes", forHTTPHeaderField: "Canonical")
        return canonical
    }

    override func startLoading() {
        guard let url = request.url, let client else { return }
        switch url.path {
        case "/error": client.urlProtocol(self, didFailWithError: URLError(.cannotFindHost))
        case "/silent": break
        case "/canonical": answer(Data((request.value(forHTTPHeaderField: "Canonical") ?? "").utf8), url, client)
        case "/redirect": redirect(from: url, client)
        case "/large": answer(Data(count: 1_000_000), url, client)
        case "/echo":
            answer(
                Data("\(request.httpMethod ?? "") \(request.value(forHTTPHeaderField: "X") ?? "")".utf8) + (request.httpBody ?? Data()),
                url, client)
        case "/twice":
            answer(Data("once".utf8), url, client)
            answer(Data("again".utf8), url, client)
        default: answer(Data("stubbed".utf8), url, client)
        }
    }

    private func answer(_ data: Data, _ url: URL, _ client: any URLProtocolClient) {
        guard let response = HTTPURLResponse(url: url, statusCode: 202, httpVersion: "HTTP/1.1", headerFields: ["X-Stub": "yes"]) else {
            return
        }
        client.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client.urlProtocol(self, didLoad: data)
        client.urlProtocolDidFinishLoading(self)
    }

    private func redirect(from url: URL, _ client: any URLProtocolClient) {
        guard let target = URL(string: "http://stub/echo"),
            let response = HTTPURLResponse(url: url, statusCode: 302, httpVersion: "HTTP/1.1", headerFields: [:])
        else { return }
        client.urlProtocol(self, wasRedirectedTo: URLRequest(url: target), redirectResponse: response)
    }

    override func stopLoading() { Self.stopped.put(request.url?.query ?? "") }
}

/// Accepts no request.
private final class RefusingProtocol: URLProtocol {
    override class func canInit(with request: URLRequest) -> Bool { false }
}

@Suite(.timeLimit(.minutes(1)), .serialized) struct ProtocolTransportTests {
    private let mock = MockTransport.answering(200, [:], "network")
    private let manager: SessionManager

    init() {
        manager = SessionManager(mock: mock) { $0.protocolClasses = [RefusingProtocol.self, Stub.self] }
    }

    @Test("the first class that accepts a request loads it") func answer() async {
        let response = await manager.request("http://stub/").serializingString().response
        #expect(response.value == "stubbed")
        #expect(response.response?.statusCode == 202)
        #expect(response.response?.allHeaderFields["X-Stub"] as? String == "yes")
        #expect(mock.started.count == 0)
    }

    @Test("other requests are forwarded to the network") func network() async {
        #expect(await manager.request("http://other/").serializingString().response.value == "network")
    }

    @Test("the class gets method, header fields and body") func request() async {
        let response = await manager.upload(Data("body".utf8), to: "http://stub/echo", method: .put, headers: ["X": "y"])
            .serializingString()
            .response
        #expect(response.value == "PUT ybody")
    }

    @Test("the class gets the request that it has made canonical") func canonical() async {
        let request = manager.request("http://stub/canonical")
        #expect(await request.serializingString().response.value == "yes")
        #expect(request.request?.value(forHTTPHeaderField: "Canonical") == nil)
    }

    @Test("the class's error fails the request") func error() async {
        let error = await manager.request("http://stub/error").serializingString().response.error
        #expect((error as? URLError)?.code == .cannotFindHost)
    }

    @Test("the class's redirect is followed") func redirect() async {
        let response = await manager.request("http://stub/redirect").serializingString().response
        #expect(response.value == "GET ")
        #expect(response.metrics.redirectCount == 1)
    }

    @Test("calls after the completion are ignored") func twice() async {
        #expect(await manager.request("http://stub/twice").serializingString().response.value == "once")
    }

    @Test("stopLoading is called when the request completes or is cancelled") func stopping() async {
        let key = "\(UInt64.random(in: .min ... .max))"
        _ = await manager.request("http://stub/?\(key)").serializingString().response
        let request = manager.request("http://stub/silent?\(key)")
        async let response = request.serializingString().response
        request.cancel()
        guard case .cancelled = await response.error as? CurlewError else {
            Issue.record("the request was not cancelled")
            return
        }
        let other = manager.request("http://stub/silent?\(key)")
        manager.invalidateAndCancel()
        guard case .sessionInvalidated = await other.serializingString().response.error as? CurlewError else {
            Issue.record("the request did not fail with the session")
            return
        }
        #expect(Stub.stopped.all.filter { $0 == key }.count >= 1)
        #expect(Stub.stopped.all.filter { $0 == key }.count <= 3)
    }

    @Test("the response is delivered with backpressure") func pauses() async throws {
        var count = 0
        for try await piece in manager.streamRequest("http://stub/large").bodyStream() { count += piece.count }
        #expect(count == 1_000_000)
    }

    @Test("a cancellation reaches the network at any time") func cancellation() async {
        let silent = MockTransport()
        let manager = SessionManager(mock: silent) { $0.protocolClasses = [Stub.self] }
        for _ in 0..<50 {
            let request = manager.request("http://other/")
            request.cancel()
            #expect(await request.serializingString().response.error != nil)
        }
        let request = manager.request("http://other/")
        _ = await silent.started.first(1)
        request.cancel()
        #expect(await request.serializingString().response.error != nil)
    }

    @Test("Foundation's own classes are not used") func foundations() {
        let configuration = URLSessionConfiguration.default
        configuration.protocolClasses?.insert(Stub.self, at: 0)
        #expect(SessionConfiguration(configuration).protocolClasses.map { ObjectIdentifier($0) } == [ObjectIdentifier(Stub.self)])
    }
}
