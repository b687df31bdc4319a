// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHAR
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import CurlewURLSession
import Testing

/// Tells what it is told of.
private final class CountingInstrument: ExchangeInstrument {
    let urls = Inbox<String>()

    func willStart(_ exchange: OutgoingExchange) -> (any ExchangeObservation)? {
        urls.put(exchange.url)
        return nil
    }
}

private final class CountingMonitor: EventMonitor {
    let ended = Inbox<String>()

    func requestDidFinish(_ request: Request) { ended.put(request.request?.url?.path ?? "") }
}

@Suite(.timeLimit(.minutes(1))) struct MockSessionTests {
    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    @Test func `a session on a mock has its responses, and the mock its requests`() async throws {
        let mock = MockTransport()
        mock.stub(.get, "https://api.test/users/*", respond: .text(#"{"name":"curlew"}"#))
        let session = URLSession(mock: mock)
        let (data, response) = try await session.data(from: url("https://api.test/users/1"))
        #expect(String(decoding: data, as: UTF8.self).contains("curlew"))
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        #expect(mock.requests.map(\.url) == ["https://api.test/users/1"])
    }

    @Test func `a session on mock responses gets one after the other, with errors as on the network`() async throws {
        let session = URLSession(mock: .text("first"), .failure(.idleTimeout), .status(503))
        #expect(try await session.data(from: url("http://a.test/")).0 == Data("first".utf8))
        let error = await #expect(throws: URLError.self) { _ = try await session.data(from: url("http://a.test/")) }
        #expect(error?.code == .timedOut)
        #expect((try await session.data(from: url("http://a.test/")).1 as? HTTPURLResponse)?.statusCode == 503)
        #expect((try await session.data(from: url("http://a.test/")).1 as? HTTPURLResponse)?.statusCode == 503)
    }

    @Test func `handlers, uploads and downloads work on a mock`() async throws {
        let mock = MockTransport(.text("mocked"))
        let session = URLSession(mock: mock)
        let handled = Inbox<Data?>()
        session.dataTask(with: try url("http://a.test/")) { data, _, _ in handled.put(data) }.resume()
        #expect(await handled[0] == Data("mocked".utf8))
        var request = try URLRequest(url: url("http://a.test/up"))
        request.httpMethod = "PUT"
        _ = try await session.upload(for: request, from: Data("sent".utf8))
        #expect(mock.requests.last?.body == Data("sent".utf8))
        let (file, _) = try await session.download(from: url("http://a.test/file"))
        defer { try? FileManager.default.removeItem(at: file) }
        #expect(try Data(contentsOf: file) == Data("mocked".utf8))
    }

    @Test func `exchanges are recorded and replayed`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let cassette = Cassette([])
        let target = try url(server.url("/bytes/9"))
        let recorded = try await URLSession(transport: RecordingTransport(cassette)).data(from: target).0
        try await cassette.flush()
        let replay = URLSession(transport: try ReplayTransport(cassette))
        #expect(try await replay.data(from: target).0 == recorded)
        #expect(server.requestCount == 1)
    }

    @Test func `a configuration's classes come before a mock`() async throws {
        let (host, _) = ScriptedProtocol.script { $0.respond("class") }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [ScriptedProtocol.self]
        let session = URLSession(mock: MockTransport(.text("mock")), configuration: configuration)
        #expect(try await session.data(from: url("http://\(host)/")).0 == Data("class".utf8))
        #expect(try await session.data(from: url("http://other.test/")).0 == Data("mock".utf8))
    }

    // MARK: What observes sessions

    // U2.6
    @Test func `monitors, instruments and archives observe a session by its configuration`() async throws {
        let server = try LoopbackServer.standard()
        defer { server.stop() }
        let (recorder, instrument, monitor) = (HARRecorder(), CountingInstrument(), CountingMonitor())
        let configuration = URLSessionConfiguration.ephemeral
        configuration.curlew.eventMonitors = [recorder, monitor]
        configuration.curlew.instruments = [instrument]
        let session = URLSession(configuration: configuration)
        _ = try await session.data(from: url(server.url("/redirect/1")))
        #expect(instrument.urls.all == [server.url("/redirect/1"), server.url("/json")])
        #expect(await eventually { recorder.count == 2 })
        let archive = String(decoding: try #require(recorder.data), as: UTF8.self)
        #expect(archive.contains("/redirect/1") && archive.contains("/json"))
        #expect(await monitor.ended.first(1).count == 1)
    }
}
