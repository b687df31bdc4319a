// SPDX-License-Identifier: Apache-2.0
import DemoServer

/// A server of birds, in the same process.
final class BirdServer: Sendable {
    private let server: LoopbackServer

    init() throws {
        let birds = Log<Bird>()
        birds.append(Bird(id: 1, name: "whimbrel", length: 42))
        birds.append(Bird(id: 2, name: "little curlew", length: 30))
        server = try LoopbackServer { request, _ in
            guard request.header("Authorization") == "Bearer demo" else { return .status(401, text: "the token is not known") }
            guard request.path == "/birds" else { return .status(404) }
            if request.method == "POST" {
                var bird = try JSONDecoder().decode(Bird.self, from: request.body)
                bird.id = birds.count + 1
                birds.append(bird)
                return try .json(bird, status: 201)
            }
            let length = request.query("longer").flatMap { Int($0) } ?? 0
            return try .json(birds.elements.filter { $0.length > length })
        }
    }

    var url: URL { server.url }

    func stop() { server.stop() }
}

extension ServerResponse {
    fileprivate static func status(_ status: Int, text: String) -> ServerResponse {
        ServerResponse(status: status, body: .data(Data(text.utf8)))
    }
}
