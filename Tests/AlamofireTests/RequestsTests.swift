// SPDX-License-Identifier: Apache-2.0
import CurlewAlamofire
import CurlewTestSupport
import Foundation
import Testing

/// The ways to make a request: `Alamofire.request`, the global functions, a manager; header fields in a dictionary.
@Suite(.timeLimit(.minutes(2))) struct RequestsTests {
    private let server: LoopbackServer
    private let headers: HTTPHeaders = ["X-One": "1", "X-Two": "2"]

    init() throws {
        server = try LoopbackServer.standard()
    }

    private func expectHeaders(_ reply: EchoReply) {
        #expect(reply.header("X-One") == "1")
        #expect(reply.header("X-Two") == "2")
    }

    @Test("Alamofire.request and request use the default manager, with its headers") func defaultManager() async throws {
        for made in [
            Alamofire.request(server.url("/echo"), headers: headers), request(server.url("/echo"), headers: headers),
            SessionManager.default.request(server.url("/echo"), headers: headers),
        ] {
            #expect(made.session === SessionManager.default.session)
            let reply = try await made.echoed()
            expectHeaders(reply)
            #expect(reply.header("User-Agent") == SessionManager.defaultHTTPHeaders["User-Agent"])
            #expect(reply.header("Accept-Language") != nil)
        }
    }

    @Test("requests from a URLRequest") func urlRequests() async throws {
        let urlRequest = try URLRequest(url: server.url("/echo"), method: .put, headers: headers)
        for made in [Alamofire.request(urlRequest), request(urlRequest)] {
            let reply = try await made.echoed()
            #expect(reply.method == "PUT")
            expectHeaders(reply)
        }
    }

    @Test("method, parameters and encoding") func parameters() async throws {
        let reply = try await Alamofire.request(
            server.url("/echo"), method: .post, parameters: ["a": [1, 2]], encoding: JSONEncoding.default, headers: headers
        ).echoed()
        #expect(reply.method == "POST")
        #expect(reply.body == Data(#"{"a":[1,2]}"#.utf8))
        expectHeaders(reply)
    }

    @Test("downloads, with and without a destination") func downloads() async throws {
        let directory = try TemporaryDirectory()
        let target = directory.file("target")
        let destination: DownloadRequest.DownloadFileDestination = { _, response in
            (response.statusCode == 200 ? target : directory.file("wrong"), [.removePreviousFile])
        }
        let urlRequest = try URLRequest(url: server.url("/bytes/1000"), method: .get)
        for made in [
            Alamofire.download(server.url("/bytes/1000"), headers: headers, to: destination),
            download(server.url("/bytes/1000"), to: destination), Alamofire.download(urlRequest, to: destination),
            download(urlRequest, to: destination),
        ] {
            let response = await made.plainResponse()
            #expect(response.error == nil)
            #expect(response.destinationURL == target)
        }
        #expect(try Data(contentsOf: target).count == 1000)
        let temporary = await Alamofire.download(server.url("/bytes/10")).plainResponse()
        #expect(try Data(contentsOf: #require(temporary.temporaryURL)).count == 10)
        try FileManager.default.removeItem(at: #require(temporary.temporaryURL))
    }

    @Test("uploads of data, a file and a stream, to a URL and with a request") func uploads() async throws {
        let directory = try TemporaryDirectory()
        let body = Data("body".utf8)
        let file = try directory.write(body, to: "body")
        let url = server.url("/echo")
        let urlRequest = try URLRequest(url: url, method: .post, headers: headers)
        for made in [
            Alamofire.upload(body, to: url, headers: headers), Alamofire.upload(file, to: url, headers: headers),
            Alamofire.upload(InputStream(data: body), to: url, headers: headers), Alamofire.upload(body, with: urlRequest),
            Alamofire.upload(file, with: urlRequest), Alamofire.upload(InputStream(data: body), with: urlRequest),
            upload(body, to: url, headers: headers), upload(file, to: url, headers: headers),
            upload(InputStream(data: body), to: url, headers: headers), upload(body, with: urlRequest), upload(file, with: urlRequest),
            upload(InputStream(data: body), with: urlRequest),
        ] {
            let reply = try await made.echoed()
            #expect(reply.method == "POST" && reply.body == body)
            expectHeaders(reply)
        }
    }

    @Test("a manager takes dictionaries, optional ones, literals and nil") func managersHeaders() async throws {
        let manager = SessionManager()
        let none: [String: String]? = nil
        let url = server.url("/echo")
        expectHeaders(try await manager.request(url, headers: headers).echoed())
        expectHeaders(try await manager.request(url, headers: Optional(headers)).echoed())
        expectHeaders(try await manager.request(url, headers: ["X-One": "1", "X-Two": "2"]).echoed())
        for request in [manager.request(url, headers: none), manager.request(url, headers: nil), manager.request(url)] {
            #expect(try await request.echoed().header("X-One") == nil)
        }
        let response = await manager.download(url, headers: headers).plainResponse()
        let file = try #require(response.temporaryURL)
        expectHeaders(try JSONDecoder().decode(EchoReply.self, from: Data(contentsOf: file)))
        try FileManager.default.removeItem(at: file)
    }

    @Test("stream opens a connection") func streams() async throws {
        let echo = try TCPEchoServer()
        for made in [Alamofire.stream(withHostName: "127.0.0.1", port: echo.port), stream(withHostName: "127.0.0.1", port: echo.port)] {
            try await made.write(Data("hello".utf8))
            made.closeWrite()
            var received = Data()
            for try await piece in made.bytes() { received += piece }
            #expect(received == Data("hello".utf8))
        }
    }

    @Test("the default header fields are a mutable dictionary") func defaultHeaders() {
        var headers = SessionManager.defaultHTTPHeaders
        #expect(Set(headers.keys) == ["Accept-Encoding", "Accept-Language", "User-Agent"])
        headers["Authorization"] = "Basic x"
        #expect(headers.count == 4)
    }

    @Test("a response's fields are in the dictionary of Foundation's response") func responseHeaders() async {
        let response = await Alamofire.request(server.url("/headers?X-Reply=yes")).plainResponse()
        #expect(response.response?.allHeaderFields["X-Reply"] as? String == "yes")
    }
}
