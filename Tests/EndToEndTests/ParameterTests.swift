// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// Methods, queries and bodies as received by the server.
@Suite(.timeLimit(.minutes(2))) struct ParameterTests {
    private let server: LoopbackServer
    private let manager = makeManager()

    init() throws {
        server = try LoopbackServer.standard()
    }

    @Test("the method is sent unchanged", arguments: [HTTPMethod.get, .post, .put, .patch, .delete, .options])
    func method(_ method: HTTPMethod) async throws {
        let reply = try await manager.echo(server.url("/echo"), method: method)
        #expect(reply.method == method.rawValue)
        #expect(reply.bodyLength == 0)
    }

    @Test("HEAD receives a head and no body") func head() async throws {
        let response = await manager.request(server.url("/bytes/1000"), method: .head).validate().serializingData().response
        #expect(response.error == nil)
        #expect(response.response?.value(forHTTPHeaderField: "Content-Length") == "1000")
        #expect(response.data == Data())
        #expect(server.requests.map(\.method) == ["HEAD"])
    }

    @Test("parameters of these methods are encoded in the query", arguments: [HTTPMethod.get, .head, .delete])
    func query(_ method: HTTPMethod) async throws {
        let parameters: Parameters = ["a": 1, "b c": "d&e=ü", "list": [1, 2], "nested": ["yes": true]]
        let response = await manager.request(server.url("/echo?first=0"), method: method, parameters: parameters).serializingData().response
        #expect(response.error == nil)
        let request = try #require(server.requests.first)
        let expected = [("first", "0"), ("a", "1"), ("b c", "d&e=ü"), ("list[]", "1"), ("list[]", "2"), ("nested[yes]", "1")]
        #expect(request.query == expected.map { ServerField($0, $1) })
        #expect(request.bodyLength == 0)
    }

    @Test("parameters of these methods are encoded as a form", arguments: [HTTPMethod.post, .put, .patch])
    func form(_ method: HTTPMethod) async throws {
        let reply = try await manager.echo(server.url("/echo"), method: method, parameters: ["a": 1, "b c": "d&e", "list": [1, 2]])
        #expect(String(decoding: reply.body, as: UTF8.self) == "a=1&b%20c=d%26e&list%5B%5D=1&list%5B%5D=2")
        #expect(reply.header("Content-Type")?.hasPrefix("application/x-www-form-urlencoded") == true)
        #expect(reply.header("Content-Length") == "\(reply.bodyLength)")
        #expect(reply.query.isEmpty)
    }

    @Test("the destination can be chosen") func destination() async throws {
        let query = try await manager.echo(server.url("/echo"), method: .post, parameters: ["a": 1], encoding: URLEncoding.queryString)
        #expect(query.target == "/echo?a=1")
        #expect(query.bodyLength == 0)
        let body = try await manager.echo(server.url("/echo"), parameters: ["a": 1], encoding: URLEncoding.httpBody)
        #expect(body.method == "GET")
        #expect(String(decoding: body.body, as: UTF8.self) == "a=1")
    }

    @Test("parameters as JSON", arguments: [HTTPMethod.post, .put, .patch, .delete])
    func json(_ method: HTTPMethod) async throws {
        let reply = try await manager.echo(
            server.url("/echo"), method: method, parameters: ["name": "curlew", "list": [1, 2], "deep": ["on": true]],
            encoding: JSONEncoding.default)
        let object = try #require(JSONSerialization.jsonObject(with: reply.body) as? [String: Any])
        #expect(reply.header("Content-Type") == "application/json")
        #expect(object["name"] as? String == "curlew")
        #expect(object["list"] as? [Int] == [1, 2])
        #expect((object["deep"] as? [String: Bool]) == ["on": true])
    }

    @Test("parameters as a property list", arguments: [PropertyListEncoding.xml, .binary])
    func propertyList(_ encoding: PropertyListEncoding) async throws {
        let reply = try await manager.echo(
            server.url("/echo"), method: .post, parameters: ["data": Data([0, 1]), "n": 7], encoding: encoding)
        let object = try #require(PropertyListSerialization.propertyList(from: reply.body, format: nil) as? [String: Any])
        #expect(reply.header("Content-Type") == "application/x-plist")
        #expect(object["data"] as? Data == Data([0, 1]))
        #expect(object["n"] as? Int == 7)
    }

    @Test("a custom request is sent with its body") func customRequest() async throws {
        var request = URLRequest(url: try server.url("/echo").asURL())
        request.httpMethod = "REPORT"
        request.httpBody = Data("body".utf8)
        request.setValue("text/x-own", forHTTPHeaderField: "Content-Type")
        let reply = try await manager.request(request).serializingDecodable(EchoReply.self).value
        #expect(reply.method == "REPORT")
        #expect(reply.body == Data("body".utf8))
        #expect(reply.header("Content-Type") == "text/x-own")
    }

    @Test("a custom request streams its body") func customRequestStream() async throws {
        var request = URLRequest(url: try server.url("/echo").asURL())
        request.httpMethod = "POST"
        request.httpBodyStream = InputStream(data: Data("streamed".utf8))
        let reply = try await manager.request(request).serializingDecodable(EchoReply.self).value
        #expect(reply.body == Data("streamed".utf8))
    }

    @Test("an invalid URL fails before anything is sent") func invalidURL() async throws {
        let bad = ["http://exa mple.org/", "ftp://127.0.0.1:\(server.port)/", "http:///path", "/relative"]
        for url in bad {
            let response = await manager.request(url).serializingData().response
            #expect(response.error is CurlewError, "\(url)")
        }
        #expect(server.connectionCount == 0)
    }
}
