// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// Uploads of slices of files: row A2.1 of what clients of APIs write by hand.
@Suite(.timeLimit(.minutes(1))) struct SliceUploadTests {
    private static let size: Int64 = 3_000_000
    private let server: LoopbackServer
    private let manager = makeManager()
    private let directory: TemporaryDirectory
    private let body: Data
    private let file: URL

    init() throws {
        let (standard, attempts) = (ServerRoutes.standard, Log<Void>())
        server = try LoopbackServer { request, connection in
            switch request.path {
            case "/flaky":
                attempts.append(())
                return attempts.elements.count < 3 ? .status(503) : .ok(request.body)
            case "/moved": return .redirect(to: "/body", status: 307)
            default: return try standard(request, connection)
            }
        }
        directory = try TemporaryDirectory()
        body = GeneratedBody().data(count: Int(Self.size))
        file = try directory.write(body, to: "body")
    }

    // A2.1
    @Test(
        arguments: [(0, 1), (0, nil), (1_000_001, 1_500_000), (2_999_999, 1), (2_500_000, nil), (3_000_000, nil), (7, 0)]
            as [(Int64, Int64?)])
    func `a slice is the body, with its length`(_ offset: Int64, _ length: Int64?) async throws {
        let expected = body.dropFirst(Int(offset)).prefix(Int(length ?? Self.size))
        let upload = manager.upload(file, offset: offset, length: length, to: server.url("/echo"))
        let reply = try await upload.validate().serializingDecodable(EchoReply.self).value
        #expect(reply.method == "PUT" && reply.bodyLength == expected.count && reply.bodyChecksum == CRC32.checksum(of: Data(expected)))
        #expect(reply.header("Content-Length") == "\(expected.count)" && reply.header("Content-Range") == nil)
        #expect(upload.uploadProgress.completedUnitCount == Int64(expected.count))
    }

    // A2.1
    @Test(
        arguments: [(0, 1, "bytes 0-0/3000000"), (1_000_000, nil, "bytes 1000000-2999999/3000000"), (0, 0, nil)]
            as [(Int64, Int64?, String?)])
    func `Content-Range says which bytes it has, if asked`(_ offset: Int64, _ length: Int64?, _ range: String?) async throws {
        let upload = manager.upload(
            file, offset: offset, length: length, to: server.url("/echo"), headers: ["Content-Range": "theirs"], setsContentRange: true)
        let reply = try await upload.validate().serializingDecodable(EchoReply.self).value
        #expect(reply.header("Content-Range") == range ?? "theirs")
    }

    @Test(arguments: ["/flaky", "/moved"] as [String]) func `retries and redirects send the slice again`(_ path: String) async throws {
        manager.retrier = Retrier.attempts(5)
        let received = try await manager.upload(file, offset: 400_000, length: 300_000, to: server.url(path), method: .post)
            .validate().serializingData().value
        #expect(received == body[400_000..<700_000])
    }

    @Test(arguments: [(0, 3_000_001), (3_000_001, nil), (2_999_999, 2), (1, .max)] as [(Int64, Int64?)])
    func `a file that is too short for its slice fails before anything is sent`(_ offset: Int64, _ length: Int64?) async throws {
        let response = await manager.upload(file, offset: offset, length: length, to: server.url("/echo")).serializingData().response
        #expect(response.error?.transferFailure?.kind == .requestBody)
        #expect(response.error.map { "\($0)" }?.contains("fewer") == true, "\(response.error as Any)")
        #expect(server.requestCount == 0)
    }

    @Test func `a file that is missing, no file, or sliced before its beginning is an error`() async throws {
        let missing = await manager.upload(directory.file("missing"), offset: 0, length: 1, to: server.url("/echo")).serializingData()
            .response
        #expect((missing.error as? CocoaError)?.code == .fileReadNoSuchFile)
        for (url, offset) in [(directory.url, Int64(0)), (file, -1)] {
            let response = await manager.upload(url, offset: offset, length: nil, to: server.url("/echo")).serializingData().response
            #expect((response.error as? CocoaError)?.code == .fileReadUnknown)
        }
        #expect(server.requestCount == 0)
    }

    @Test func `a file that changes its length while it is sent fails, though the slice is there`() async throws {
        let gate = Gate()
        let slow = try LoopbackServer(bodies: { _ in
            gate.wait()
            return .kept
        }) { _, _ in .ok("received") }
        defer { gate.open() }
        let large = directory.file("large")
        #expect(FileManager.default.createFile(atPath: large.path, contents: nil))
        let handle = try FileHandle(forWritingTo: large)
        try handle.truncate(atOffset: 64 << 20)
        let upload = manager.upload(large, offset: 1 << 20, length: 40 << 20, to: slow.url("/")).validate()
        async let response = upload.serializingData().response
        #expect(await gate.arrivals(1))
        try handle.truncate(atOffset: 65 << 20)
        try handle.close()
        gate.open()
        #expect(await response.error?.transferFailure?.kind == .requestBody)
    }

    @Test func `a command of curl does not claim to send the whole file`() async throws {
        let slice = manager.upload(file, offset: 1, length: nil, to: server.url("/echo"))
        let whole = manager.upload(file, to: server.url("/echo"))
        _ = await (slice.serializingData().response, whole.serializingData().response)
        #expect(!slice.cURLDescription().contains(file.path) && whole.cURLDescription().contains("@\(file.path)"))
    }
}
