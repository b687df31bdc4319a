// SPDX-License-Identifier: Apache-2.0
import Curlew
import ExampleServer
import Synchronization

/// Works off jobs against an API whose tokens expire: each job has a deadline for all its attempts, and one refresh serves all jobs that
/// need one.
@main
enum Program {
    static func main() async throws {
        let api = try API()
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        let worker = Worker(url: api.server.url(""), configuration: configuration)
        let done = try await withThrowingTaskGroup(of: Int.self) { group in
            for job in 1...20 { group.addTask { try await worker.result(of: job) } }
            var done = 0
            for try await job in group { done += job }
            return done
        }
        guard done == (1...20).reduce(0, +), api.counts.tokens == 2 else {
            throw TestError("\(done), \(api.counts.tokens) tokens")
        }
        print("20 jobs done with two tokens")
    }
}

/// An API that rejects the first token that it gave out, and is overloaded for a moment at each fifth job.
struct API {
    final class Counts: Sendable {
        private let state = Mutex((tokens: 0, refused: Set<String>()))

        /// How many tokens were given out.
        var tokens: Int { state.withLock { $0.tokens } }

        /// Returns the token's number.
        func addToken() -> Int {
            state.withLock { state in
                state.tokens += 1
                return state.tokens
            }
        }

        /// Returns whether the job was not refused before.
        func refuse(_ job: String) -> Bool { state.withLock { $0.refused.insert(job).inserted } }
    }

    let server: LoopbackServer
    let counts = Counts()

    init() throws {
        server = try LoopbackServer { [counts] request, _ in
            if request.path == "/token" {
                let number = counts.addToken()
                return ServerResponse(status: 200, body: .data(Data(#"{"access_token": "\#(number)", "expires_in": 3600}"#.utf8)))
            }
            guard request.header("Authorization") == "Bearer 2" else { return .status(401) }
            let job = request.path.components(separatedBy: "/").last ?? ""
            if job.hasSuffix("5"), counts.refuse(job) {
                return ServerResponse(status: 503, headers: [ServerField("Retry-After", "0")])
            }
            return ServerResponse(status: 200, body: .data(Data(job.utf8)))
        }
    }
}
