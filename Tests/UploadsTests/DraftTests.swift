// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewUploads
import Testing

/// A2.2: draft-ietf-httpbis-resumable-upload-11, interop version 8.
@Suite(.timeLimit(.minutes(2))) struct DraftTests {
    private static let size = 4 << 20
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private static func options(
        _ method: HTTPMethod = .post, _ change: (inout ResumableUpload.Options) -> Void = { _ in }
    ) -> ResumableUpload.Options {
        var options = ResumableUpload.Options()
        options.dialect = .httpDraft(method: method)
        options.retryPolicy = RetryPolicy(retryLimit: 3, exponentialBackoffScale: 0.001)
        change(&options)
        return options
    }

    private static func settings(_ version: Int = 8, _ change: (inout TusServer.Settings) -> Void = { _ in }) -> TusServer.Settings {
        var settings = TusServer.Settings()
        settings.draft = version
        change(&settings)
        return settings
    }

    private func file(_ size: Int = size) throws -> URL { try directory.write(GeneratedBody().data(count: size), to: "file") }

    private func isStored(_ server: TusServer, _ path: String = "/files/1", size: Int = size) -> Bool {
        server.uploads[path].map { $0.isComplete && $0.bytes.count == size && GeneratedBody().matches($0.bytes) } == true
    }

    // A2.2
    @Test("a file is the body of one request, and the value that of its response", arguments: [HTTPMethod.post, .put])
    func whole(method: HTTPMethod) async throws {
        let server = try TusServer(Self.settings())
        let options = Self.options(method) { $0.headers = ["Content-Type": "video/mp4"] }
        let upload = makeManager().resumableUpload(try file(), to: server.url(), options: options)
        #expect(try await upload.value == Data("stored".utf8))
        #expect(server.methods() == [method.rawValue])
        let entry = server.entries[0]
        #expect(entry.header("Upload-Complete") == "?1")
        #expect(entry.header("Upload-Length") == "\(Self.size)")
        #expect(entry.header("Upload-Draft-Interop-Version") == "8")
        #expect(entry.header("Content-Type") == "video/mp4")
        #expect(isStored(server))
        #expect(try contents(of: directory) == ["file"])
    }

    // A2.2
    @Test("six cuts cost no bytes that the server has") func cuts() async throws {
        let server = try TusServer(Self.settings { $0.cuts = (1...6).map { Int64($0) * 600_001 } })
        let upload = makeManager().resumableUpload(try file(), to: server.url(), options: Self.options())
        #expect(try await upload.value == Data("stored".utf8))
        #expect(try await upload.response.uploadURL?.absoluteString == server.url("/files/1"))
        #expect(server.methods() == ["POST"] + Array(repeating: ["HEAD", "PATCH"], count: 6).flatMap { $0 })
        #expect(Double(server.received) / Double(Self.size) <= 1.05)
        #expect(isStored(server))
    }

    // A2.2
    @Test(
        "a server of another version gets a plain upload, which only an idempotent method repeats", arguments: [HTTPMethod.post, .put],
        [7, 9])
    func otherVersion(method: HTTPMethod, version: Int) async throws {
        let server = try TusServer(Self.settings(version) { $0.cuts = [1_000_000] })
        let upload = makeManager().resumableUpload(try file(), to: server.url(), options: Self.options(method))
        guard method == .put else {
            await #expect(throws: CurlewError.self) { try await upload.response }
            #expect(server.methods() == ["POST"])
            #expect(try contents(of: directory) == ["file"])
            return
        }
        let response = try await upload.response
        #expect(response.body == Data("stored".utf8))
        #expect(response.uploadURL == nil)
        #expect(server.methods() == ["PUT", "PUT"])
        #expect(isStored(server, "/files/2"))
    }

    // A2.2
    @Test("a server that knows nothing of resumption gets a plain upload") func plain() async throws {
        let server = try TusServer(Self.settings { $0.override = { entry, _ in entry.method == "POST" ? .ok("plain") : .status(405) } })
        let options = Self.options { $0.chunkSize = 1000 }
        #expect(try await makeManager().resumableUpload(file(100_000), to: server.url(), options: options).value == Data("plain".utf8))
        #expect(server.methods() == ["OPTIONS", "POST"])
        #expect(server.received == 100_000)
    }

    // A2.2
    @Test("chunks are sent to a server that supports it, within its limits") func chunks() async throws {
        let server = try TusServer(Self.settings { $0.limit = "max-append-size=40000, max-size=1000000, max-age=3600, other=?1" })
        let upload = makeManager().resumableUpload(try file(100_000), to: server.url(), options: Self.options { $0.chunkSize = 60_000 })
        #expect(try await upload.value == Data("stored".utf8))
        #expect(server.methods() == ["OPTIONS", "POST", "HEAD", "PATCH", "PATCH"])
        #expect(server.entries.compactMap { $0.header("Upload-Complete") } == ["?0", "?0", "?1"])
        #expect(server.entries.map(\.received).max() == 40_000)
        #expect(isStored(server, size: 100_000))
        #expect(try #require(upload.expires).timeIntervalSinceNow > 3000)
    }

    // A2.2
    @Test("a file beyond the announced limit ends the request") func limit() async throws {
        let server = try TusServer(Self.settings { $0.limit = "max-size=1000" })
        let error = await #expect(throws: ResumableUploadError.self) {
            try await makeManager().resumableUpload(file(), to: server.url(), options: Self.options()).response
        }
        #expect(error?.kind == .tooLarge)
        #expect(server.methods() == ["POST"])
    }

    // A2.2
    @Test("a refusal that completes the upload is final, another one is resumed from", arguments: [true, false])
    func refusal(isFinal: Bool) async throws {
        let server = try TusServer(
            Self.settings { settings in
                settings.cuts = [1_000_000]
                settings.override = { entry, number in
                    guard entry.method == "PATCH", number == 1 else { return nil }
                    return ServerResponse.status(503).header("Upload-Complete", isFinal ? "?1" : "?0")
                }
            })
        let upload = makeManager().resumableUpload(try file(), to: server.url(), options: Self.options())
        if isFinal {
            let error = await #expect(throws: ResumableUploadError.self) { try await upload.response }
            #expect(error?.statusCode == 503)
            #expect(server.methods() == ["POST", "HEAD", "PATCH"])
        } else {
            #expect(try await upload.value == Data("stored".utf8))
            #expect(server.methods() == ["POST", "HEAD", "PATCH", "HEAD", "PATCH"])
            #expect(isStored(server))
        }
    }

    // A2.2
    @Test("an upload whose bytes are all there, but which is not complete, is completed by an empty append") func emptyAppend() async throws
    {
        let server = try TusServer(Self.settings { $0.cuts = [Int64(Self.size)] })
        let upload = makeManager().resumableUpload(try file(), to: server.url(), options: Self.options())
        #expect(try await upload.value == Data("stored".utf8))
        #expect(server.methods() == ["POST", "HEAD", "PATCH"])
        #expect(server.entries.last?.received == 0)
        #expect(server.entries.last?.header("Upload-Complete") == "?1")
        #expect(isStored(server))
    }

    // A2.2
    @Test("a server that never completes the upload ends it", arguments: [0, 1_000_000, size]) func incomplete(stored: Int) async throws {
        let server = try TusServer(
            Self.settings { settings in
                settings.cuts = [Int64(max(stored, 1))]
                settings.override = { entry, _ in entry.method == "PATCH" ? .status(204) : nil }
            })
        let upload = makeManager().resumableUpload(try file(), to: server.url(), options: Self.options { $0.deadline = .seconds(20) })
        let error = await #expect(throws: ResumableUploadError.self) { try await upload.response }
        #expect(error?.kind == .invalidResponse)
        #expect(server.methods().filter { $0 == "PATCH" }.count == 4)
    }

    // A2.2
    @Test("an upload that is gone is begun again by an idempotent method only", arguments: [HTTPMethod.post, .put])
    func gone(method: HTTPMethod) async throws {
        let server = try TusServer(
            Self.settings { settings in
                settings.cuts = [1_000_000]
                settings.override = { entry, _ in entry.method == "HEAD" ? .status(410) : nil }
            })
        let upload = makeManager().resumableUpload(try file(), to: server.url(), options: Self.options(method))
        if method == .put {
            #expect(try await upload.value == Data("stored".utf8))
            #expect(server.methods() == ["PUT", "HEAD", "PUT"])
        } else {
            let error = await #expect(throws: ResumableUploadError.self) { try await upload.response }
            #expect(error?.kind == .gone)
            #expect(server.methods() == ["POST", "HEAD"])
        }
        #expect(try contents(of: directory) == ["file"])
    }

    // A2.2
    @Test("an upload is continued by a later one, by the state that its announcement has left, or removed", arguments: [true, false])
    func later(isRemoved: Bool) async throws {
        let server = try TusServer(Self.settings { $0.cuts = [1_000_000] })
        let file = try file()
        let options = Self.options { $0.retryPolicy = RetryPolicy(retryLimit: 0) }
        await #expect(throws: CurlewError.self) {
            try await makeManager().resumableUpload(file, to: server.url(), options: options).response
        }
        let upload = makeManager().resumableUpload(file, to: server.url(), options: options)
        if isRemoved {
            try await upload.cancel(removingFromServer: true)
            #expect(server.methods() == ["POST", "HEAD", "DELETE"])
            #expect(server.uploads.isEmpty)
        } else {
            #expect(try await upload.response.resumed == 1_000_000)
            #expect(server.methods() == ["POST", "HEAD", "PATCH"])
            #expect(isStored(server))
        }
        #expect(try contents(of: directory) == ["file"])
    }

    // A2.2
    @Test("an upload that a retry of the request begins again is the one that counts", arguments: [true, false])
    func retried(isComplete: Bool) async throws {
        let server = try TusServer(Self.settings { $0.cuts = isComplete ? [1_000_000] : [1_000_000, 3_000_000] })
        let options = Self.options(.put) {
            $0.requestOptions.interceptor = RetryPolicy(retryLimit: 1, exponentialBackoffScale: 0.001)
        }
        let upload = makeManager().resumableUpload(try file(), to: server.url(), options: options)
        #expect(try await upload.response.uploadURL?.absoluteString == server.url("/files/2"))
        #expect(server.methods() == ["PUT", "PUT"] + (isComplete ? [] : ["HEAD", "PATCH"]))
        #expect(isStored(server, "/files/2"))
        #expect(try contents(of: directory) == ["file"])
    }

    // A2.2
    @Test("of the uploads that an announcement and the response name the last one counts, also later", arguments: [true, false])
    func renamed(isOfOrigin: Bool) async throws {
        let count = Lock(0)
        let server = try TusServer(
            Self.settings { settings in
                settings.cuts = [80_000]
                settings.location = { path in
                    let number = count.withLock { count in
                        count += 1
                        return count
                    }
                    if number == 1 { return "/files/announced" }
                    return isOfOrigin ? path : "http://localhost:1\(path)"
                }
            })
        let file = try file(100_000)
        let options = Self.options { ($0.chunkSize, $0.retryPolicy) = (60_000, RetryPolicy(retryLimit: 0)) }
        let upload = makeManager().resumableUpload(file, to: server.url(), options: options)
        guard isOfOrigin else {
            let error = await #expect(throws: ResumableUploadError.self) { try await upload.response }
            #expect(error?.kind == .otherOrigin)
            #expect(server.methods() == ["OPTIONS", "POST"])
            return
        }
        await #expect(throws: CurlewError.self) { try await upload.response }
        let response = try await makeManager().resumableUpload(file, to: server.url(), options: options).response
        #expect(response.resumed == 80_000)
        #expect(response.uploadURL?.absoluteString == server.url("/files/1"))
        #expect(server.methods() == ["OPTIONS", "POST", "HEAD", "PATCH", "HEAD", "PATCH"])
        #expect(server.entries.dropFirst(2).allSatisfy { $0.path == "/files/1" })
        #expect(isStored(server, size: 100_000))
    }

    // A2.2
    @Test("an upload of another origin ends the request") func otherOrigin() async throws {
        let server = try TusServer(Self.settings { $0.location = { "http://localhost:1\($0)" } })
        let error = await #expect(throws: ResumableUploadError.self) {
            try await makeManager().resumableUpload(file(), to: server.url(), options: Self.options()).response
        }
        #expect(error?.kind == .otherOrigin)
    }
}
