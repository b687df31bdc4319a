// SPDX-License-Identifier: Apache-2.0
import Curlew
import Foundation

/// What the queue hands out.
struct Job: Codable, Sendable {
    let id: Int
    let text: String
}

/// What becomes of a job.
struct Outcome: Codable, Sendable {
    let job: Int
    var result: String?
    var error: String?
}

/// Takes jobs from a queue until it is empty, several at a time, and reports each exactly once.
struct Worker: Sendable {
    let queue: String
    let manager: SessionManager

    /// Returns the number of jobs that were done, and of those that failed for good.
    func run(consumers: Int) async throws -> (done: Int, failed: Int) {
        try await withThrowingTaskGroup(of: (Int, Int).self) { group in
            for _ in 0..<consumers { group.addTask { try await consume() } }
            return try await group.reduce((0, 0)) { ($0.0 + $1.0, $0.1 + $1.1) }
        }
    }

    private func consume() async throws -> (Int, Int) {
        var (done, failed) = (0, 0)
        while let job = try await next() {
            let outcome = perform(job)
            try await report(outcome)
            if outcome.error == nil { done += 1 } else { failed += 1 }
        }
        return (done, failed)
    }

    /// Takes the next job; `nil` if there is none. Taking is a POST, which the policy repeats only because the queue is said to allow it:
    /// with the same key it hands out the same job.
    private func next() async throws -> Job? {
        let response = await manager.request(
            "\(queue)/take", method: .post, headers: ["Idempotency-Key": UUID().uuidString], interceptor: Self.patience,
            options: RequestOptions(deadline: .seconds(30), name: "POST /take")
        )
        .validate().serializingData().response
        let data = try response.result.get()
        return response.response?.statusCode == 204 ? nil : try JSONDecoder().decode(Job.self, from: data)
    }

    private func perform(_ job: Job) -> Outcome {
        guard !job.text.isEmpty else { return Outcome(job: job.id, error: "the text is empty") }
        return Outcome(job: job.id, result: String(job.text.reversed()))
    }

    /// Reports an outcome. PUT is idempotent, so that a lost response is no reason to do the job again.
    private func report(_ outcome: Outcome) async throws {
        _ = try await manager.request(
            "\(queue)/jobs/\(outcome.job)", method: .put, parameters: outcome, encoder: JSONParameterEncoder.default,
            interceptor: Self.patience, options: RequestOptions(deadline: .seconds(30), name: "PUT /jobs/{id}")
        )
        .validate().serializingData().value
    }

    /// Five retries, from 20 ms on: this queue is in the same process. A minute is a better limit for one that is not.
    private static let patience = RetryPolicy(
        retryLimit: 5, exponentialBackoffScale: 0.02, maximumDelay: 1,
        retryableHTTPMethods: RetryPolicy.defaultRetryableHTTPMethods.union([.post]))
}
