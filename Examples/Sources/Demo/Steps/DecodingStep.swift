// SPDX-License-Identifier: Apache-2.0
import Curlew
import DemoServer

/// JSON into a type of one's own, with `await`.
struct DecodingStep: Step {
    let title = "JSON decoded into a type, with await"

    private struct Document: Decodable, Sendable {
        let name: String
        let numbers: [Int]
        let nested: [String: String]
    }

    func run(on stage: Stage) async throws {
        let document = try await stage.manager.request(stage.server.url("/json"))
            .validate()
            .serializingDecodable(Document.self)
            .value
        Console.say("   GET /json gives \(document)")
        try check(document.numbers == [1, 2, 3] && document.nested["key"] == "value", "that is what the server has")
    }
}
