// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSigning
import CurlewTesting
import Foundation

/// Twenty webhooks for a receiver that is busy now and then, and one for a receiver that is gone. The first deliverer is stopped in the middle.
enum Demonstration {
    private static let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

    static func run() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("webhooks-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let receiver = Receiver(try StandardWebhook(secret))
        let server = try LoopbackServer { request, _ in receiver.respond(to: request) }
        defer { server.stop() }

        let first = try deliverer(folder)
        for number in 1...20 {
            let webhook = Webhook(id: "event-\(number)", url: server.url("/hook"), body: #"{"number": \#(number)}"#)
            _ = try await first.journal.accept(webhook, at: Date())
        }
        _ = try await first.journal.accept(Webhook(id: "event-21", url: server.url("/gone"), body: "{}"), at: Date())
        let delivering = Task { [first] in try await first.run() }
        while receiver.accepted.count < 10 { try await Task.sleep(for: .milliseconds(5)) }
        delivering.cancel()
        try await delivering.value
        print("stopped with \(await first.journal.count) pending")
        try await first.journal.close()

        let second = try deliverer(folder)
        await second.journal.finish()
        try await second.run()
        let pending = await second.journal.count
        print("\(receiver.accepted.count) events received in \(receiver.attempts) attempts, \(pending) pending")
        guard receiver.accepted.count == 20, pending == 0 else { throw DemonstrationError.incomplete }
    }

    private enum DemonstrationError: Error { case incomplete }

    private static func deliverer(_ folder: URL) throws -> Deliverer {
        // Shorter delays than those of receivers that are not in the same process.
        Deliverer(
            journal: try Journal(at: folder.appendingPathComponent("journal")), webhooks: try StandardWebhook(secret),
            manager: SessionManager(configuration: .forWebhooks(to: .any, pause: .milliseconds(100))),
            delays: Array(repeating: .milliseconds(100), count: 20), report: Service.say)
    }
}

/// Verifies webhooks, and is busy for each third attempt.
private final class Receiver: @unchecked Sendable {  // every access to the state is inside the lock
    private let lock = NSLock()
    private let webhooks: StandardWebhook
    private var ids: Set<String> = []
    private var count = 0

    init(_ webhooks: StandardWebhook) { self.webhooks = webhooks }

    var accepted: Set<String> { lock.withLock { ids } }
    var attempts: Int { lock.withLock { count } }

    func respond(to request: ServerRequest) -> ServerResponse {
        guard request.path == "/hook" else { return .status(410) }
        let headers = HTTPHeaders(request.headers.map { HTTPHeader(name: $0.name, value: $0.value) })
        guard let message = try? webhooks.verify(headers, body: request.body) else { return .status(400) }
        return lock.withLock {
            count += 1
            guard count % 3 != 0 else { return .status(503) }
            // An event that was received before is acknowledged, and not processed again.
            ids.insert(message.id)
            return .status(204)
        }
    }
}
