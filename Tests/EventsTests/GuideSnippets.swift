// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewEvents
import CurlewHTTP

// The code of ServerSentEvents.md, region by region: the lines between `// snippet: NAME` and `// end` are the same in both files, up to
// indentation. `GuideTests` checks that, and runs the code.

// snippet: values
struct Price: Decodable, Sendable {
    let symbol: String
    let cents: Int
}
// end

// snippet: question
struct Question: Encodable {
    let prompt: String
    let stream = true
}

struct Answer: Decodable {
    let text: String
}
// end

enum GuideSnippets {
    static func post(_ manager: SessionManager, _ url: String, token: String, print: (String) -> Void) async throws {
        // snippet: post
        let headers: HTTPHeaders = [.authorization(bearerToken: token), .contentType("application/json")]
        var request = try URLRequest(url: url, method: .post, headers: headers)
        request.httpBody = try JSONEncoder().encode(Question(prompt: "What does a curlew eat?"))
        for try await answer in manager.eventStream(request).typed(as: Answer.self, until: "[DONE]") {
            print(answer.value.text)
        }
        // end
    }

    static func events(_ manager: SessionManager, _ url: String, print: (String) -> Void) async throws {
        // snippet: events
        for try await event in manager.eventStream(url) {
            print("\(event.type) \(event.id): \(event.data)")
        }
        // end
    }

    static func typed(_ manager: SessionManager, _ url: String, print: (String) -> Void) async throws {
        // snippet: typed
        for try await price in manager.eventStream(url).typed(as: Price.self, eventType: "price") {
            print("\(price.value.symbol): \(price.value.cents)")
        }
        // end
    }

    static func resumed(_ lastSeen: String) -> EventStreamConfiguration {
        // snippet: configuration
        var configuration = EventStreamConfiguration()
        configuration.lastEventID = lastSeen
        configuration.reconnectionLimit = 5
        configuration.maximumEventSize = 1 << 20
        // end
        return configuration
    }

    static func lines(_ manager: SessionManager, _ url: String, print: (String) -> Void) async throws {
        // snippet: lines
        let body = manager.streamRequest(url).validate().bodyStream()
        for try await price in body.jsonLines(of: Price.self) {
            print("\(price.symbol): \(price.cents)")
        }
        // end
    }
}
