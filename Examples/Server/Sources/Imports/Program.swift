// SPDX-License-Identifier: Apache-2.0
import AsyncHTTPClient
import Curlew
import CurlewHTTPTypes
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOHTTP1

// Curlew's `Request` has Alamofire's name, and Hummingbird has one, too: this line says which one is meant in this file.
private typealias Request = Hummingbird.Request

/// Names of each module without qualification, but for those that Alamofire has as well and that another module declares:
/// `Request`, `Parameters` and `URLEncodedFormEncoder` (Hummingbird), `HTTPHeaders` and `HTTPMethod` (NIOHTTP1).
@main
enum Program {
    static func main() async throws {
        var logger = Logger(label: "imports")
        // The server reports each connection that it closes at the end as an error.
        logger.logLevel = .critical

        // Hummingbird, with NIO's and swift-http-types' names.
        let router = Router()
        router.get("hello/:name") { (request: Request, context: BasicRequestContext) -> Response in
            let name = try context.parameters.require("name")
            let buffer = ByteBuffer(string: "Hello, \(name): \(request.method.rawValue)")
            return Response(status: .ok, headers: [.contentType: "text/plain"], body: ResponseBody(byteBuffer: buffer))
        }
        router.middlewares.add(LogRequestsMiddleware(.debug))

        let (ports, running) = AsyncStream<Int>.makeStream()
        let application = Application(
            router: router, configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { running.yield($0.localAddress?.port ?? 0) }, logger: logger)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await application.run() }
            var iterator = ports.makeAsyncIterator()
            guard let port = await iterator.next() else { throw ChannelError.unknownLocalAddress }
            try await call("http://127.0.0.1:\(port)/hello/world", logger)
            group.cancelAll()
        }
    }

    /// The same call by both clients, and with each module's names of the same things.
    private static func call(_ url: String, _ logger: Logger) async throws {
        // Curlew.
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        configuration.tls.minimumVersion = .v1_2
        configuration.eventMonitors = [LoggingMonitor(logger: logger)]
        let manager = SessionManager(configuration: configuration)
        let options = RequestOptions(deadline: .seconds(10), name: "GET /hello/{name}")
        let headers: Curlew.HTTPHeaders = [.accept("text/plain")]
        let text = try await manager.request(
            url, method: Curlew.HTTPMethod.get, headers: headers, interceptor: RetryPolicy(), options: options
        )
        .validate().serializingString().value
        try expect(text, "Hello, world: GET")
        let global: DataRequest = request(url, method: .post)
        global.cancel()
        let parameters: Curlew.Parameters = ["name": "value"]
        let query = try URLEncoding.queryString.encode(URLRequest(url: url, method: .get), with: parameters).url?.query ?? ""
        try expect(query, "name=value")
        try expect(try Curlew.URLEncodedFormEncoder().encode(["name": "value"]) as String, "name=value")
        let own: Curlew.Request? = global
        let failure: CurlewError = .cancelled
        _ = (own, failure, Redaction(), DownloadRequest.DownloadOptions(), MultipartFormData())

        // swift-http-types, sent by Curlew.
        guard let address = URL(string: url) else { throw CurlewError.invalidURL(url: url) }
        var request = HTTPRequest(method: .get, scheme: "http", authority: "\(address.host ?? ""):\(address.port ?? 0)", path: address.path)
        request.headerFields[.accept] = "text/plain"
        let (response, body): (HTTPResponse, Data) = try await manager.send(request)
        try expect("\(response.status.code) \(String(decoding: body, as: UTF8.self))", "200 Hello, world: GET")

        // async-http-client, with NIO's names.
        let other = try await HTTPClient.shared.execute(HTTPClientRequest(url: url), timeout: .seconds(10), logger: logger)
        let collected: ByteBuffer = try await other.body.collect(upTo: 1 << 20)
        try expect(String(buffer: collected), "Hello, world: GET")
        let status: HTTPResponseStatus = other.status
        let fields: NIOHTTP1.HTTPHeaders = other.headers
        let method: NIOHTTP1.HTTPMethod = .GET
        let loop: any EventLoop = HTTPClient.defaultEventLoopGroup.next()
        let amount: TimeAmount = .seconds(1)
        _ = (status, fields, method, loop, amount, NIODeadline.now(), HTTPVersion.http1_1, HTTPFields())
        let form = try Hummingbird.URLEncodedFormEncoder().encode(["name": "value"])
        try expect(form, "name=value")
    }

    private static func expect(_ value: String, _ expected: String) throws {
        guard value == expected else { throw Unexpected(value: value, expected: expected) }
    }
}

/// Logs what Curlew's requests come to.
private struct LoggingMonitor: EventMonitor {
    let logger: Logger

    func requestDidFinish(_ request: Curlew.Request) {
        logger.debug("finished", metadata: ["request": "\(request.name ?? request.description)"])
    }
}

private struct Unexpected: Error {
    let value: String
    let expected: String
}
