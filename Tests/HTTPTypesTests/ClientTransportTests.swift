// SPDX-License-Identifier: Apache-2.0
#if HTTPTypes
import CurlewHTTPTypes
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// The transport of a generated client, as in the documentation.
@Suite(.timeLimit(.minutes(1))) struct ClientTransportTests {
    @Test func `a generated client's requests are sent relative to its server's URL, and named by their operation`() async throws {
        let server = try LoopbackServer { request, _ in
            let body = Data("\(request.method) \(request.target) \(String(decoding: request.body, as: UTF8.self))".utf8)
            return ServerResponse(status: 201, headers: [ServerField("X-Kind", "made")], body: .chunked([body, Data("!".utf8)]))
        }
        let names = Log<String?>()
        let manager = makeManager { $0.eventMonitors = [NameMonitor(names: names)] }
        let transport = CurlewClientTransport(manager: manager)
        // As the generator makes them: without scheme and authority.
        let request = HTTPRequest(method: .put, scheme: nil, authority: nil, path: "/users/7?full=true")
        let base = try #require(URL(string: server.url("/v1/")))
        let (response, body) = try await transport.send(request, body: HTTPBody("Emma"), baseURL: base, operationID: "putUser")
        #expect(response.status == .created)
        #expect(try response.headerFields[#require(HTTPField.Name("X-Kind"))] == "made")
        let received = try await Data(collecting: #require(body), upTo: 1000)
        #expect(String(decoding: received, as: UTF8.self) == "PUT /v1/users/7?full=true Emma!")
        await names.wait(for: 1)
        #expect(names.elements == ["putUser"])
    }

    @Test func `the documentation has the same transport, of at most twenty lines`() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let test = try lines(of: here.appendingPathComponent("GeneratedClient.swift"))
        let source = try lines(of: here.appendingPathComponent("../../Sources/HTTPTypes/SessionManager+HTTPTypes.swift"))
            .map { $0.trimmingCharacters(in: .whitespaces) }.filter { $0.hasPrefix("///") }
            .map { (line: String) -> String in String(line.dropFirst(line == "///" ? 3 : 4)) }
        let snippet = try #require(region(in: test, from: "// snippet: transport", to: "// end"))
        #expect(snippet == region(in: source, from: "```swift", to: "```"))
        #expect((5...20).contains(snippet.count))
    }

    private func lines(of file: URL) throws -> [String] {
        try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n")
    }

    private func region(in lines: [String], from start: String, to end: String) -> [String]? {
        lines.firstIndex(of: start).map { Array(lines[($0 + 1)...].prefix { $0 != end }) }
    }
}

private struct NameMonitor: EventMonitor {
    let names: Log<String?>

    func requestDidFinish(_ request: Request) { names.append(request.name) }
}
#endif
