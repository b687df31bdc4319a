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
