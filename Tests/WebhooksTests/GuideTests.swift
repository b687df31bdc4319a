// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSigning
import CurlewTestSupport
import CurlewTesting
import Testing

// A5.2
@Suite(.timeLimit(.minutes(1))) struct GuideTests {
    @Test func `every block of the article is code of the program, and what is marked there is in the article`() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/Curlew/Curlew.docc/DeliverWithoutLosing.md")
        let program = ["Journal", "Deliverer", "Service"].map { here.appendingPathComponent("../../Examples/Sources/Webhooks/\($0).swift") }
        #expect(try DocumentedCode.differences(page: page, sources: program + [here.appendingPathComponent("FirstLines.swift")]) == [])
    }

    @Test func `the first lines deliver, after a failure too, with one key`() async throws {
        let clock = VirtualClock(.automatic)
        let mock = MockTransport(.status(503), .status(204), clock: clock)
        let webhook = try StandardWebhook("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
        let event = Data(#"{"type": "invoice.paid"}"#.utf8)
        try await deliver(event, id: "event-1", to: "https://a.example.org/", signedBy: webhook, with: SessionManager(mock: mock))
        #expect(mock.requests.map { $0.headers["Idempotency-Key"] } == ["\"event-1\"", "\"event-1\""])
        for request in mock.requests { #expect(try webhook.verify(request.headers, body: request.body).id == "event-1") }
    }
}
