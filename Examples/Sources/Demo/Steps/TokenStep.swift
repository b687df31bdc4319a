// SPDX-License-Identifier: Apache-2.0
import Curlew
import DemoServer

/// A chained request whose token an adapter adds.
struct TokenStep: Step {
    let title = "A chained request, with a token from an adapter"

    private struct Member: Decodable, Sendable {
        let name: String
        let visits: Int
    }

    func run(on stage: Stage) async throws {
        let refused = await member(on: stage)
        try check(refused.response?.statusCode == 401, "GET /me without a token gives 401")
        guard let error = refused.error else { throw Unexpected(description: "validate() accepted a 401") }
        Console.say("   validate() makes of that: \(error)")

        stage.manager.adapter = TokenAdapter(token: Stage.token)
        let accepted = await member(on: stage)
        let member = try accepted.result.get()
        try check(member.visits == 12, "GET /me with the token gives \(member.name), \(member.visits) visits")
    }

    private func member(on stage: Stage) async -> DataResponse<Member> {
        // The chain takes a handler; the continuation is only there because the steps are run one after the other.
        await withCheckedContinuation { continuation in
            stage.manager.request(stage.server.url("/me"))
                .validate()
                .responseDecodable(of: Member.self) { response in
                    continuation.resume(returning: response)
                }
        }
    }
}

/// Adds a bearer token to every request.
private struct TokenAdapter: RequestAdapter {
    let token: String

    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        var urlRequest = urlRequest
        urlRequest.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        return urlRequest
    }
}
