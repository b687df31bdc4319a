// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct UploadTests {
    private let server: LoopbackServer
    private let manager = makeManager()
    private let directory: TemporaryDirectory

    init() throws {
        server = try LoopbackServer.standard()
        directory = try TemporaryDirectory()
    }

    private func reply(_ request: UploadRequest) async throws -> EchoReply {
        try await request.validate().serializingDecodable(EchoReply.self).value
    }

    @Test("data is uploaded completely", arguments: [0, 1, 65_536, 5_000_000]) func data(_ count: Int) async throws {
        let body = GeneratedBody().data(count: count)
        let reply = try await reply(manager.upload(body, to: server.url("/upload")))
        #expect(reply.method == "POST")
        #expect(reply.bodyLength == count)
        #expect(reply.bodyChecksum == CRC32.checksum(of: body))
        #expect(reply.header("Content-Length") == "\(count)")
        #expect(reply.header("Transfer-Encoding") == nil)
    }

    @Test("a file is uploaded completely", arguments: [0, 1, 5_000_000]) func completeFile(_ count: Int) async throws {
        let body = GeneratedBody().data(count: count)
        let reply = try await reply(manager.upload(try directory.write(body, to: "body"), to: server.url("/upload"), method: .put))
        #expect(reply.method == "PUT")
        #expect(reply.bodyLength == count)
        #expect(reply.bodyChecksum == CRC32.checksum(of: body))
        #expect(reply.header("Content-Length") == "\(count)")
    }

    @Test("a stream is uploaded completely, chunked", arguments: [0, 1, 5_000_000]) func stream(_ count: Int) async throws {
        let body = GeneratedBody().data(count: count)
        let reply = try await reply(manager.upload(InputStream(data: body), to: server.url("/upload")))
        #expect(reply.bodyLength == count)
        #expect(reply.bodyChecksum == CRC32.checksum(of: body))
        #expect(reply.header("Transfer-Encoding") == "chunked")
        #expect(reply.header("Content-Length") == nil)
    }

    @Test("a stream of known length is not chunked") func streamWithLength() async throws {
        let body = GeneratedBody().data(count: 1_000_000)
        let reply = try await reply(
            manager.upload(InputStream(data: body), to: server.url("/upload"), headers: ["Content-Length": "1000000"]))
        #expect(reply.bodyLength == 1_000_000)
        #expect(reply.bodyChecksum == CRC32.checksum(of: body))
        #expect(reply.headers.filter { $0.name.lowercased() == "content-length" }.map(\.value) == ["1000000"])
        #expect(reply.header("Transfer-Encoding") == nil)
    }

    @Test("a stream shorter than its announced length is an error") func shortStream() async throws {
        let response = await manager.upload(
            InputStream(data: Data(count: 1000)), to: server.url("/upload"), headers: ["Content-Length": "2000"]
        ).serializingData().response
        #expect(response.error?.transferFailure?.kind == .requestBody)
    }

    @Test("a file as a stream") func fileStream() async throws {
        let body = GeneratedBody().data(count: 3_000_000)
        let stream = try #require(InputStream(url: directory.write(body, to: "body")))
        let reply = try await reply(manager.upload(stream, to: server.url("/upload")))
        #expect(reply.bodyChecksum == CRC32.checksum(of: body))
    }

    @Test("a missing file is an error") func nonexistentFile() async throws {
        let request = manager.upload(directory.file("missing"), to: server.url("/upload"), method: .put)
        #expect(request.task?.originalRequest?.httpMethod == "PUT")
        let response = await request.serializingData().response
        #expect((response.error as? CocoaError)?.code == .fileReadNoSuchFile)
        #expect(server.connectionCount == 0)
        let stream = try #require(InputStream(url: directory.file("missing")))
        let streamed = await manager.upload(stream, to: server.url("/upload")).serializingData().response
        #expect(streamed.error != nil)
    }

    @Test("a directory is not a file") func directory() async throws {
        let response = await manager.upload(directory.url, to: server.url("/upload")).serializingData().response
        #expect(response.error != nil)
        #expect(server.requestCount == 0)
    }

    @Test("progress reaches the total", arguments: ["data", "file", "stream"]) func progress(_ kind: String) async throws {
        let body = Data(count: 10_000_000)
        let url = server.url("/upload")
        let request: UploadRequest =
            switch kind {
            case "data": manager.upload(body, to: url)
            case "file": manager.upload(try directory.write(body, to: "body"), to: url)
            default: manager.upload(InputStream(data: body), to: url)
            }
        let progress = Log<(completed: Int64, fraction: Double)>()
        let ended = Log<Bool>()
        request.uploadProgress { progress.append(($0.completedUnitCount, $0.fractionCompleted)) }
            .response { ended.append($0.error == nil) }
        await ended.wait(for: 1)
        #expect(ended.elements == [true])
        let completed = progress.elements.map(\.completed)
        #expect(completed == completed.sorted())
        #expect(completed.last == 10_000_000)
        #expect(progress.elements.last?.fraction == 1)
        #expect(request.uploadProgress.fractionCompleted == 1)
    }

    @Test("a response may precede the end of the body") func earlyResponse() async throws {
        let server = try LoopbackServer(bodies: { _ in .refused(.status(413)) }) { _, _ in nil }
        let response = await manager.upload(Data(count: 20_000_000), to: server.url("/")).validate().serializingData().response
        #expect(response.error?.unacceptableStatus == 413 || response.error?.transferFailure?.kind == .connectionLost)
    }

    @Test("a custom request carries the upload") func customRequest() async throws {
        var request = URLRequest(url: try server.url("/upload").asURL())
        request.httpMethod = "PATCH"
        request.setValue("image/png", forHTTPHeaderField: "Content-Type")
        let reply = try await reply(manager.upload(Data("png".utf8), with: request))
        #expect(reply.method == "PATCH")
        #expect(reply.header("Content-Type") == "image/png")
        #expect(reply.bodyLength == 3)
    }

    @Test("many concurrent uploads") func concurrent() async throws {
        let (manager, server) = (manager, server)
        let failures = await withTaskGroup(of: Bool.self) { group in
            for index in 0..<100 {
                group.addTask {
                    let body = GeneratedBody(seed: UInt64(index)).data(count: index * 10_000)
                    let request =
                        index % 2 == 0
                        ? manager.upload(body, to: server.url("/upload"))
                        : manager.upload(InputStream(data: body), to: server.url("/upload"))
                    let reply = try? await request.validate().serializingDecodable(EchoReply.self).value
                    return reply?.bodyChecksum != CRC32.checksum(of: body)
                }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(failures == 0)
    }

    @Test("nginx receives the whole body over TLS and HTTP/2", .needsNginx, arguments: [0, 1000, 5_000_000]) func nginx(
        _ count: Int
    ) async throws {
        let nginx = try Servers.nginx()
        let manager = makeManager { $0.tls.certificateAuthorityFile = nginx.authorities }
        for url in [nginx.http, nginx.tls, nginx.tlsHTTP1] {
            let response = await manager.upload(Data(count: count), to: url + "/upload").validate().serializingString().response
            #expect(response.value == "\(count)\n", "\(url)")
            let streamed = await manager.upload(InputStream(data: Data(count: count)), to: url + "/upload").validate()
                .serializingString().response
            #expect(streamed.error == nil, "\(url)")
        }
    }
}
