// SPDX-License-Identifier: Apache-2.0
import Curlew
import DemoServer

/// A worker that empties a queue: the queue is a server in this process, which is busy now and then, and loses responses.
@main
enum Program {
    static func main() async throws {
        let queue = Queue(jobs: (1...20).map { Job(id: $0, text: $0 == 13 ? "" : "job \($0)") })
        let server = try LoopbackServer { request, _ in try queue.respond(to: request) }
        defer { server.stop() }
        let worker = Worker(queue: server.url(""), manager: SessionManager())
        let (done, failed) = try await worker.run(consumers: 3)
        await worker.manager.shutdown(gracePeriod: .seconds(5))
        print("\(done) jobs done, \(failed) failed, in \(server.requestCount) requests; the queue counts \(queue.reported)")
        guard done == 19, failed == 1, queue.reported == 20 else { exit(1) }
    }
}

/// A queue that behaves as remote ones do.
final class Queue: @unchecked Sendable {  // every access to the state is inside the lock
    private struct State {
        var waiting: [Job]
        var taken: [String: Job] = [:]
        var outcomes: [Int: Outcome] = [:]
        var requests = 0
    }

    private let lock = NSLock()
    private var state: State

    init(jobs: [Job]) {
        state = State(waiting: jobs)
    }

    var reported: Int { lock.withLock { state.outcomes.count } }

    func respond(to request: ServerRequest) throws -> ServerResponse {
        let isBusy = lock.withLock {
            state.requests += 1
            return state.requests % 5 == 0
        }
        if isBusy { return .status(503) }
        guard request.path == "/take" else {
            let outcome = try JSONDecoder().decode(Outcome.self, from: request.body)
            let isLost = lock.withLock {
                state.outcomes[outcome.job] = outcome
                return state.requests % 7 == 0
            }
            // The outcome is known; the worker does not learn of it.
            return isLost ? .ok("recorded").misbehaving(.reset(after: 2)) : .status(204)
        }
        let key = request.header("Idempotency-Key") ?? ""
        let job: Job? = lock.withLock {
            if let job = state.taken[key] { return job }
            guard !state.waiting.isEmpty else { return nil }
            let job = state.waiting.removeFirst()
            state.taken[key] = job
            return job
        }
        return try job.map { try ServerResponse.json($0) } ?? .status(204)
    }
}
