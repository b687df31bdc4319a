// SPDX-License-Identifier: Apache-2.0
import Curlew
import DemoServer

/// A request that fails twice, and is tried again after a while.
struct RetryStep: Step {
    let title = "A retrier with a delay, against a server that fails twice"

    func run(on stage: Stage) async throws {
        stage.manager.retrier = PatientRetrier()
        defer { stage.manager.retrier = nil }

        let request = stage.manager.request(stage.server.url("/flaky?fail=2")).validate()
        let answer = try await request.serializingString().value
        try check(request.retryCount == 2, "after \(request.retryCount) retries the server says \"\(answer)\"")
    }
}

/// Tries again what a busy server refused, up to three times, each time after a longer pause.
private struct PatientRetrier: RequestRetrier {
    func should(
        _ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion
    ) {
        let attempt = request.retryCount + 1
        guard attempt <= 3, request.response?.statusCode == 503 else { return completion(false, 0) }
        let delay = 0.2 * Double(attempt)
        Console.say("   attempt \(attempt): \(error); again in \(delay) s")
        completion(true, delay)
    }
}
