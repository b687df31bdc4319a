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

/// The log is one for the whole process: the tests look at what names their own server.
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

    /// What is told about a request, with the server's address taken out.
    private func told(_ request: TestRequest) async -> [String] {
        let messages = messages
        ServiceLog.setHandler { message in messages.withLock { $0.append(message) } }
        defer { ServiceLog.setHandler(nil) }
        _ = await request.schedule(with: TestService(server)).result
        let address = server.url("")
        // The next character, as another server's port may begin with this one's.
        return messages.withLock { $0 }.filter { $0.contains(address + "/") || $0.contains(address + "\n") }
            .map { $0.replacingOccurrences(of: address, with: "") }
    }

    @Test func requestAndResponseAreToldWithoutCredentials() async {
        defer { server.stop() }
        let request = TestRequest(method: .post, header: ["Authorization": "Bearer secret"], body: HTTPData.JSON(["k": "v"]))
        let told = await told(request)
        #expect(told.count == 2)
        #expect(told.first?.hasPrefix("Scheduled POST \n") == true)
        #expect(told.first?.contains("Authorization: <hidden>") == true && told.first?.contains("\"k\" : \"v\"") == true)
        #expect(told.last?.hasPrefix("Response 200 to POST \n") == true)
        #expect(told.last?.hasSuffix("{\n  \"a\" : \"x\",\n  \"b\" : 1\n}") == true)
    }

    @Test func whatIsMarkedIsNotTold() async {
        defer { server.stop() }
        Redaction(headers: ["X-Log-Key"], queryItems: ["log_pin"]).register()
        let request = TestRequest(
            method: .post, routes: "x", query: ["log_pin": "s3cret"], header: ["X-Log-Key": "s3cret"],
            body: HTTPData.JSON(["log_pin": "s3cret", "k": "\u{9B}"]))
        let told = await told(request)
        #expect(told.count == 2 && told.allSatisfy { !$0.contains("s3cret") && !$0.contains("\u{9B}") })
        #expect(told.first?.hasPrefix("Scheduled POST /x?log_pin=<hidden>\n") == true)
        #expect(told.first?.contains(#""log_pin" : "<hidden>""#) == true)
        let query: HTTPQuery = ["log_pin": "s3cret", "a": 1]
        let any = AnyServiceRequest(url: "http://u:s3cret@h", query: query, body: HTTPData.URLEncoded(["log_pin": "s3cret"]))
        for value in [query, any, AnyHTTPService(at: "http://u:s3cret@h", header: ["X-Log-Key": "s3cret"]), any.body] as [Any] {
            var text = "\(value) \(String(reflecting: value)) "
            dump(value, to: &text)
            #expect(!text.contains("s3cret"), "\(text)")
        }
        #expect("\(query)" == "log_pin=<hidden>&a=1")
    }

    @Test func failuresAreTold() async {
        defer { server.stop() }
        #expect(
            await told(TestRequest(routes: "missing")).last
                == "Failed GET /missing: The request failed with status 404 and a body of 0 bytes.")
    }

    @Test func nothingIsToldWhenItIsSilenced() async {
        defer { server.stop() }
        ServiceLog.silence(true)
        #expect(await told(TestRequest()).isEmpty)
        ServiceLog.silence(false)
        #expect(await told(TestRequest()).count == 2)
    }
}

// With the package's trait only.
#if Logging
import Logging

@Suite(.timeLimit(.minutes(1)))
struct ServiceLoggingTests {
    /// Notes the messages of a logger.
    private struct NotingHandler: LogHandler {
        let notes: Lock<[String]>
        var metadata = Logger.Metadata()
        var logLevel = Logger.Level.debug

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(
            level: Logger.Level, message: Logger.Message, metadata: Logger.Metadata?, source: String, file: String, function: String,
            line: UInt
        ) {
            notes.withLock { $0.append("\(level) \(message)") }
        }
    }

    @Test func messagesGoToALoggerAsDebug() {
        let notes = Lock<[String]>([])
        ServiceLog.handler(of: Logger(label: "test") { _ in NotingHandler(notes: notes) })("sent")
        #expect(notes.withLock { $0 } == ["debug sent"])
        #expect(ServiceLog.loggingHandler != nil)
    }
}
#endif
