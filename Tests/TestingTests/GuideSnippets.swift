// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting

/// The code of the guide "Testing: mock responses, a clock, a server", as it is there.
enum TestingSnippets {
    struct User: Codable, Sendable, Equatable {
        let id: Int
        let name: String
    }

    static func oneLine() async throws -> User {
        // snippet: one line
        let manager = SessionManager(mock: .json(User(id: 7, name: "Numenius")))
        let user = try await manager.request("https://api.example.org/users/7").serializingDecodable(User.self).value
        // end
        return user
    }

    static func stubs() -> (SessionManager, MockTransport) {
        // snippet: stubs
        let mock = MockTransport()
        mock.stub(.get, "/users/{id}") { request in .json(User(id: Int(request.parameters["id"] ?? "") ?? 0, name: "Numenius")) }
        mock.stub(.post, "/users", respond: .failure(.connectionLost), .status(201))
        let manager = SessionManager(mock: mock)
        // end
        return (manager, mock)
    }

    static func time() async throws -> (String, Duration) {
        // snippet: time
        let clock = VirtualClock(.automatic)
        let manager = SessionManager(mock: .status(503).header("Retry-After", "60"), .text("ok"), clock: clock, interceptor: RetryPolicy())
        let text = try await manager.request("https://api.example.org/report").validate().serializingString().value
        // end
        return (text, clock.elapsed)
    }

    static func server(_ use: (SessionManager, LoopbackServer) async throws -> Void) async throws {
        // snippet: server
        let (tls, authority) = try ServerTLS.throwAway()
        let server = try LoopbackServer(
            tls: tls,
            routes: [
                .get("/users/{id}") { request, _ in try .json(["id": request.parameters["id"]]) },
                .get("/report") { _, _ in .ok("A report").misbehaving(.cut(after: 3)) },
            ])
        defer { server.stop() }
        var configuration = SessionConfiguration()
        configuration.tls.certificateAuthorities = authority.certificate
        let manager = SessionManager(configuration: configuration)
        // end
        try await use(manager, server)
    }

    static func cassette(_ directory: URL, apiKey: String) throws -> SessionManager {
        // snippet: cassette
        let redaction = CassetteRedaction(names: ["X-Partner-Id"], values: [apiKey])
        let cassette = try Cassette(directory: directory, redaction: redaction)
        let manager = SessionManager(transport: try ReplayTransport(cassette, mode: .once))
        // end
        return manager
    }
}
