// SPDX-License-Identifier: Apache-2.0
import Curlew
import DemoServer

/// Asks a model that is a script in this process: it calls a tool, and answers with what that says.
@main
enum Program {
    static func main() async throws {
        let server = try LoopbackServer { request, _ in try Model.respond(to: request) }
        defer { server.stop() }
        var assistant = Assistant(url: server.url("/v1/answers"), key: "demo", manager: SessionManager())
        assistant.tools["tide"] = { arguments in
            struct Place: Decodable { let place: String }
            let place = try JSONDecoder().decode(Place.self, from: Data(arguments.utf8)).place
            return "low tide in \(place) at 14:20"
        }
        let answer = try await assistant.answer("When can I see curlews in Morecambe?") { piece in
            try? FileHandle.standardOutput.write(contentsOf: Data(piece.utf8))
        }
        print()
        guard answer.contains("14:20"), server.requestCount == 2 else { exit(1) }
    }
}

/// Responds as a model that wants to know the tide before it answers.
enum Model {
    static func respond(to request: ServerRequest) throws -> ServerResponse {
        guard request.header("Authorization") == "Bearer demo" else { return .status(401) }
        let prompt = try JSONDecoder().decode(Prompt.self, from: request.body)
        guard let known = prompt.messages.last(where: { $0.role == "tool" })?.content else {
            return try events([
                Delta(text: "Let me see. "), Delta(call: Call(id: "1", name: "tide", arguments: "")),
                Delta(arguments: #"{"place": "#), Delta(arguments: #""Morecambe"}"#),
            ])
        }
        return try events(["Best near ", known, "."].map { Delta(text: $0) })
    }

    private static func events(_ deltas: [Delta]) throws -> ServerResponse {
        let lines = try deltas.map { "data: " + String(decoding: try JSONEncoder().encode($0), as: UTF8.self) } + ["data: [DONE]"]
        return .ok(lines.map { $0 + "\n\n" }.joined(), type: "text/event-stream")
    }
}
