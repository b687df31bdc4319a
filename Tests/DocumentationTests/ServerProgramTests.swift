// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import Testing

/// Runs the programs of the guide «Curlew on the server» that need Curlew only: their files are links to those in Examples/Server.
@Suite(.timeLimit(.minutes(2))) struct ServerProgramTests {
    private static var configuration: SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        return configuration
    }

    @Test("the worker's jobs share each token, and are retried") func worker() async throws {
        let tokens = Log<String>()
        let refused = Log<String>()
        let server = try LoopbackServer { request, _ in
            if request.path == "/token" {
                tokens.append(request.method)
                return .ok(#"{"access_token": "\#(tokens.count)", "expires_in": 3600}"#, type: "application/json")
            }
            guard request.header("Authorization") == "Bearer 2" else { return .status(401) }
            if request.path == "/jobs/5", refused.count == 0 {
                refused.append(request.path)
                return ServerResponse(status: 503, headers: [ServerField("Retry-After", "0")])
            }
            return .ok(request.path.components(separatedBy: "/").last ?? "", type: "application/json")
        }
        let worker = Worker(url: server.url(""), configuration: Self.configuration)
        let done = try await withThrowingTaskGroup(of: Int.self) { group in
            for job in 1...20 { group.addTask { try await worker.result(of: job) } }
            return try await group.reduce(0, +)
        }
        #expect(done == 210 && tokens.count == 2 && refused.count == 1)
    }

    @Test("a thousand requests are answered, at most fifty at a time") func fanOut() async throws {
        let busy = Log<Int>()
        let now = Lock(0)
        let server = try LoopbackServer(recording: false) { request, _ in
            busy.append(
                now.withLock { count in
                    count += 1
                    return count
                })
            defer { now.withLock { $0 -= 1 } }
            return .ok(String(request.path.dropFirst()), type: "application/json")
        }
        let prices = try await PriceList(url: server.url(""), configuration: Self.configuration).prices(of: 1...1000)
        #expect(prices.count == 1000 && prices.allSatisfy { $0 == $1 })
        #expect(busy.count == 1000 && busy.elements.max() ?? 0 <= 50)
    }

    @Test("a sequence is made again for a retry, and a form is sent with its files") func uploads() async throws {
        let refused = Log<String>()
        let server = try LoopbackServer { request, _ in
            if request.path == "/records", refused.count == 0 {
                refused.append(String(decoding: request.body, as: UTF8.self))
                return ServerResponse(status: 503, headers: [ServerField("Retry-After", "0")])
            }
            let announced = request.header("Content-Length") ?? "null"
            return .ok(#"{"received": \#(request.bodyLength), "announced": \#(announced)}"#, type: "application/json")
        }
        let uploads = Uploads(url: server.url(""), manager: SessionManager(configuration: Self.configuration))
        let made = Log<Int>()
        let records = try await uploads.send {
            made.append(1)
            return AsyncStream { continuation in
                for number in 0..<10 { continuation.yield(Data("\(number)".utf8)) }
                continuation.finish()
            }
        }
        #expect(records.received == 10 && records.announced == nil && made.count == 2)

        let directory = try TemporaryDirectory()
        let photos = try (1...2).map { try directory.write(GeneratedBody().data(count: 1000), to: "\($0).jpg") }
        let form = try await uploads.send(photos, title: "Curlew")
        #expect(form.received > 2000 && form.announced == form.received)
        let body = try String(decoding: #require(server.requests.last).body, as: UTF8.self)
        #expect(body.contains("Curlew") && body.contains("filename=\"2.jpg\""))
    }

    @Test("a download resumes by itself, and where an earlier one has failed") func archive() async throws {
        let offsets = Log<Int64>()
        let length = 1_000_000
        let server = try LoopbackServer { request, connection in
            let offset = request.header("Range").flatMap { Int($0.dropFirst("bytes=".count).prefix { $0 != "-" }) } ?? 0
            offsets.append(Int64(offset))
            let status = offset == 0 ? "200 OK" : "206 Partial Content\r\nContent-Range: bytes \(offset)-\(length - 1)/\(length)"
            try connection.send(raw: "HTTP/1.1 \(status)\r\nContent-Length: \(length - offset)\r\nETag: \"1\"\r\n\r\n")
            try connection.send(raw: Data(GeneratedBody().data(count: length).dropFirst(offset).prefix(length / 4)))
            connection.close()
            return nil
        }
        let directory = try TemporaryDirectory()
        let file = directory.file("archive")
        let first = Archive(manager: SessionManager(configuration: Self.configuration))
        await #expect(throws: CurlewError.self) { try await first.download(server.url("/"), to: file) }
        #expect(!FileManager.default.fileExists(atPath: file.path))
        _ = try await Archive(manager: SessionManager(configuration: Self.configuration)).download(server.url("/"), to: file)
        #expect(offsets.elements == [0, 250_000, 500_000, 750_000])
        #expect(GeneratedBody().matches(try Data(contentsOf: file)))
    }

    @Test("both services get the call's id and its deadline, also with a retry") func backends() async throws {
        let server = try LoopbackServer { request, _ in
            guard request.header("X-Call-ID") == "call-7", let seconds = request.header("X-Deadline").flatMap(Double.init),
                0...60 ~= seconds
            else { return .status(400) }
            return request.path.hasPrefix("/customers") ? .ok(#"{"id": 7, "name": "Ada"}"#) : .ok(#"[{"number": 1}]"#)
        }
        let refused = Gate()
        let busy = try LoopbackServer { request, _ in
            guard request.header("X-Call-ID") == "call-7" else { return .status(400) }
            defer { refused.open() }
            return refused.isOpen ? .ok("[]") : ServerResponse(status: 503, headers: [ServerField("Retry-After", "0")])
        }
        for (orders, count) in [(server, 1), (busy, 0)] {
            let backends = Backends(customersURL: server.url(""), ordersURL: orders.url(""), configuration: Self.configuration)
            let page = try await withDeadline(.seconds(60)) {
                try await CallID.$current.withValue("call-7") {
                    async let customer = backends.customer(7)
                    async let orders = backends.orders(of: 7)
                    return try await (customer, orders)
                }
            }
            #expect(page.0.name == "Ada" && page.1.count == count)
        }
        #expect(busy.requestCount == 2)
    }
}
