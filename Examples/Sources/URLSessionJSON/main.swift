// SPDX-License-Identifier: Apache-2.0
import CurlewURLSession
import Foundation

// A client of an API in JSON, as it is written for Apple's systems.

struct Bird: Codable, Equatable {
    var id: Int?
    var name: String
    var length: Int
}

/// The server has answered with a status that is no success.
struct StatusError: Error {
    let status: Int
    let message: String
}

struct BirdClient {
    let base: URL
    let token: String
    var session = URLSession.shared

    func birds(longerThan length: Int) async throws -> [Bird] {
        var components = URLComponents(url: base.appendingPathComponent("birds"), resolvingAgainstBaseURL: false)
        components?.queryItems = [URLQueryItem(name: "longer", value: String(length))]
        guard let url = components?.url else { throw URLError(.badURL) }
        return try await receive(URLRequest(url: url))
    }

    func add(_ bird: Bird) async throws -> Bird {
        var request = URLRequest(url: base.appendingPathComponent("birds"))
        request.httpMethod = "POST"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.httpBody = try JSONEncoder().encode(bird)
        return try await receive(request)
    }

    private func receive<Value: Decodable>(_ request: URLRequest) async throws -> Value {
        var request = request
        request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        let (data, response) = try await session.data(for: request)
        guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
        guard (200..<300).contains(response.statusCode) else {
            throw StatusError(status: response.statusCode, message: String(decoding: data, as: UTF8.self))
        }
        return try JSONDecoder().decode(Value.self, from: data)
    }
}

let server = try BirdServer()
defer { server.stop() }

let client = BirdClient(base: server.url, token: "demo")
let added = try await client.add(Bird(name: "Eurasian curlew", length: 55))
print("added \(added.name), number \(added.id ?? 0)")

// Both at the same time.
async let all = client.birds(longerThan: 0)
async let long = client.birds(longerThan: 50)
let names = try await (all: all.map(\.name), long: long.map(\.name))
print("all: \(names.all.joined(separator: ", "))")
print("longer than 50 cm: \(names.long.joined(separator: ", "))")
guard names.all.count == 3, names.long == ["Eurasian curlew"] else { exit(1) }

do {
    _ = try await BirdClient(base: server.url, token: "stale").birds(longerThan: 0)
    exit(1)
} catch let error as StatusError {
    print("with a stale token: \(error.status), \(error.message)")
}
