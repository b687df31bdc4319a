// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct ContentCodingTests {
    private let server: LoopbackServer
    private let manager = makeManager()

    init() throws {
        server = try LoopbackServer.standard()
    }

    @Test("a coded body is decoded", arguments: ["gzip", "deflate"], [0, 1, 1000, 3_000_000])
    func decodes(_ coding: String, _ count: Int) async throws {
        let response = await manager.request(server.url("/\(coding)?n=\(count)")).validate().serializingData().response
        #expect(response.value == ServerRoutes.text(count: count))
        #expect(server.requests.first?.header("Accept-Encoding")?.contains(coding) == true)
    }

    @Test("no coding is offered for a part of a body, unless the program names one", arguments: [true, false])
    func part(_ hasDefaultFields: Bool) async throws {
        let manager = makeManager { if hasDefaultFields { $0.headers = SessionManager.defaultHTTPHeaders } }
        for headers in [["Range": "bytes=0-1"], ["range": "bytes=0-1", "Accept-Encoding": "br"]] as [HTTPHeaders] {
            _ = await manager.request(server.url("/json"), headers: headers).serializingData().response
        }
        #expect(server.requests.map { $0.header("Accept-Encoding") } == ["identity", "br"])
    }

    @Test("a truncated body is an error") func truncatedBody() async throws {
        for count in [10, 1000, 1_000_000] {
            let response = await manager.request(server.url("/gzip-truncated?n=\(count)")).validate().serializingData().response
            #expect(response.error?.transferFailure?.kind == .decoding, "\(count)")
        }
    }

    @Test("a corrupt body is an error", arguments: ["gzip", "deflate"]) func corruptBody(_ coding: String) async throws {
        let text = ServerRoutes.text(count: 100_000)
        let whole = coding == "gzip" ? StoredDeflate.gzip(text) : StoredDeflate.zlib(text)
        for position in [0, whole.count / 2, whole.count - 2] {
            var corrupt = whole
            corrupt[position] ^= 0xFF
            let body = corrupt
            let server = try LoopbackServer { _, _ in
                ServerResponse(status: 200, headers: [ServerField("Content-Encoding", coding)], body: .data(body))
            }
            let response = await manager.request(server.url("/")).serializingData().response
            #expect(response.error?.transferFailure?.kind == .decoding, "\(position)")
        }
    }

    @Test(
        "a body in an unknown coding is delivered unchanged, with the usual limit", arguments: ["none", "utf-8", "aws-chunked"])
    func unknownCoding(_ coding: String) async throws {
        let server = try LoopbackServer { _, _ in
            ServerResponse(status: 200, headers: [ServerField("Content-Encoding", coding)], body: .data(Data([1, 2, 3])))
        }
        let response = await manager.request(server.url("/")).serializingData().response
        #expect(response.value == Data([1, 2, 3]))
        #expect(response.response?.value(forHTTPHeaderField: "Content-Encoding") == coding)
        let small = makeManager { $0.maximumBodySize = 2 }
        let refused = await small.request(server.url("/")).serializingData().response
        #expect(refused.error?.transferFailure?.kind == .tooLarge)
    }

    @Test("bytes are delivered unchanged when decoding is off") func decodingOff() async throws {
        let manager = makeManager { $0.decodesContent = false }
        let response = await manager.request(server.url("/gzip?n=1000")).serializingData().response
        #expect(response.value == StoredDeflate.gzip(ServerRoutes.text(count: 1000)))
    }

    @Test("a coded download is decoded, a truncated one leaves no file behind") func download()
        async throws
    {
        let directory = try TemporaryDirectory()
        let response = await manager.download(server.url("/gzip?n=1000000"), to: directory.file("whole")).serializingData().response
        #expect(response.value == ServerRoutes.text(count: 1_000_000))
        let truncated = await manager.download(server.url("/gzip-truncated?n=1000000"), to: directory.file("part")).serializingURL()
            .response
        #expect(truncated.error?.transferFailure?.kind == .decoding)
        #expect(try contents(of: directory) == ["whole"])
    }

    @Test("HEAD and 304 have nothing to decode") func bodiless() async throws {
        let response = await manager.request(server.url("/gzip?n=1000"), method: .head).serializingData().response
        #expect(response.error == nil)
        let server = try LoopbackServer { _, _ in .status(304, headers: [ServerField("Content-Encoding", "gzip")]) }
        let unchanged = await manager.request(server.url("/")).response().error
        #expect(unchanged == nil)
    }

    @Test("nginx's gzip is decoded", .needsNginx) func nginx() async throws {
        let response = await manager.request(try Servers.nginx().http + "/64k.txt").validate().serializingString().response
        #expect(response.value?.utf8.count == 65_536)
        #expect(response.value?.hasPrefix("line 0 of a text") == true)
        let received = try #require(response.metrics.last).responseBodyBytes
        #expect(received > 0 && received < 30_000)
    }
}

extension DataRequest {
    /// Returns the unserialized response.
    func response() async -> DefaultDataResponse {
        await withTrackedContinuation { continuation in
            response { continuation.resume(returning: $0) }
        }
    }
}
