// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTesting
import Testing

/// Secrets of many kinds are recorded, replayed and made to fail; none is on disk, or in a text.
@Suite(.timeLimit(.minutes(2))) struct CassetteSecretsTests {
    private let redaction = CassetteRedaction(names: ["x-tests-own", "tests-own-item"], values: ["own-v4lue", ""])

    @Test("there are forty kinds and more") func count() {
        #expect(Set(SecretExchange.kinds.map(\.name)).count >= 40)
    }

    @Test("no secret is on disk, or in a text", arguments: SecretExchange.kinds) func scan(_ kind: SecretExchange) async throws {
        let directory = try TemporaryDirectory()
        let cassette = try Cassette(directory: directory.url, redaction: redaction)
        var texts: [String] = []
        func note(_ value: Any) {
            texts += ["\(value)", String(reflecting: value)]
            var dumped = ""
            dump(value, to: &dumped)
            texts.append(dumped)
        }
        func send(_ transport: any Transport) async throws {
            var configuration = SessionConfiguration()
            configuration.redaction = SecretExchange.redaction
            let manager = SessionManager(configuration: configuration, transport: transport)
            let response = await manager.request(try kind.urlRequest).validate().serializingData().response
            if kind.isKnownToSessions, let error = response.error { note(error) }
            if let error = response.error as? UnmatchedRequest { note(error) }
        }
        let mock = MockTransport(kind.response)
        try await send(RecordingTransport(cassette, base: mock))
        try await cassette.flush()
        // Replayed, although what is asked and what is stored are redacted; then nothing is left.
        let replay = try ReplayTransport(Cassette(directory: directory.url, redaction: redaction))
        try await send(replay)
        #expect(replay.unusedExchanges.isEmpty)
        try await send(try ReplayTransport(Cassette([], redaction: redaction)))
        try await send(MockTransport(.failure(.connect)))
        try await send(MockTransport(.status(500)))
        let names = try contents(of: directory)
        #expect(!names.isEmpty)
        for name in names { texts += [name, String(decoding: try Data(contentsOf: directory.file(name)), as: UTF8.self)] }
        for exchange in cassette.exchanges { note(exchange) }
        for text in texts {
            for secret in kind.secrets { #expect(!text.contains(secret), "\(text)") }
        }
    }

    @Test(
        "what surrounds a secret is stored byte by byte",
        arguments: [
            (
                "application/json", #"{"n": 1.50, "big": 12345678901234567890, "token" : "x" , "null": null}"#,
                #"{"n": 1.50, "big": 12345678901234567890, "token" : "<hidden>" , "null": null}"#
            ),
            ("text/event-stream", "id: 5\ndata: {\"token\":\"x\"}\n\n", "id: 5\ndata: {\"token\":\"<hidden>\"}\n\n"),
            (
                "application/xml", "<\u{301}<a b='<'><token c=\"d\">x</token>&lt;<token/>e",
                "<\u{301}<a b='<'><token c=\"d\"><hidden></token>&lt;<token/>e"
            ),
            (
                "application/xml", "<name>pass</name> <string>x</string><name>a</name><string>b</string>",
                "<name>pass</name> <string><hidden></string><name>a</name><string>b</string>"
            ),
            (
                "multipart/form-data; boundary=b",
                "pre\r\n--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\u{FF}\r\n--b\r\ncontent-disposition: form-data; name=pin\r\n\r\nx\r\n--b--\r\n",
                "pre\r\n--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\u{FF}\r\n--b\r\ncontent-disposition: form-data; name=pin\r\n\r\n<hidden>\r\n--b--\r\n"
            ),
        ]) func surroundings(_ type: String, _ body: String, _ stored: String) throws
    {
        // As text, and in an encoding that is no UTF-8.
        for encoding in [String.Encoding.utf8, .isoLatin1] {
            guard let data = body.data(using: encoding), let expected = stored.data(using: encoding) else { continue }
            let exchange = StoredExchange(
                method: "POST", url: "https://api.example.org/", headers: ["Content-Type": type], body: data,
                outcome: .response(status: 200, headers: ["Content-Type": type], body: data, trailers: [:]))
            let redacted = try #require(Cassette([exchange]).exchanges.first)
            #expect(redacted.body == expected, "\(String(decoding: redacted.body, as: UTF8.self))")
            guard case .response(_, _, let body, _) = redacted.outcome else { throw TestError("no response") }
            #expect(body == expected)
        }
    }

    @Test("a body without secrets is stored byte by byte, and names can be excepted") func untouched() async throws {
        let body = "{ \"b\" : 1.50, \"a\":[true,null], \"password_hint\": \"x\", \"token\": \"kept\" }"
        let directory = try TemporaryDirectory()
        let cassette = try Cassette(directory: directory.url, redaction: CassetteRedaction(exceptions: ["token"]))
        let manager = SessionManager(transport: RecordingTransport(cassette, base: MockTransport(.text(body, type: "application/json"))))
        _ = await manager.request("https://api.example.org/").serializingData().response
        try await cassette.flush()
        let file = try #require(try contents(of: directory).first { $0.contains(".response.") })
        #expect(try String(contentsOf: directory.file(file), encoding: .utf8) == body)
    }
}
