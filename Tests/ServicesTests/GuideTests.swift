// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewServices
import CurlewTestSupport
import Testing

/// Compiles and runs the code of the guide "Coming from Squid".
@Suite(.timeLimit(.minutes(1)))
struct ServiceGuideTests {
    struct User: Codable, Sendable, Equatable {
        let name: String
    }

    struct Post: Codable, Sendable, Equatable {
        let text: String
    }

    // snippet: requests
    struct UserRequest: JSONServiceRequest {
        typealias Result = User
        let id: Int
        var routes: HTTPRoute { ["users", id] }
    }

    struct NewUserRequest: JSONServiceRequest {
        typealias Result = User
        let user: User
        var method: HTTPMethod { .post }
        var routes: HTTPRoute { "users" }
        var body: any HTTPBody { HTTPData.JSON(user) }
        var acceptedStatusCodes: ClosedRange<Int> { 201...201 }
    }
    // end

    // snippet: service
    struct Production: HTTPService {
        var apiURL: any URLConvertible { "api.example.org/v1" }
        var header: HTTPHeaders { ["Accept-Language": "en"] }
        var retrierFactory: any ServiceRetrierFactory { BackoffServiceRetrier.factory() }
    }
    // end

    // snippet: chat
    struct Chat: JSONServiceStreamRequest {
        typealias Message = Post
        typealias Result = Post
        let room: String
        var routes: HTTPRoute { ["rooms", room] }
    }
    // end

    @Test func guideContainsThisCode() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let page = root.appendingPathComponent("Sources/Curlew/Curlew.docc/ComingFromSquid.md")
        #expect(try DocumentedCode.differences(page: page, sources: URL(fileURLWithPath: #filePath)).isEmpty)
        #expect(try Production().apiURL.asURL().absoluteString == "api.example.org/v1")
    }

    @Test func requestsFromTheGuideWork() async throws {
        let server = try LoopbackServer { request, _ in
            guard request.method == "POST" else { return .ok(#"{"name": "user of \#(request.path)"}"#) }
            return try .json(JSONDecoder().decode(User.self, from: request.body), status: 201)
        }
        defer { server.stop() }
        let production = TestService(server)
        // snippet: use
        let response = UserRequest(id: 7).schedule(with: production)
        let user = try await response.value
        let header = try await response.header
        let subscription = response.sink { result in
            print(result)
        }
        // end
        subscription.cancel()
        #expect(user.name == "user of /users/7" && header["Content-Type"] != nil && server.requestCount == 1)
        #expect(try await NewUserRequest(user: user).schedule(with: production).value == user)
    }

    @Test func streamsFromTheGuideWork() async throws {
        let server = try WebSocketServer(accept: { WebSocketHandshake.accept(for: $0) }) { try $0.echo() }
        defer { server.stop() }
        let production = TestService(server)
        // snippet: stream
        let chat = Chat(room: "birds").schedule(with: production)
        try await chat.send(Post(text: "A curlew!"))
        for try await post in chat.results.ignoreResultErrors() {
            print(post.text)
            break
        }
        // end
        #expect(server.requests.first?.path == "/rooms/birds")
    }
}
