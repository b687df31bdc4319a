// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewServices
import CurlewTestSupport
import CurlewTesting
import CurlewURLSession
import Foundation
import Testing

/// The four ways of «Which API?» are compiled, and do the same job.
@Suite(.timeLimit(.minutes(1))) struct WhichAPITests {
    @Test("every block of the article is compiled, and all code compiled for it is in it") func sameCode() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/Curlew/Curlew.docc/WhichAPI.md")
        let sources = ["WhichAPISnippets.swift", "WhichAPISnippets+URLSession.swift"].map { here.appendingPathComponent($0) }
        #expect(try DocumentedCode.differences(page: page, sources: sources) == [])
    }

    /// Does the job in each way, and returns what each has of it, by name.
    private static func names(of id: Int, from mock: MockTransport) async -> [String: Result<String, any Error>] {
        let manager = SessionManager(mock: mock)
        let session = URLSession(mock: mock)
        defer { session.invalidateAndCancel() }
        return [
            "await": await result { try await name(of: id, token: "7f3a9c", with: manager) },
            "closure": await withTrackedContinuation { continuation in
                loadName(of: id, token: "7f3a9c", with: manager) { continuation.resume(returning: $0) }
            },
            "URLSession": await result { try await name(of: id, token: "7f3a9c", in: session) },
            "values": await result { try await name(of: id, in: UserAPI(sessionManager: manager, token: "7f3a9c")) },
        ]
    }

    private static func result(_ job: () async throws -> String) async -> Result<String, any Error> {
        do { return .success(try await job()) } catch { return .failure(error) }
    }

    @Test("each way has the name, with one request that has the token") func sameJob() async throws {
        let mock = MockTransport()
        mock.stub(.get, "/users/{id}") { request in .json(User(id: Int(request.parameters["id"] ?? "") ?? 0, name: "Ada")) }
        for (way, result) in await Self.names(of: 7, from: mock) { #expect(try result.get() == "Ada", "\(way)") }
        #expect(mock.requests.count == 4)
        for request in mock.requests {
            #expect(request.url == "https://api.example.org/users/7")
            #expect(request.headers["Authorization"] == "Bearer 7f3a9c")
        }
    }

    @Test("each way refuses another status, with its kind of error") func refusal() async throws {
        let mock = MockTransport()
        mock.stub(.get, "/users/{id}", respond: .status(404))
        let results = await Self.names(of: 8, from: mock)
        #expect(results.count == 4)
        for (way, result) in results {
            let error = try #require(throws: (any Error).self, "\(way)") { try result.get() }
            switch way {
            case "URLSession": #expect(error as? URLError == URLError(.badServerResponse))
            case "values": #expect(error is ServiceError)
            default: #expect(error.asCurlewError?.statusCode == 404, "\(way)")
            }
        }
    }
}
