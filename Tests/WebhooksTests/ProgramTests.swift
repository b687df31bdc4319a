// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSigning
import CurlewTestSupport
import Testing

/// Runs the program of the article in processes of its own, which are killed.
@Suite(.timeLimit(.minutes(3))) struct ProgramTests {
    private static let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

    /// Counts what it has received, by its identifier.
    private final class Receiver: Sendable {
        private let webhooks: StandardWebhook
        let counts = Monitor<[String: Int]>([:])
        let errors = Log<String>()

        init() throws { webhooks = try StandardWebhook(ProgramTests.secret) }

        /// Notes a webhook; returns how many were received before.
        func receive(_ request: ServerRequest) -> Int {
            let headers = HTTPHeaders(request.headers.map { HTTPHeader(name: $0.name, value: $0.value) })
            do {
                let id = try webhooks.verify(headers, body: request.body).id
                if headers["Idempotency-Key"] != "\"\(id)\"" || request.body != Data("{\"id\": \"\(id)\"}".utf8) { errors.append(id) }
                return counts.update { counts in
                    counts[id, default: 0] += 1
                    return counts.values.reduce(0, +) - 1
                }
            } catch {
                errors.append("\(error)")
                return 0
            }
        }

        var received: Set<String> { Set(counts.read { $0.keys }) }
    }

    private func start(_ journal: URL) throws -> ChildProcess {
        try ChildProcess(
            Probe.path(of: "curlew-webhooks-probe"), [journal.path, "--any-address"],
            environment: ["WEBHOOK_SECRET": Self.secret, "WEBHOOK_DELAYS": "0.1 0.1 0.1 0.1 0.1"])
    }

    private func write(_ ids: some Sequence<String>, for url: String, to process: ChildProcess) {
        for id in ids { process.writeLine(#"{"id": "\#(id)", "url": "\#(url)", "body": "{\"id\": \"\#(id)\"}"}"#) }
    }

    // A5.2
    @Test func `a program that is killed again and again delivers all that it has accepted, with the same key`() async throws {
        let folder = try TemporaryDirectory()
        let receiver = try Receiver()
        let victim = Lock<ChildProcess?>(nil)
        let marks = Lock([20, 45, 70])
        let isBusy = Lock(true)
        let armed = Lock(Gate())
        let server = try LoopbackServer(recording: false) { request, _ in
            // A process that was not to be killed yet could deliver everything.
            armed.withLock { $0 }.wait()
            let before = receiver.receive(request)
            victim.withLock { victim in
                guard let process = victim, marks.withLock({ $0.first.map { before >= $0 } ?? false }) else { return }
                process.send(SIGKILL)
                marks.withLock { _ = $0.removeFirst() }
                victim = nil
            }
            let refuses = isBusy.withLock { isBusy in
                defer { isBusy = false }
                return isBusy
            }
            var response = ServerResponse.status(refuses ? 503 : 204)
            response.delay = .milliseconds(10)
            return response
        }
        defer { server.stop() }
        let ids = (1...100).map { "event-\($0)" }
        var accepted: Set<String> = []
        var kills = 0
        while true {
            let gate = Gate()
            armed.withLock { $0 = gate }
            let process = try start(folder.file("journal"))
            write(ids.filter { !accepted.contains($0) }, for: server.url("/hook"), to: process)
            process.closeInput()
            victim.withLock { $0 = process }
            gate.open()
            let (status, output) = await process.finish()
            accepted.formUnion(output.filter { $0.hasPrefix("accepted ") }.map { String($0.dropFirst(9)) })
            if status == 0 {
                #expect(output.last == "ended with 0 pending")
                break
            }
            kills += 1
            #expect(status == -1)
        }
        #expect(kills == 3)
        #expect(accepted == Set(ids) && receiver.received == Set(ids))
        #expect(receiver.errors.elements == [])
        // What was in flight when it was killed, and what was refused: not all of it.
        let attempts = receiver.counts.read { $0.values.reduce(0, +) }
        #expect(attempts < 100 + 1 + 3 * 10, "\(attempts)")
    }

    // A5.2
    @Test func `at SIGTERM attempts are completed, and the rest is left to the next process`() async throws {
        let folder = try TemporaryDirectory()
        let receiver = try Receiver()
        let gate = Gate()
        let server = try LoopbackServer(recording: false) { request, _ in
            _ = receiver.receive(request)
            gate.wait()
            return .status(204)
        }
        defer { server.stop() }
        let process = try start(folder.file("journal"))
        let ids = (1...20).map { "event-\($0)" }
        write(ids, for: server.url("/hook"), to: process)
        #expect(await eventually { receiver.received.count == 4 })
        for _ in ids { #expect(await process.readLine()?.hasPrefix("accepted ") == true) }
        process.send(SIGTERM)
        gate.open()
        let (status, output) = await process.finish()
        #expect(status == 0)
        #expect(output.filter { $0.hasPrefix("delivered ") }.count >= 4)

        let next = try start(folder.file("journal"))
        next.closeInput()
        let (last, _) = await next.finish()
        #expect(last == 0)
        #expect(receiver.counts.read { $0 } == Dictionary(uniqueKeysWithValues: ids.map { ($0, 1) }))
        #expect(receiver.errors.elements == [])
    }

    @Test func `the demonstration shows what it says, and wrong arguments are refused`() async throws {
        let path = try Probe.path(of: "curlew-webhooks-probe")
        let (status, output) = await (try ChildProcess(path)).finish()
        #expect(status == 0)
        #expect(output.last?.hasPrefix("20 events received in ") == true)
        let folder = try TemporaryDirectory()
        let journal = folder.file("journal")
        #expect(await (try ChildProcess(path, journal.path, environment: ["WEBHOOK_SECRET": "*"])).finish().status == 1)
        #expect(await (try ChildProcess(path, journal.path)).finish().status == 64)
        #expect(await (try ChildProcess(path, journal.path, "--what", environment: ["WEBHOOK_SECRET": Self.secret])).finish().status == 64)
        #expect(!FileManager.default.fileExists(atPath: journal.path))
    }
}
