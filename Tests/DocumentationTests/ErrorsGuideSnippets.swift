// SPDX-License-Identifier: Apache-2.0
import Curlew
import Foundation

// The code of ErrorsOfAPIs.md, region by region. `ErrorsGuideTests` checks that, and runs the code.

// snippet: first
struct APIError: Decodable, Error {
    let code: String
    let message: String
}

func user(_ id: Int, with manager: SessionManager) async throws -> User {
    let request = manager.request("https://api.example.org/users/\(id)").validate(decoding: APIError.self)
    do {
        return try await request.serializingDecodable(User.self).value
    } catch {
        throw error.asCurlewError?.decodedBody(as: APIError.self) ?? error
    }
}
// end

enum ErrorsGuideSnippets {
    // snippet: report
    static func report(_ error: any Error) -> [String] {
        guard let error = error.asCurlewError, let request = error.request else { return ["\(error)"] }
        return [
            "\(error)",  // GET https://api.example.org/users/7 (attempt 1): status 404 is not acceptable
            "status \(error.statusCode ?? 0), support says \(request.headers["X-Request-Id"] ?? "-")",
            error.responseBody ?? "no text",  // the first 64 KiB; not redacted
        ]
    }
    // end

    // snippet: problem
    static func explanation(of error: any Error) -> String {
        guard let problem = error.asCurlewError?.problemDetails else { return "\(error)" }
        if problem.type == "https://example.org/problems/out-of-credit", case .integer(let balance)? = problem.members["balance"] {
            return "Your balance is \(balance)."
        }
        return problem.detail ?? problem.title ?? problem.type
    }
    // end

    static func retries() -> SessionManager {
        // snippet: retries
        let policy = RetryPolicy(retryLimit: 3, maximumDelay: 20)  // seconds
        let manager = SessionManager(interceptor: policy)
        // end
        return manager
    }

    // snippet: pause
    static func pause(after response: DataResponse<Data>) -> Duration? {
        guard let head = response.responseHead else { return nil }
        if let asked = RetryAfter(head) { return asked.delay }
        return head.headers.rateLimits.filter { $0.remaining == 0 }.compactMap(\.reset).max()
    }
    // end

    // snippet: fields
    static func notes(on head: ResponseHead) -> [String] {
        var notes = head.headers.rateLimits.map { "\($0.remaining ?? 0) of \($0.quota ?? 0) \($0.unit) left" }
        if let date = head.headers.sunset { notes.append("ends \(date.formatted(.iso8601))") }
        if let page = head.headers.links.first(where: { $0.hasRelation("deprecation") }) { notes.append("see \(page.target)") }
        return notes
    }
    // end

    static func lines(_ manager: SessionManager, _ url: String) async throws -> Int {
        // snippet: stream
        var count = 0
        for try await piece in manager.streamRequest(url).validate(decoding: APIError.self).bodyStream() { count += piece.count }
        // end
        return count
    }

    // snippet: retrier
    static let whenBusy = Retrier { _, request, error in
        let problem = error.asCurlewError?.decodedBody(as: APIError.self)
        return problem?.code == "busy" && request.retryCount < 3 ? .retry(after: .milliseconds(50)) : .doNotRetry(nil)
    }
    // end
}
