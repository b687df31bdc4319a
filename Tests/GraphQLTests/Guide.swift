// SPDX-License-Identifier: Apache-2.0
// snippet: ten
import Curlew
import CurlewGraphQL
import CurlewWebSocket

struct Page: Decodable, Sendable {
    struct Hero: Decodable, Sendable { let id, name: String }
    let heroes: [Hero]
}

func heroes(_ count: Int, from url: String, with manager: SessionManager) async throws -> [Page.Hero] {
    let client = GraphQLClient(url, manager: manager)
    let request = GraphQLRequest("query ($first: Int!) { heroes(first: $first) { id name } }", variables: ["first": count])
    return try await client.response(to: request, as: Page.self).get().heroes
}
// end

// snippet: errors
struct Friends: Decodable, Sendable {
    struct Hero: Decodable, Sendable {
        let name: String
        let friend: Friend?
    }
    struct Friend: Decodable, Sendable { let name: String }
    let heroes: [Hero]
}

func friends(_ client: GraphQLClient) async throws -> [String] {
    let response = try await client.response(to: GraphQLRequest("{ heroes { name friend { name } } }"), as: Friends.self)
    let failures = response.errors.map { "\($0.code ?? "error"): \($0)" }  // LONELY: heroes.0.friend: …
    return (response.data?.heroes ?? []).compactMap { $0.friend?.name } + failures
}
// end

// snippet: settings
func report(_ url: String, with manager: SessionManager) async throws -> [Page.Hero] {
    var configuration = GraphQLConfiguration()
    configuration.interceptor = GraphQLRetryPolicy(retryLimit: 3)
    configuration.usesPersistedQueries = true
    let client = GraphQLClient(url, manager: manager, configuration: configuration)
    var request = GraphQLRequest("query Report { heroes { id name } }")
    request.usesGET = true
    return try await client.response(to: request, as: Page.self, options: RequestOptions(deadline: .seconds(5))).get().heroes
}
// end

// snippet: files
func store(_ photos: [URL], with client: GraphQLClient) async throws -> [String] {
    struct Stored: Decodable, Sendable { let store: [String] }
    let request = GraphQLRequest(
        "mutation ($files: [Upload!]!) { store(files: $files) }", variables: ["files": photos.map { GraphQLUpload(file: $0) }])
    return try await client.response(to: request, as: Stored.self).get().store
}
// end

// snippet: subscriptions
func count(_ url: String, with manager: SessionManager, token: @escaping @Sendable () async throws -> String) async throws -> [Int] {
    struct Count: Decodable, Sendable { let count: Int }
    var configuration = GraphQLConfiguration()
    configuration.connectionPayload = { ["token": .string(try await token())] }
    configuration.webSocket.pingInterval = .seconds(30)
    configuration.webSocket.reconnection = WebSocketReconnection(limit: 5)
    let client = GraphQLClient(url, manager: manager, configuration: configuration)
    var numbers: [Int] = []
    for try await event in client.subscribe(to: GraphQLRequest("subscription { count(to: 3) }"), as: Count.self) {
        numbers.append(try event.get().count)
    }
    return numbers
}
// end
