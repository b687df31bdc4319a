// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewUploads
import Testing

@Suite(.timeLimit(.minutes(1))) struct GuideTests {
    @Test("every block of the article is compiled, and everything compiled for it is in it") func sameCode() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/Uploads/CurlewUploads.docc/UploadsThatResume.md")
        #expect(try DocumentedCode.differences(page: page, sources: here.appendingPathComponent("Guide.swift")) == [])
    }

    // A2.2
    @Test("the article's ten lines upload a file") func tenLines() async throws {
        let directory = try TemporaryDirectory()
        let server = try TusServer()
        let file = try directory.write(GeneratedBody().data(count: 100_000), to: "video.mp4")
        let url = try await uploadVideo(file, with: makeManager(), to: server.url(), token: "secret")
        #expect(url?.absoluteString == server.url("/files/1"))
        #expect(server.uploads["/files/1"].map { GeneratedBody().matches($0.bytes) } == true)
        #expect(server.entries.allSatisfy { $0.header("Authorization") == "Bearer secret" })
    }

    // A2.2
    @Test("the article's progress ends at 1") func control() async throws {
        let directory = try TemporaryDirectory()
        let server = try TusServer()
        let file = try directory.write(GeneratedBody().data(count: 100_000), to: "video.mp4")
        var last = 0.0
        try await upload(file, with: makeManager(), to: server.url()) { last = $0 }
        #expect(last == 1)
    }

    // A2.2
    @Test("the article's refused upload is removed") func errors() async throws {
        let directory = try TemporaryDirectory()
        var settings = TusServer.Settings()
        settings.override = { entry, _ in entry.method == "PATCH" ? .status(403) : nil }
        let server = try TusServer(settings)
        let file = try directory.write(GeneratedBody().data(count: 100_000), to: "video.mp4")
        #expect(try await !uploadOrRemove(makeManager().resumableUpload(file, to: server.url())))
        #expect(server.uploads.isEmpty)
        #expect(try contents(of: directory) == ["video.mp4"])
    }

    // A2.2
    @Test("the article's upload by PUT returns the server's response") func draft() async throws {
        let directory = try TemporaryDirectory()
        var settings = TusServer.Settings()
        settings.draft = 8
        settings.cuts = [50_000]
        let server = try TusServer(settings)
        let file = try directory.write(GeneratedBody().data(count: 100_000), to: "video.mp4")
        #expect(try await publish(file, with: makeManager(), to: server.url()) == Data("stored".utf8))
        #expect(server.entries.map { $0.header("Content-Type") } == ["video/mp4", "video/mp4", "application/partial-upload"])
    }
}
