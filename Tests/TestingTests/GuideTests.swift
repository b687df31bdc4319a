// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import CurlewTesting
import Testing

/// Runs the code of the guide "Testing: mock responses, a clock, a server", and checks that it behaves as the guide says.
@Suite(.timeLimit(.minutes(1))) struct TestingGuideTests {
    @Test("every block of the guide is compiled, and all code compiled for it is in it") func sameCode() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/Testing/CurlewTesting.docc/TestingWithCurlew.md")
        #expect(try DocumentedCode.differences(page: page, sources: here.appendingPathComponent("GuideSnippets.swift")) == [])
    }

    @Test("responses from memory") func memory() async throws {
        #expect(try await TestingSnippets.oneLine() == TestingSnippets.User(id: 7, name: "Numenius"))
        let (manager, mock) = TestingSnippets.stubs()
        let user = try await manager.request("https://api.example.org/users/9").serializingDecodable(TestingSnippets.User.self).value
        #expect(user.id == 9)
        for status in [nil, 201] {
            let request = manager.request("https://api.example.org/users", method: .post)
            #expect(await request.serializingData().response.response?.statusCode == status)
        }
        #expect(mock.requests.count == 3)
    }

    @Test("time that passes by itself") func time() async throws {
        let (text, elapsed) = try await TestingSnippets.time()
        #expect(text == "ok" && elapsed == .seconds(60))
    }

    @Test("a real server with TLS") func server() async throws {
        try await TestingSnippets.server { manager, server in
            let user = try await manager.request(server.url("/users/7")).serializingString().value
            #expect(user == #"{"id":"7"}"#)
            #expect(await manager.request(server.url("/report")).serializingData().response.error != nil)
        }
    }

    @Test("exchanges are recorded once") func cassette() async throws {
        let directory = try TemporaryDirectory()
        let server = try LoopbackServer { request, _ in .ok(request.header("X-Key") ?? "") }
        defer { server.stop() }
        for _ in 1...2 {
            let manager = try TestingSnippets.cassette(directory.url, apiKey: "own-v4lue")
            #expect(await manager.request(server.url("/"), headers: ["X-Key": "own-v4lue"]).serializingData().response.error == nil)
            await manager.shutdown(gracePeriod: .seconds(1))
        }
        #expect(server.requestCount == 1)
        for name in try contents(of: directory) {
            let text = try String(contentsOf: directory.file(name), encoding: .utf8)
            #expect(!text.contains("own-v4lue"))
        }
    }
}
