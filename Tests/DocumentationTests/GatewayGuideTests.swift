// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import Foundation
import Testing

/// Runs the code of «A gateway», but for that of Hummingbird, and checks that it behaves as the article says.
@Suite(.timeLimit(.minutes(1))) struct GatewayGuideTests {
    @Test("every block of the article is compiled, and all code compiled for it is in it") func sameCode() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/Curlew/Curlew.docc/Gateway.md")
        let route = here.appendingPathComponent("../../Examples/Server/Sources/Gateway/Gateway.swift")
        #expect(try DocumentedCode.differences(page: page, sources: here.appendingPathComponent("GatewayGuideSnippets.swift"), route) == [])
    }

    // A2.4
    @Test("a request is forwarded to the server only") func forward() async throws {
        let server = try LoopbackServer { request, _ in .ok("\(request.target) for \(request.header("X-Forwarded-For") ?? "-")") }
        defer { server.stop() }
        let gateway = UsersGateway(upstream: server.url(""), manager: GatewayGuideSnippets.makeManager())
        let response = try await gateway.forward(.get, "/users/7?a=1", ["Host": "api.example.org"], from: "192.0.2.1")
        #expect(response.statusCode == 200)
        #expect(try await response.body.collect(upTo: 100) == Data("/users/7?a=1 for 192.0.2.1".utf8))
        await #expect(throws: URLError.self) { try await gateway.forward(.get, "@192.0.2.7/", [:], from: "192.0.2.1") }
        #expect(server.requestCount == 1)
    }

    // A2.4
    @Test("fields, bodies and trailers are forwarded as the guide has them") func body() async throws {
        let server = try LoopbackServer { request, connection in
            let fields = [request.header("Forwarded") ?? "-", request.header("Via") ?? "-", request.trailers.map(\.value).joined()]
            let text = fields.joined(separator: "|")
            try connection.send(
                raw: "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "\(String(text.utf8.count, radix: 16))\r\n\(text)\r\n0\r\nX-Checksum: 9\r\n\r\n")
            return nil
        }
        defer { server.stop() }
        let plain = ForwardedRequest(.post, to: server.url("/"), headers: ["Host": "a.example", "Forwarded": "for=x"], client: "192.0.2.1")
        let body = AsyncStream<Data> { pieces in
            pieces.yield(Data("body".utf8))
            pieces.finish()
        }
        let received = try await GatewayGuideSnippets.upload(
            GatewayGuideSnippets.fields(plain), body, GatewayGuideSnippets.makeManager())
        #expect(String(decoding: received, as: UTF8.self) == "for=x, for=192.0.2.1;host=a.example;proto=https|1.1 edge|7")
        #expect(server.requests.map { String(decoding: $0.body, as: UTF8.self) } == ["body"])
    }

    @Test("what can't be forwarded has a status of gateways") func status() async throws {
        let gate = Gate()
        defer { gate.open() }
        let server = try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return nil
        }
        let manager = GatewayGuideSnippets.makeManager()
        let slow = ForwardedRequest(.get, to: server.url("/"), headers: [:])
        let late = await #expect(throws: CurlewError.self) { try await manager.forward(slow, timeout: .milliseconds(50)) }
        #expect(late.map { GatewayGuideSnippets.status(of: $0) } == 504)
        gate.open()
        server.stop()
        let lost = await #expect(throws: CurlewError.self) { try await manager.forward(slow) }
        #expect(lost.map { GatewayGuideSnippets.status(of: $0) } == 502)
        #expect(GatewayGuideSnippets.status(of: URLError(.badURL)) == 500)
    }
}
