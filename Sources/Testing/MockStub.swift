// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Requests and the responses to them, at a ``MockTransport``. Thread-safe.
public final class MockStub: Sendable {
    enum Responses: Sendable {
        /// One after the other, of which the last one repeats.
        case sequence([MockResponse])
        case closure(@Sendable (MockRequest) async throws -> MockResponse)
    }

    let pattern: RequestPattern
    private let responses: Responses
    private let matched = Lock<[MockRequest]>([])

    init(_ pattern: RequestPattern, _ responses: Responses) {
        self.pattern = pattern
        self.responses = responses
    }

    /// The requests that the stub was used for.
    public var requests: [MockRequest] { matched.withLock { $0 } }

    /// Their number.
    public var count: Int { matched.withLock { $0.count } }

    /// Notes a request, and returns the way to the response.
    func use(for request: MockRequest) -> Responses {
        let index = matched.withLock { matched in
            matched.append(request)
            return matched.count - 1
        }
        switch responses {
        case .sequence(let all): return .sequence([all[min(index, all.count - 1)]])
        case .closure: return responses
        }
    }
}

// MARK: - CustomStringConvertible

extension MockStub: CustomStringConvertible {
    /// What it matches, and how often it was used.
    public var description: String { "\(pattern) (used \(count == 1 ? "once" : "\(count) times"))" }
}

/// No stub of a ``MockTransport`` matches a request, or no stored exchange of a `ReplayTransport`.
public struct UnmatchedRequest: LocalizedError, Sendable, CustomStringConvertible {
    /// The method and the URL of the request, redacted.
    public let request: String
    /// What there is, a line each, redacted.
    public let candidates: [String]
    /// What the candidates are called: `stub` or `stored exchange`.
    let kind: String

    /// What was asked, and what there is.
    public var description: String {
        guard !candidates.isEmpty else { return "No \(kind) matches \(request): there is none" }
        return "No \(kind) matches \(request). There are:" + candidates.enumerated().map { "\n  \($0 + 1). \($1)" }.joined()
    }

    /// The same text.
    public var errorDescription: String? { description }
}
