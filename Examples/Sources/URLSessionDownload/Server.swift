// SPDX-License-Identifier: Apache-2.0
import DemoServer

/// A server of a file, in the same process. It stops half-way until it is told to send all, so that there is time to pause.
final class ArchiveServer: Sendable {
    let content: Data
    private let server: LoopbackServer
    private let isFast = Gate()

    init(size: Int) throws {
        content = GeneratedBody().data(count: size)
        server = try LoopbackServer { [content, isFast] request, connection in
            let response = ServerResponse.generated(length: Int64(size), etag: "\"1\"", for: request)
            guard !isFast.isOpen else { return response }
            let fields = response.headers.map { "\($0.name): \($0.value)\r\n" }.joined()
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\n\(fields)\r\n")
            for start in stride(from: 0, through: size / 2, by: size / 10) {
                try connection.send(raw: content[start..<start + size / 10])
                connection.pause(for: .milliseconds(20))
            }
            connection.waitUntilClosed()
            return nil
        }
    }

    var url: URL { server.url }

    func sendAll() { isFast.open() }

    func stop() { server.stop() }
}
