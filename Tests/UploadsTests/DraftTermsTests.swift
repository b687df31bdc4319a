// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewUploads
import Testing

/// A2.2: sizes of requests and digests of the draft for HTTP.
@Suite(.timeLimit(.minutes(2))) struct DraftTermsTests {
    private static let size = 2 << 20
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private static func server(_ change: (inout TusServer.Settings) -> Void) throws -> TusServer {
        var settings = TusServer.Settings()
        settings.draft = 8
        change(&settings)
        return try TusServer(settings)
    }

    /// Uploads a file. The server's refusals of sizes are no failures that are retried.
    private func upload(
        to server: TusServer, _ method: HTTPMethod = .post, retries: UInt = 0, _ change: (inout ResumableUpload.Options) -> Void = { _ in }
    ) async throws -> ResumableUpload.Response {
        var options = ResumableUpload.Options()
        options.dialect = .httpDraft(method: method)
        options.retryPolicy = RetryPolicy(retryLimit: retries, exponentialBackoffScale: 0.001)
        change(&options)
        let file = directory.file("file")
        if !FileManager.default.fileExists(atPath: file.path) {
            try GeneratedBody().data(count: Self.size).write(to: file)
        }
        return try await makeManager().resumableUpload(file, to: server.url(), options: options).response
    }

    private func isStored(_ server: TusServer, _ path: String) -> Bool {
        server.uploads[path].map { $0.isComplete && $0.bytes.count == Self.size && GeneratedBody().matches($0.bytes) } == true
    }

    private func bodies(_ server: TusServer) -> [Int] {
        server.entries.compactMap { $0.header("Content-Length").flatMap { Int($0) } }.filter { $0 > 0 }
    }

    // MARK: Sizes

    // A2.2: section 4.1.4
    @Test("a request that is refused as too large is sent in parts of the size that the server names") func named() async throws {
        let server = try Self.server { ($0.limit, $0.largestBody) = ("max-append-size=900000", 900_000) }
        #expect(try await upload(to: server).body == Data("stored".utf8))
        #expect(server.methods() == ["POST", "POST", "HEAD", "PATCH", "PATCH"])
        #expect(bodies(server) == [Self.size, 900_000, 900_000, Self.size - 1_800_000])
        #expect(isStored(server, "/files/1"))
    }

    // A2.2
    @Test("a limit of no bytes at all is none") func nothing() async throws {
        let server = try Self.server { ($0.limit, $0.largestBody) = ("max-append-size=0", 900_000) }
        _ = try await upload(to: server)
        #expect(bodies(server)[..<2] == [Self.size, Self.size / 4])
        #expect(isStored(server, "/files/1"))
    }

    // A2.2: section 4.1.4
    @Test("a size that no one names is found, if the server supports parts", arguments: [true, false])
    func unnamed(isSupported: Bool) async throws {
        let server = try Self.server { settings in
            settings.largestBody = 200_000
            if !isSupported { settings.override = { entry, _ in entry.method == "OPTIONS" ? .status(405) : nil } }
        }
        guard isSupported else {
            let error = await #expect(throws: ResumableUploadError.self) { try await upload(to: server) }
            #expect(error?.kind == .tooLarge && error?.statusCode == 413)
            #expect(server.methods() == ["POST", "OPTIONS"])
            return
        }
        _ = try await upload(to: server)
        #expect(server.methods().prefix(4) == ["POST", "OPTIONS", "POST", "POST"])
        #expect(bodies(server).prefix(4) == [Self.size, Self.size / 4, Self.size / 16, Self.size / 16])
        #expect(bodies(server).count == 18 && isStored(server, "/files/1"))
    }

    // A2.2: section 4.1.4
    @Test("the size of a part is found after the upload is begun") func laterAppends() async throws {
        let server = try Self.server { settings in
            settings.cuts = [500_000]
            settings.override = { entry, number in
                let length = entry.header("Content-Length").flatMap { Int64($0) } ?? 0
                return entry.method == "PATCH" && length > 500_000 ? .status(413) : nil
            }
        }
        _ = try await upload(to: server, retries: 1)
        #expect(server.methods() == ["POST", "HEAD", "PATCH", "HEAD", "PATCH", "PATCH", "PATCH", "PATCH"])
        #expect(isStored(server, "/files/1"))
    }

    // A2.2: section 4.1.4
    @Test("a limit that is announced during a longer request ends it") func announced() async throws {
        let server = try Self.server { ($0.limit, $0.stallsAfterAnnouncement) = ("max-append-size=600000", true) }
        _ = try await upload(to: server)
        #expect(server.methods() == ["POST", "HEAD", "PATCH", "PATCH", "PATCH", "PATCH"])
        #expect(server.entries.map(\.received) == [0, 0, 600_000, 600_000, 600_000, Int64(Self.size) - 1_800_000])
        #expect(isStored(server, "/files/1"))
    }

    // A2.2
    @Test("no size below 64 KiB is tried, and a file that is too large is not sent in parts", arguments: [nil, "max-size=9"] as [String?])
    func neverAccepted(limit: String?) async throws {
        let server = try Self.server { ($0.limit, $0.largestBody, $0.announces) = (limit, 1, false) }
        let error = await #expect(throws: ResumableUploadError.self) { try await upload(to: server) }
        #expect(error?.kind == .tooLarge)
        #expect(bodies(server) == (limit == nil ? [Self.size, Self.size / 4, Self.size / 16] : [Self.size]))
        #expect(try contents(of: directory) == ["file"])
    }

    // A2.2
    @Test("limits that shrink with each response end") func shrinking() async throws {
        let limit = Lock<Int64>(1_000_000)
        let server = try Self.server { settings in
            settings.override = { entry, _ in
                guard entry.method == "POST" else { return nil }
                let next = limit.withLock { limit in
                    limit -= 1
                    return limit
                }
                return .status(413, headers: [ServerField("Upload-Limit", "max-append-size=\(next)")])
            }
        }
        let error = await #expect(throws: ResumableUploadError.self) { try await upload(to: server) }
        #expect(error?.kind == .tooLarge)
        #expect(server.methods().count == 33)
    }

    // MARK: Digests

    // A2.2: section 10.1, RFC 9530
    @Test("the digest of the whole is sent and asked for, and compared", arguments: [true, false]) func whole(isVerified: Bool) async throws
    {
        let intact = try Self.server { $0.verifiesDigest = isVerified }
        let response = try await upload(to: intact) { $0.verifiesContent = true }
        let digest = ContentDigest(of: GeneratedBody().data(count: Self.size))
        #expect(response.head.headers.reprDigest == digest)
        #expect(HTTPHeaders(["Repr-Digest": intact.entries[0].header("Repr-Digest") ?? ""]).reprDigest == digest)
        #expect(intact.entries[0].header("Want-Repr-Digest") == "sha-256=10")
        // Verified by the server, or by the client.
        let corrupting = try Self.server { ($0.verifiesDigest, $0.corrupted) = (isVerified, [1]) }
        let error = await #expect(throws: ResumableUploadError.self) { try await upload(to: corrupting) { $0.verifiesContent = true } }
        #expect(error?.kind == .checksumMismatch)
        #expect(error?.statusCode == (isVerified ? 400 : nil))
        #expect(corrupting.methods() == ["POST"])
        #expect(try contents(of: directory) == ["file"])
    }

    // A2.2
    @Test("a digest of the response's own body is not the file's") func otherDigest() async throws {
        var headers = HTTPHeaders()
        headers.reprDigest = ContentDigest(of: Data("plain".utf8))
        let field = ServerField("Repr-Digest", headers["Repr-Digest"] ?? "")
        let response = ServerResponse(status: 200, headers: [field], body: .data(Data("plain".utf8)))
        let server = try Self.server { $0.override = { _, _ in response } }
        #expect(try await upload(to: server) { $0.verifiesContent = true }.body == Data("plain".utf8))
    }

    // A2.2: section 10.2, RFC 9530
    @Test("a part that has changed on its way is sent again") func part() async throws {
        let server = try Self.server { $0.corrupted = [2, 3] }
        _ = try await upload(to: server, retries: 2) { ($0.verifiesChunks, $0.chunkSize) = (true, 800_000) }
        #expect(server.methods() == ["OPTIONS", "POST", "HEAD", "PATCH", "HEAD", "PATCH", "HEAD", "PATCH", "PATCH"])
        #expect(server.entries.filter { $0.received > 0 }.allSatisfy { $0.header("Content-Digest")?.hasPrefix("sha-256=:") == true })
        #expect(isStored(server, "/files/1"))
    }

    // A2.2
    @Test("a part that changes again and again fails") func everyPart() async throws {
        let server = try Self.server { $0.corrupted = Set(2...9) }
        let error = await #expect(throws: ResumableUploadError.self) {
            try await upload(to: server, retries: 2) { ($0.verifiesChunks, $0.chunkSize) = (true, 800_000) }
        }
        #expect(error?.kind == .checksumMismatch)
        #expect(server.entries.filter { $0.method == "PATCH" }.count == 3)
    }
}
