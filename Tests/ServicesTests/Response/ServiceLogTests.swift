// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewServices

private var isDebugBuild: Bool {
    #if DEBUG
    true
    #else
    false
    #endif
}

/// The log is shared by the whole process, so each test filters the messages by its own server.
@Suite(.timeLimit(.minutes(1)), .serialized, .enabled(if: isDebugBuild))
struct ServiceLogTests {
    private let messages = Lock<[String]>([])
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer { request, _ in
            guard request.path != "/missing" else { return .status(404) }
            return .ok(#"{"b": 1, "a": "x"}"#, type: "application/json")
        }
    }

    /// Returns the messages logged for a request, without the server's address.
    private func logged(_ request: TestRequest) async -> [String] {
        let messages = messages
        ServiceLog.setHandler { message in messages.withLock { $0.append(message) } }
        defer { ServiceLog.setHandler(nil) }
        _ = await request.schedule(with: TestService(server)).result
        let address = server.url("")
        // The next character is compared too, because another server's port may start with this one's digits.
        return messages.withLock { $0 }.filter { $0.contains(address + "/") || $0.contains(address + "\n") }
            .map { $0.replacingOccurrences(of: address, with: "") }
    }

    @Test func requestAndResponseAreLoggedWithoutCredentials() async {
        defer { server.stop() }
        let request = TestRequest(method: .post, header: ["Authorization": "Bearer secret"], body: HTTPData.JSON(["k": "v"]))
        let messages = await logged(request)
        #expect(messages.count == 2)
        #expect(messages.first?.hasPrefix("Scheduled POST \n") == true)
        #expect(messages.first?.contains("Authorization: <hidden>") == true && messages.first?.contains("\"k\" : \"v\"") == true)
        #expect(messages.last?.hasPrefix("Response 200 to POST \n") == true)
        #expect(messages.last?.hasSuffix("{\n  \"a\" : \"x\",\n  \"b\" : 1\n}") == true)
    }

    @Test func sensitiveNamesAreRedacted() async {
        defer { server.stop() }
        Redaction(headers: ["X-Log-Key"], queryItems: ["log_pin"]).register()
        let request = TestRequest(
            method: .post, routes: "x", query: ["log_pin": "s3cret"], header: ["X-Log-Key": "s3cret"],
            body: HTTPData.JSON(["log_pin": "s3cret", "k": "\u{9B}"]))
        let messages = await logged(request)
        #expect(messages.count == 2 && messages.allSatisfy { !$0.contains("s3cret") && !$0.contains("\u{9B}") })
        #expect(messages.first?.hasPrefix("Scheduled POST /x?log_pin=<hidden>\n") == true)
        #expect(messages.first?.contains(#""log_pin" : "<hidden>""#) == true)
        let query: HTTPQuery = ["log_pin": "s3cret", "a": 1]
        let any = AnyServiceRequest(url: "http://u:s3cret@h", query: query, body: HTTPData.URLEncoded(["log_pin": "s3cret"]))
        for value in [query, any, AnyHTTPService(at: "http://u:s3cret@h", header: ["X-Log-Key": "s3cret"]), any.body] as [Any] {
            var text = "\(value) \(String(reflecting: value)) "
            dump(value, to: &text)
            #expect(!text.contains("s3cret"), "\(text)")
        }
        #expect("\(query)" == "log_pin=<hidden>&a=1")
        let error = ServiceError.requestFailed(statusCode: 500, response: Data("s3cret".utf8))
        let shown = Mirror(reflecting: error).children.map { ($0.label, $0.value as? String) }
        #expect(shown.count == 1 && shown[0] == ("requestFailed", error.description))
    }

    @Test func failuresThatNameTheirRequestAreLoggedOnce() async {
        server.stop()
        #expect(
            await logged(TestRequest(routes: "missing")).last
                == "Failed GET /missing (attempt 1): the connection to the host could not be established, or was lost")
    }

    @Test func failuresAreLogged() async {
        defer { server.stop() }
        #expect(
            await logged(TestRequest(routes: "missing")).last
                == "Failed GET /missing (attempt 1): status 404 is not accepted by the request; the response body has 0 bytes")
    }

    @Test func nothingIsLoggedWhenSilenced() async {
        defer { server.stop() }
        ServiceLog.silence(true)
        #expect(await logged(TestRequest()).isEmpty)
        ServiceLog.silence(false)
        #expect(await logged(TestRequest()).count == 2)
    }
}

// With the package trait only.
#if Logging
import Logging

@Suite(.timeLimit(.minutes(1)))
struct ServiceLoggingTests {
    /// Records the messages of a logger.
    private struct RecordingHandler: LogHandler {
        let notes: Lock<[String]>
        var metadata = Logger.Metadata()
        var logLevel = Logger.Level.debug

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            notes.withLock { $0.append("\(event.level) \(event.message)") }
        }
    }

    @Test func messagesReachALoggerAsDebug() {
        let notes = Lock<[String]>([])
        ServiceLog.handler(of: Logger(label: "test") { _ in RecordingHandler(notes: notes) })("sent")
        #expect(notes.withLock { $0 } == ["debug sent"])
        #expect(ServiceLog.loggingHandler != nil)
    }
}
#endif
