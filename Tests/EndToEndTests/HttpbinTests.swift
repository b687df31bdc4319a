// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// Tests against an independent server.
@Suite(.timeLimit(.minutes(2)), .needsHttpbin) struct HttpbinTests {
    private let httpbin: String
    private let manager = makeManager()

    init() throws {
        httpbin = try Servers.httpbin()
    }

    private func object(_ request: DataRequest) async throws -> [String: Any] {
        let data = try await request.validate().serializingData().value
        return try #require(JSONSerialization.jsonObject(with: data) as? [String: Any])
    }

    @Test("anything", arguments: [HTTPMethod.get, .post, .put, .patch, .delete]) func anything(_ method: HTTPMethod) async throws {
        let parameters: Parameters = ["a": "1", "b c": "d&e"]
        let reply = try await object(manager.request(httpbin + "/anything", method: method, parameters: parameters))
        #expect(reply["method"] as? String == method.rawValue)
        let isInQuery = method == .get || method == .delete
        #expect((reply[isInQuery ? "args" : "form"] as? [String: String]) == ["a": "1", "b c": "d&e"])
        #expect((reply[isInQuery ? "form" : "args"] as? [String: String]) == [:])
    }

    @Test("JSON") func json() async throws {
        let reply = try await object(
            manager.request(httpbin + "/anything", method: .post, parameters: ["list": [1, 2]], encoding: JSONEncoding.default))
        #expect((reply["json"] as? [String: [Int]]) == ["list": [1, 2]])
    }

    @Test("headers are received") func headers() async throws {
        let reply = try await object(manager.request(httpbin + "/headers", headers: ["X-One": "1"]))
        #expect((reply["headers"] as? [String: String])?["X-One"] == "1")
    }

    @Test("a status", arguments: [200, 204, 304, 400, 418, 503]) func status(_ status: Int) async throws {
        let response = await manager.request(httpbin + "/status/\(status)").validate().serializingData().response
        #expect(response.response?.statusCode == status)
        #expect((response.error == nil) == (status < 300))
    }

    @Test("a delay") func delay() async throws {
        let response = await manager.request(httpbin + "/delay/1").validate().serializingData().response
        #expect(response.error == nil)
        #expect(response.timeline.latency >= .seconds(1))
    }

    @Test("lines sent one at a time") func lines() async throws {
        let text = try await manager.request(httpbin + "/stream/20").validate().serializingString().value
        #expect(text.split(separator: "\n").count == 20)
    }

    @Test("drops") func drops() async throws {
        let data = try await manager.request(httpbin + "/drip?duration=1&numbytes=10&delay=0").validate().serializingData().value
        #expect(data.count == 10)
    }

    @Test("a coding", arguments: ["gzip": "gzipped", "deflate": "deflated"]) func coding(_ coding: String, _ key: String) async throws {
        let reply = try await object(manager.request(httpbin + "/\(coding)"))
        #expect(reply[key] as? Bool == true)
    }

    @Test("brotli is decoded where it is built in, and otherwise an error, because it was not requested") func brotli() async throws {
        let response = await manager.request(httpbin + "/brotli").validate().serializingData().response
        // An httpbin without brotli responds with a server error.
        guard response.response?.statusCode != 500 else { return }
        #if Brotli
        let reply = try JSONSerialization.jsonObject(with: response.result.get()) as? [String: Any]
        #expect(reply?["brotli"] as? Bool == true)
        #else
        #expect(response.error?.transferFailure?.kind == .decoding)
        #endif
    }

    @Test("text in UTF-8") func utf8() async throws {
        let text = try await manager.request(httpbin + "/encoding/utf8").validate().serializingString().value
        #expect(text.contains("∮ E⋅da = Q"))
    }

    @Test("a redirect to another origin") func redirect() async throws {
        let server = try LoopbackServer.standard()
        let response = await manager.request(
            httpbin + "/redirect-to", parameters: ["url": server.url("/json"), "status_code": 307]
        ).validate().serializingData().response
        #expect(response.error == nil)
        #expect(server.requests.map(\.path) == ["/json"])
        let many = await manager.request(httpbin + "/redirect/5").validate().serializingData().response
        #expect(many.metrics.redirectCount == 5)
    }

    @Test("a cookie is set") func cookie() async throws {
        let manager = makeManager { $0.redirects.limit = 0 }
        let response = await manager.request(httpbin + "/cookies/set?flavour=oat").serializingData().response
        #expect(response.response?.statusCode == 302)
        #expect(response.response?.value(forHTTPHeaderField: "Set-Cookie")?.hasPrefix("flavour=oat") == true)
        let reply = try await object(self.manager.request(httpbin + "/cookies", headers: ["Cookie": "flavour=oat"]))
        #expect((reply["cookies"] as? [String: String]) == ["flavour": "oat"])
    }

    @Test("a range") func range() async throws {
        let response = await manager.request(httpbin + "/range/1000", headers: ["Range": "bytes=10-19"]).validate()
            .serializingString().response
        #expect(response.value == "klmnopqrst")
        #expect(response.response?.statusCode == 206)
    }

    @Test("credentials") func credentials() async throws {
        var headers = HTTPHeaders()
        headers.append(.authorization(username: "user", password: "passwd"))
        let reply = try await object(manager.request(httpbin + "/basic-auth/user/passwd", headers: headers))
        #expect(reply["authenticated"] as? Bool == true)
    }

    @Test("a chunked upload") func chunkedUpload() async throws {
        let response = await manager.upload(InputStream(data: Data("streamed".utf8)), to: httpbin + "/anything").validate()
            .serializingString().response
        #expect(response.value?.contains("streamed") == true)
    }

    @Test("bytes, images and an XML page") func bodies() async throws {
        #expect(try await manager.request(httpbin + "/bytes/10000?seed=1").validate().serializingData().value.count == 10_000)
        let image = await manager.request(httpbin + "/image/png").validate(contentType: ["image/png"]).serializingData().response
        #expect(image.error == nil)
        let page = await manager.request(httpbin + "/xml").validate(contentType: ["text/html"]).serializingData().response
        #expect(page.error?.validationFailure != nil)
    }
}
