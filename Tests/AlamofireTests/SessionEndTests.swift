// SPDX-License-Identifier: Apache-2.0
import CurlewAlamofire
import CurlewTestSupport
import Foundation
import Testing

/// The requests of a manager that is released.
@Suite(.timeLimit(.minutes(2))) struct SessionEndTests {
    enum Stage: CaseIterable, Sendable {
        case notStarted, startedAndSuspended, running
    }

    @Test("releasing a manager cancels its tasks at once, and their requests fail", arguments: Stage.allCases)
    func tasks(_ stage: Stage) async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return nil
        }
        defer { server.stop() }
        for number in 1...25 {
            var manager: SessionManager? = SessionManager()
            manager?.startRequestsImmediately = stage != .notStarted
            let request = try #require(manager?.request(server.url("/")))
            if stage != .notStarted { #expect(await server.waitForRequests(number)) }
            if stage == .startedAndSuspended { request.suspend() }
            // Until a handler is attached, a running request may still be awaited, which keeps its session.
            if stage == .running { request.response { _ in } }
            #expect(request.task?.state == (stage == .running ? .running : .suspended))
            manager = nil
            let state = request.task?.state
            #expect(state == .canceling || state == .completed)
            request.resume()
            #expect(request.task?.state != .running)
            let response = await request.plainResponse()
            #expect((response.error as? URLError)?.code == .cancelled)
            #expect(request.task?.state == .completed)
        }
        gate.open()
    }
}
