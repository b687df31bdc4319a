// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSigning
import CurlewTestSupport
import CurlewTesting
import Testing

// A5.2: days pass on the virtual clock.
@Suite(.timeLimit(.minutes(2))) struct DelivererTests {
    private static let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    private static let start = Date(timeIntervalSinceReferenceDate: 0)

    private let folder: TemporaryDirectory
    private let clock = VirtualClock()
    private let mock: MockTransport
    private let reports = Log<String>()
    /// The seconds at which receivers got an attempt, and its webhook.
    private let attempts = Log<String>()

    init() throws {
        folder = try TemporaryDirectory()
        mock = MockTransport(clock: clock)
    }

    private var now: Date { Self.start + clock.elapsed }

    private func deliverer(_ change: (inout Deliverer) -> Void = { _ in }) throws -> Deliverer {
        let manager = SessionManager(mock: mock) {
            let mocked = $0
            $0 = .forWebhooks()
            $0.callbackQueue = mocked.callbackQueue
            $0.virtualClock = mocked.virtualClock
        }
        var deliverer = Deliverer(
            journal: try Journal(at: folder.file("journal")), webhooks: try StandardWebhook(Self.secret), manager: manager,
            clock: clock, now: { [clock] in Self.start + clock.elapsed }, jitter: { 1 }, report: { [reports] in reports.append($0) })
        change(&deliverer)
        return deliverer
    }

    private func accept(_ ids: String..., for host: String = "a", in deliverer: Deliverer) async throws {
        for id in ids {
            let webhook = Webhook(id: id, url: "https://\(host).example.org/hook", body: #"{"id": "\#(id)"}"#)
            #expect(try await deliverer.journal.accept(webhook, at: now))
        }
    }

    /// Receivers on a host respond so, and note when.
    private func respond(on host: String = "a", _ response: @escaping @Sendable (_ id: String) -> MockResponse) {
        mock.stub(.post, URLPattern("https://\(host).example.org/hook")) { [clock, attempts] request in
            let id = request.headers["webhook-id"] ?? ""
            attempts.append("\(Int(clock.elapsed / .seconds(1))) \(id)")
            return response(id)
        }
    }

    private func deadLetters() throws -> [Webhook] {
        let text = try String(contentsOf: folder.file("journal.dead"), encoding: .utf8)
        return try text.split(separator: "\n").map { try JSONDecoder().decode(Webhook.self, from: Data($0.utf8)) }
    }

    @Test func `attempts are made over days, and then the webhook is a dead letter`() async throws {
        respond { _ in .status(500) }
        let deliverer = try deliverer()
        try await accept("a", in: deliverer)
        await deliverer.journal.finish()
        async let ended: Void = deliverer.run()
        let times = [0, 5, 305, 2_105, 9_305, 27_305, 63_305, 113_705, 185_705, 272_105]
        for time in times { try await clock.advance(toWaitAt: .seconds(time)) }
        try await ended
        #expect(attempts.elements == times.map { "\($0) a" })
        let letter = try #require(try deadLetters().first)
        #expect(letter.id == "a" && letter.failure?.contains("500") == true)
        #expect(await deliverer.journal.count == 0)
        // The key and the identifier are the same each time, and each attempt has a time of its own.
        let requests = mock.requests
        #expect(Set(requests.map { $0.headers["Idempotency-Key"] }) == ["\"a\""])
        #expect(requests.allSatisfy { $0.body == Data(#"{"id": "a"}"#.utf8) && $0.headers["webhook-signature"] != nil })
    }

    @Test func `Retry-After counts if it is longer than the delay`() async throws {
        let answers = Monitor<[MockResponse]>([
            .status(503).header("Retry-After", "3600"), .status(503).header("Retry-After", "1"), .status(204),
        ])
        respond { _ in answers.update { $0.removeFirst() } }
        let deliverer = try deliverer()
        try await accept("a", in: deliverer)
        await deliverer.journal.finish()
        async let ended: Void = deliverer.run()
        for time in [3_600, 3_900] { try await clock.advance(toWaitAt: .seconds(time)) }
        try await ended
        #expect(attempts.elements == ["0 a", "3600 a", "3900 a"] && reports.elements == ["delivered a"])
    }

    @Test func `another process continues with the same key, number of attempts and time`() async throws {
        respond { _ in .status(500) }
        let first = try deliverer()
        try await accept("a", in: first)
        let running = Task { try await first.run() }
        for time in [5, 305] { try await clock.advance(toWaitAt: .seconds(time)) }
        #expect(await eventually { attempts.count == 3 })
        // The next attempt is noted before it is waited for.
        while clock.waitCount == 0 { await Task.yield() }
        running.cancel()
        try await running.value
        try await first.journal.close()

        let second = try deliverer()
        await second.journal.finish()
        mock.removeAllStubs()
        respond { _ in .status(204) }
        async let ended: Void = second.run()
        try await clock.advance(toWaitAt: .seconds(2_105))
        try await ended
        #expect(attempts.elements == ["0 a", "5 a", "305 a", "2105 a"])
        #expect(Set(mock.requests.map { $0.headers["Idempotency-Key"] }) == ["\"a\""])
        #expect(await second.journal.count == 0)
    }

    @Test func `a host that is down is left alone, which is no attempt, and others are not`() async throws {
        respond { id in id == "late" ? .status(204) : .status(500) }
        respond(on: "b") { _ in .status(204) }
        let deliverer = try deliverer { $0.delays = [.seconds(3_600)] }
        let running = Task { try await deliverer.run() }
        try await accept("1", "2", "3", "4", "5", in: deliverer)
        #expect(await eventually { attempts.count == 5 })
        while clock.waitCount < 5 { await Task.yield() }
        // The breaker of the host is open now.
        try await accept("late", in: deliverer)
        try await accept("other", for: "b", in: deliverer)
        #expect(await eventually { reports.elements == ["delivered other"] })
        while clock.waitCount < 6 { await Task.yield() }
        #expect(attempts.count == 6)
        // A minute, and up to a fifth more by the breaker.
        await clock.advance(by: .seconds(59))
        #expect(attempts.count == 6)
        await clock.advance(by: .seconds(14))
        #expect(await eventually { reports.count == 2 })
        #expect(reports.elements.last == "delivered late")
        running.cancel()
        try await running.value
        #expect(await deliverer.journal.count == 5)
    }

    @Test func `one that is too old, gone or invalid is a dead letter`() async throws {
        respond { id in id == "old" ? .status(503) : .status(410) }
        let deliverer = try deliverer { $0.maximumAge = .seconds(3_600) }
        try await accept("old", "gone", in: deliverer)
        _ = try await deliverer.journal.accept(Webhook(id: "invalid", url: "not a URL", body: "{}"), at: now)
        await deliverer.journal.finish()
        async let ended: Void = deliverer.run()
        for time in [5, 305, 2_105] { try await clock.advance(toWaitAt: .seconds(time)) }
        try await ended
        let failures = Dictionary(uniqueKeysWithValues: try deadLetters().map { ($0.id, $0.failure ?? "") })
        #expect(failures["old"]?.hasPrefix("too old; ") == true && failures["gone"]?.contains("410") == true)
        #expect(failures["invalid"] != nil && failures.count == 3)
        #expect(attempts.count == 5)
    }

    @Test func `an attempt that was begun when the service is to end is completed and noted`() async throws {
        respond { id in .status(id == "a" ? 204 : 500).delayed(by: .seconds(10)) }
        let deliverer = try deliverer()
        try await accept("a", "b", in: deliverer)
        let running = Task { try await deliverer.run() }
        #expect(await eventually { attempts.count == 2 })
        running.cancel()
        await clock.advance(by: .seconds(10))
        try await running.value
        #expect(reports.elements == ["delivered a"])
        try await deliverer.journal.close()
        let next = try self.deliverer()
        await next.journal.finish()
        let pending = try await next.journal.pending.reduce(into: []) { $0.append($1) }
        #expect(pending.map(\.webhook.id) == ["b"] && pending.map(\.attempts) == [1])
        #expect(pending.first?.due == Self.start + .seconds(15))
    }

    @Test func `what was refused because the session ends, or received before the body was lost, is known`() {
        func failure(_ kind: TransferFailure.Kind) -> CurlewError {
            .transferFailed(TransferFailure(kind: kind, url: "https://a.example.org/", phase: .waiting, message: "It failed"))
        }
        #expect(Deliverer.outcome(of: nil, CurlewError.sessionShutDown) == .refused(.seconds(5)))
        #expect(Deliverer.outcome(of: nil, failure(.overloaded)) == .refused(.seconds(5)))
        #expect(Deliverer.outcome(of: ResponseHead(statusCode: 200), failure(.connectionLost)) == .delivered)
        #expect(Deliverer.outcome(of: nil, WebhookError.noSigningKey) == .hopeless("\(WebhookError.noSigningKey)"))
        guard case .failed(_, nil) = Deliverer.outcome(of: nil, failure(.connectionLost)) else {
            Issue.record("A lost connection is a failure")
            return
        }
    }
}
