// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct EncodableParameterTests {
    private struct Bird: Codable, Equatable, Sendable {
        var name = "great curlew"
        var tags = ["long", "beak"]
    }

    private let server: LoopbackServer
    private let manager = makeManager()
    private let pairs = "name=great%20curlew&tags%5B%5D=long&tags%5B%5D=beak"

    init() throws {
        server = try LoopbackServer.standard()
    }

    private func reply(_ request: DataRequest) async throws -> EchoReply {
        try await request.validate().serializingDecodable(EchoReply.self).value
    }

    @Test("a value is encoded in the query of a GET and the body of a POST") func methods() async throws {
        let get = try await reply(manager.request(server.url("/echo?x=1"), parameters: Bird()))
        #expect(get.target == "/echo?x=1&\(pairs)")
        let post = try await reply(manager.request(server.url("/echo"), method: .post, parameters: Bird(), headers: ["X-One": "1"]))
        #expect(post.target == "/echo")
        #expect(String(decoding: post.body, as: UTF8.self) == pairs)
        #expect(post.header("Content-Type") == "application/x-www-form-urlencoded; charset=utf-8")
        #expect(post.header("X-One") == "1")
    }

    @Test("a value is encoded as JSON") func json() async throws {
        for encoder in [JSONParameterEncoder.default, .prettyPrinted, .sortedKeys] {
            let reply = try await reply(manager.request(server.url("/echo"), method: .post, parameters: Bird(), encoder: encoder))
            #expect(try JSONDecoder().decode(Bird.self, from: reply.body) == Bird())
            #expect(reply.header("Content-Type") == "application/json")
        }
        let array = try await reply(manager.request(server.url("/echo"), method: .put, parameters: [1, 2], encoder: .json))
        #expect(array.body == Data("[1,2]".utf8))
    }

    @Test("headers keep their order with encoded parameters") func headerOrder() async throws {
        let headers: HTTPHeaders = ["X-Three": "3", "X-One": "1", "X-Two": "2", "x-one": "again"]
        let reply = try await reply(
            manager.request(server.url("/echo"), method: .post, parameters: Bird(), encoder: .json, headers: headers))
        #expect(reply.headers.filter { $0.name.lowercased().hasPrefix("x-") }.map(\.value) == ["3", "1", "2", "again"])
    }

    @Test("without an encoder a dictionary literal is a dictionary, and nil is no parameters")
    func overloads() async throws {
        let url = server.url("/echo")
        #expect(try await reply(manager.request(url)).target == "/echo")
        #expect(try await reply(manager.request(url, parameters: ["a": 1])).target == "/echo?a=1")
        #expect(try await reply(manager.request(url, parameters: ["a": 1, "b": "x"])).target == "/echo?a=1&b=x")
        #expect(try await reply(manager.request(url, parameters: nil)).target == "/echo")
        #expect(try await reply(manager.request(url, parameters: [:])).target == "/echo")
        // The two encodings write dates differently.
        let date = Date(timeIntervalSince1970: 0)
        let dictionary = try await reply(manager.request(url, parameters: ["a": date]))
        #expect(dictionary.query("a") == "1970-01-01 00:00:00 +0000")
        let dates = ["a": date]
        #expect(try await reply(manager.request(url, parameters: dates)).query("a") == "1970-01-01 00:00:00 +0000")
        #expect(
            try await reply(manager.request(url, parameters: dates, encoding: URLEncoding.queryString)).query("a")?.hasPrefix("1970")
                == true)
        let value = try await reply(manager.request(url, parameters: dates, encoder: .urlEncodedForm))
        #expect(value.query("a") == "-978307200")
        let parameters: Parameters = ["a": 1]
        #expect(try await reply(manager.request(url, parameters: parameters)).target == "/echo?a=1")
        #expect(try await reply(manager.request(url, parameters: Bird?.none, encoder: .json)).target == "/echo")
    }

    @Test("a value that cannot be encoded fails the request before anything is sent") func failure() async throws {
        let response = await manager.request(server.url("/echo"), method: .post, parameters: Double.nan, encoder: .json)
            .serializingData().response
        guard case CurlewError.parameterEncodingFailed(.jsonEncodingFailed, _)? = response.error else {
            Issue.record("\(String(describing: response.error))")
            return
        }
        let form = await manager.request(server.url("/echo"), parameters: [1, 2], encoder: .urlEncodedForm).serializingData().response
        guard case CurlewError.parameterEncodingFailed(.formEncodingFailed, _)? = form.error else {
            Issue.record("\(String(describing: form.error))")
            return
        }
        #expect(server.connectionCount == 0)
    }

    @Test("downloads and streamed requests take values as well") func otherKinds() async throws {
        let directory = try TemporaryDirectory()
        let url = server.url("/echo")
        let (first, second) = (directory.file("first"), directory.file("second"))
        _ = try await manager.download(url, method: .post, parameters: Bird(), encoder: .json, to: first).validate().serializingURL().value
        _ = try await manager.download(url, parameters: Bird(), to: { _, _ in (second, []) }).validate().serializingURL().value
        #expect(try JSONDecoder().decode(EchoReply.self, from: Data(contentsOf: first)).header("Content-Type") == "application/json")
        #expect(try JSONDecoder().decode(EchoReply.self, from: Data(contentsOf: second)).target == "/echo?\(pairs)")
        #expect(try await reply(manager.streamRequest(url, parameters: Bird())).target == "/echo?\(pairs)")
        let plain = directory.file("plain")
        _ = try await manager.download(url, parameters: ["a": 1], to: plain).validate().serializingURL().value
        #expect(try JSONDecoder().decode(EchoReply.self, from: Data(contentsOf: plain)).target == "/echo?a=1")
    }

    /// A value that fails to encode itself.
    private struct Unencodable: Encodable, Sendable {
        func encode(to encoder: any Encoder) throws { throw TestError("unencodable") }
    }

    @Test("an Encodable value is sent and its answer decoded in a line, which throws a typed error for each stage") func inALine()
        async throws
    {
        let answer = try await manager.request(
            server.url("/body"), method: .post, parameters: Bird(), encoder: JSONParameterEncoder.default
        ).validate().serializingDecodable(Bird.self).value
        #expect(answer == Bird())

        let errors = Log<any Error>()
        let calls: [@Sendable () async throws -> Bird] = [
            { [manager, server] in
                try await manager.request(server.url("/body"), method: .post, parameters: Unencodable(), encoder: .json)
                    .validate().serializingDecodable(Bird.self).value
            },
            { [manager, server] in
                try await manager.request(server.url("/status/422"), method: .post, parameters: Bird(), encoder: .json)
                    .validate().serializingDecodable(Bird.self).value
            },
            { [manager, server] in
                try await manager.request(server.url("/body"), method: .post, parameters: ["name": 1], encoder: .json)
                    .validate().serializingDecodable(Bird.self).value
            },
        ]
        for call in calls {
            do { _ = try await call() } catch { errors.append(error) }
        }
        #expect(errors.count == 3 && errors.elements.allSatisfy { $0 is CurlewError })
        guard case CurlewError.parameterEncodingFailed(.jsonEncodingFailed(let cause), _)? = errors.elements.first,
            case CurlewError.responseSerializationFailed(.decodingFailed, _)? = errors.elements.last
        else {
            Issue.record("\(errors.elements)")
            return
        }
        #expect(cause as? TestError == TestError("unencodable"))
        #expect(errors.elements[1].unacceptableStatus == 422)
        #expect(server.requestCount == 3)
    }
}

extension EchoReply {
    /// Returns the value of the first query item with this name.
    fileprivate func query(_ name: String) -> String? { query.first { $0.name == name }?.value }
}
