// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import CurlewTesting
import Foundation
import Testing

/// Runs the code of «Errors of APIs», and checks that it behaves as the article says.
@Suite(.timeLimit(.minutes(1))) struct ErrorsGuideTests {
    private static let url = "https://api.example.org/users/7"

    @Test("every block of the article is compiled, and all code compiled for it is in it") func sameCode() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/Curlew/Curlew.docc/ErrorsOfAPIs.md")
        #expect(try DocumentedCode.differences(page: page, sources: here.appendingPathComponent("ErrorsGuideSnippets.swift")) == [])
    }

    private static func refusal(_ response: MockResponse) async throws -> any Error {
        let mock = MockTransport()
        mock.stub(.get, "/users/7", respond: response)
        let result = await SessionManager(mock: mock).request(url).validate(decoding: APIError.self).serializingData().response
        return try #require(result.error)
    }

    // A1.2
    @Test("the API's error is thrown, or the plain one") func firstLines() async throws {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        mock.stub(.get, "/users/7", respond: .json(User(id: 7, name: "Ada")))
        #expect(try await user(7, with: manager).name == "Ada")
        mock.stub(.get, "/users/8", respond: .json(["code": "gone", "message": "Deleted"], status: 410))
        let error = await #expect(throws: APIError.self) { try await user(8, with: manager) }
        #expect(error?.code == "gone")
        mock.stub(.get, "/users/9", respond: .text("<html>", status: 502))
        let plain = await #expect(throws: CurlewError.self) { try await user(9, with: manager) }
        #expect(plain?.statusCode == 502)
    }

    @Test("a report has the request, the fields and the body") func report() async throws {
        let lines = ErrorsGuideSnippets.report(
            try await Self.refusal(.text("no such user", status: 404).header("X-Request-Id", "r-7")))
        #expect(
            lines == [
                "GET https://api.example.org/users/7 (attempt 1): status 404 is not acceptable", "status 404, support says r-7",
                "no such user",
            ])
        #expect(ErrorsGuideSnippets.report(CancellationError()) == ["CancellationError()"])
    }

    // A1.2
    @Test("a retrier sees the API's error") func retrier() async throws {
        let mock = MockTransport()
        mock.stub(.get, "/users/7", respond: .json(["code": "busy", "message": "-"], status: 409), .json(User(id: 7, name: "Ada")))
        #expect(try await user(7, with: SessionManager(mock: mock, interceptor: ErrorsGuideSnippets.whenBusy)).name == "Ada")
        #expect(mock.requests.count == 2)
    }

    // A1.3
    @Test(
        "problem details are explained",
        arguments: [
            (#"{"type": "https://example.org/problems/out-of-credit", "balance": 30}"#, "Your balance is 30."),
            (#"{"title": "Not enough", "detail": "Too little"}"#, "Too little"), (#"{"title": "Not enough"}"#, "Not enough"),
            ("{}", "about:blank"),
        ] as [(String, String)])
    func problem(body: String, text: String) async throws {
        let error = try await Self.refusal(.text(body, status: 403).header("Content-Type", "application/problem+json"))
        #expect(ErrorsGuideSnippets.explanation(of: error) == text)
    }

    // A1.4
    @Test("the time to try again is that of the server") func pause() async {
        func pause(_ headers: (String, String)...) async -> Duration? {
            let mock = MockTransport()
            mock.stub(.get, "/users/7", respond: headers.reduce(.text("", status: 429)) { $0.header($1.0, $1.1) })
            return ErrorsGuideSnippets.pause(after: await SessionManager(mock: mock).request(Self.url).serializingData().response)
        }
        #expect(await pause(("Retry-After", "7"), ("RateLimit", #""day";r=0;t=60"#)) == .seconds(7))
        #expect(await pause(("RateLimit", #""day";r=0;t=60, "burst";r=0;t=2, "free";r=5;t=900"#)) == .seconds(60))
        #expect(await pause(("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "12")) == .seconds(12))
        #expect(await pause() == nil)
    }

    @Test("a policy waits for what a server asks, and not for longer than its maximum") func retries() async throws {
        #expect((ErrorsGuideSnippets.retries().interceptor as? RetryPolicy)?.maximumDelay == 20)
        let mock = MockTransport()
        mock.stub(.get, "/users/7", respond: MockResponse.text("", status: 503).header("Retry-After", "21"))
        let manager = SessionManager(mock: mock, interceptor: ErrorsGuideSnippets.retries().interceptor)
        #expect(await manager.request(Self.url).validate().serializingData().response.error != nil)
        #expect(mock.requests.count == 1)
    }

    // A1.4
    @Test("a head's notes are read") func fields() async throws {
        let mock = MockTransport()
        let response = MockResponse.text("").header("RateLimit-Policy", #""day";q=100"#).header("RateLimit", #""day";r=40"#)
            .header("Sunset", "Wed, 11 Nov 2026 23:59:59 GMT").header("Link", #"</news>; rel="deprecation""#)
        mock.stub(.get, "/users/7", respond: response)
        let head = try #require(await SessionManager(mock: mock).request(Self.url).serializingData().response.responseHead)
        #expect(ErrorsGuideSnippets.notes(on: head) == ["40 of 100 requests left", "ends 2026-11-11T23:59:59Z", "see /news"])
    }

    // A1.2
    @Test("a refused stream hands out no piece") func stream() async throws {
        let mock = MockTransport()
        mock.stub(.get, "/users/7", respond: .text("12345"), .json(["code": "no", "message": "-"], status: 403))
        let manager = SessionManager(mock: mock)
        #expect(try await ErrorsGuideSnippets.lines(manager, Self.url) == 5)
        let error = await #expect(throws: CurlewError.self) { try await ErrorsGuideSnippets.lines(manager, Self.url) }
        #expect(error?.decodedBody(as: APIError.self)?.code == "no")
    }
}
