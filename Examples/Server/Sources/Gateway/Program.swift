// SPDX-License-Identifier: Apache-2.0
import Curlew
import ExampleServer
import ExampleService

/// A gateway on Hummingbird that forwards to a server behind it: fields, bodies and trailers in both directions, the time that the client
/// will wait, and the end of a client.
@main
enum Program {
    static func main() async throws {
        let ends = Log<String>()
        let upstream = try LoopbackServer { request, connection in try respond(to: request, connection, ends) }
        defer { upstream.stop() }
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        let client = SessionManager(configuration: configuration)
        configuration.decodesContent = false
        let manager = SessionManager(configuration: configuration)
        try await withService(gateway(to: upstream.url(""), by: manager)) { url in
            try await fields(url, client, upstream)
            try await body(url, client, upstream)
            try await deadline(url, client)
            try await cancellation(url, client, ends)
        }
    }

    // MARK: The server behind the gateway

    private static func respond(to request: ServerRequest, _ connection: ServerConnection, _ ends: Log<String>) throws -> ServerResponse? {
        switch request.path {
        case "/users/7":
            try connection.send(
                raw: "HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "3\r\nAda\r\n0\r\nX-Checksum: 7\r\n\r\n")
            return nil
        case "/users/import": return .ok("\(request.bodyLength)")
        case "/users/slow":
            connection.pause(for: .seconds(30))
            return .status(200)
        case "/users/events":
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
            connection.waitUntilClosed()
            ends.append(request.path)
            return nil
        default: return .status(404)
        }
    }

    // MARK: Its clients

    private static func fields(_ url: String, _ client: SessionManager, _ upstream: LoopbackServer) async throws {
        let headers: HTTPHeaders = ["Connection": "X-Secret-Hop", "X-Secret-Hop": "1", "X-Forwarded-For": "203.0.113.9"]
        let response = try await client.open("\(url)/users/7?name=full", headers: headers)
        let text = String(decoding: try await response.body.collect(upTo: 100), as: UTF8.self)
        try expect(response.statusCode == 200 && text == "Ada" && response.trailers["X-Checksum"] == "7", "\(text) \(response.trailers)")
        try expect(response.headers["X-Hop"] == nil && response.headers["Content-Type"] == "text/plain", "\(response.headers)")
        guard let seen = upstream.requests.last else { throw TestError("no request") }
        try expect(seen.target == "/users/7?name=full" && seen.header("X-Secret-Hop") == nil, "\(seen.target)")
        try expect(seen.header("X-Forwarded-For") == "127.0.0.1" && seen.header("X-Forwarded-Proto") == "http", "client fields")
        try expect(url == "http://\(seen.header("X-Forwarded-Host") ?? "-")" && seen.header("Via") == "1.1 curlew", "host and Via")
        for path in ["/users/../admin", "/users/%2E%2e/admin"] {
            let status = try await client.open(url + path).statusCode
            try expect(status == 400 && upstream.requests.last?.target == seen.target, "\(path): \(status)")
        }
        print("Fields: \(text), for \(seen.header("X-Forwarded-For") ?? "-"), trailers \(response.trailers.count)")
    }

    private static func body(_ url: String, _ client: SessionManager, _ upstream: LoopbackServer) async throws {
        let lines = { AsyncStream(unfolding: { [count = Log<Int>()] in line(count) }) }
        let received = try await client.upload(lines, to: "\(url)/users/import").validate().serializingString().value
        try expect(received == "1000000", received)
        print("Body: \(received) bytes, \(upstream.requests.last?.header("Transfer-Encoding") ?? "-")")
    }

    @Sendable private static func line(_ count: Log<Int>) -> Data? {
        guard count.count < 1000 else { return nil }
        count.append(1)
        return Data(repeating: 120, count: 1000)
    }

    private static func deadline(_ url: String, _ client: SessionManager) async throws {
        let start = ContinuousClock.now
        let late = await client.request("\(url)/users/slow", headers: ["X-Deadline": "0.200"]).serializingData().response
        try expect(late.response?.statusCode == 504, "\(late)")
        print("Too late: 504 after \(start.duration(to: .now).formatted(.units(allowed: [.milliseconds])))")
    }

    private static func cancellation(_ url: String, _ client: SessionManager, _ ends: Log<String>) async throws {
        for try await piece in client.streamRequest("\(url)/users/events").validate().bodyStream() {
            try expect(piece == Data("data: 1\n\n".utf8), "\(piece)")
            break
        }
        let end = ContinuousClock.now + .seconds(20)
        while ends.count == 0, ContinuousClock.now < end { try await Task.sleep(for: .milliseconds(10)) }
        try expect(ends.elements == ["/users/events"], "the server was left waiting")
        print("Cancelled: the client is gone, and so is the request to the server")
    }

    private static func expect(_ isRight: Bool, _ message: String) throws {
        guard isRight else { throw TestError(message) }
    }
}
