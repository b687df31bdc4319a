// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewEvents
import Foundation

/// A client of a language model that answers with server-sent events, and may call tools of this program before it answers.
struct Assistant: Sendable {
    /// What the model may call: from its arguments, a text in JSON, to a result.
    typealias Tool = @Sendable (_ arguments: String) async throws -> String

    let url: String
    let key: String
    let manager: SessionManager
    var tools: [String: Tool] = [:]
    /// How many times the model may call tools before it has to answer.
    var maximumRounds = 4

    struct TooManyRounds: Error {}

    /// Asks, calls tools as the model wants, and passes on the answer while it is written. Leaving the task cancels the request.
    func answer(_ question: String, piece: @Sendable (String) -> Void) async throws -> String {
        var messages = [Message(role: "user", content: question)]
        for _ in 0..<maximumRounds {
            let turn = try await turn(messages, piece)
            guard !turn.calls.isEmpty else { return turn.text }
            messages.append(Message(role: "assistant", content: turn.text, calls: turn.calls))
            for call in turn.calls { messages.append(Message(role: "tool", content: await result(of: call), call: call.id)) }
        }
        throw TooManyRounds()
    }

    /// One request: its text, and the calls whose arguments came in pieces.
    private func turn(_ messages: [Message], _ piece: (String) -> Void) async throws -> (text: String, calls: [Call]) {
        let headers: HTTPHeaders = [.authorization(bearerToken: key), .contentType("application/json")]
        var request = try URLRequest(url: url, method: .post, headers: headers)
        request.httpBody = try JSONEncoder().encode(Prompt(messages: messages, tools: tools.keys.sorted()))
        var text = ""
        var calls: [Call] = []
        // The longest pause between two pieces; the whole answer may take longer.
        for try await event in manager.eventStream(request, options: RequestOptions(idleTimeout: .seconds(30))) {
            guard event.data != "[DONE]" else { break }
            let delta = try JSONDecoder().decode(Delta.self, from: Data(event.data.utf8))
            if let new = delta.text {
                text += new
                piece(new)
            }
            if let call = delta.call { calls.append(call) }
            if let more = delta.arguments, !calls.isEmpty { calls[calls.count - 1].arguments += more }
        }
        return (text, calls)
    }

    /// What a tool says; the model learns of an error too.
    private func result(of call: Call) async -> String {
        guard let tool = tools[call.name] else { return "error: there is no tool \(call.name)" }
        do { return try await tool(call.arguments) } catch { return "error: \(error)" }
    }
}

/// What is sent.
struct Prompt: Codable, Sendable {
    let messages: [Message]
    let tools: [String]
    var stream = true
}

struct Message: Codable, Sendable {
    let role: String
    let content: String
    var calls: [Call]?
    var call: String?
}

struct Call: Codable, Sendable {
    let id: String
    let name: String
    var arguments: String
}

/// What an event has: a piece of the text, the beginning of a call, or a piece of its arguments.
struct Delta: Codable, Sendable {
    var text: String?
    var call: Call?
    var arguments: String?
}
