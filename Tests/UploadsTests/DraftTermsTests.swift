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

    // A2.2: section 4.1.4
    @Test("a request that is refused as too large is sent in parts of the size that the server names") func named() async throws {
        let server = try Self.server { ($0.limit, $0.largestBody) = ("max-append-size=900000", 900_000) }
        #expect(try await upload(to: server).body == Data("stored".utf8))
        #expect(server.methods() == ["POST", "POST", "HEAD", "PATCH", "PATCH"])
        #expect(bodies(server) == [Self.size, 900_000, 900_000, Self.size - 1_800_000])
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
}
