// SPDX-License-Identifier: Apache-2.0
import CurlewDownloads
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct GuideTests {
    @Test("every block of the article is compiled, and everything compiled for it is in it") func sameCode() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/Downloads/CurlewDownloads.docc/CurlewDownloads.md")
        #expect(try DocumentedCode.differences(page: page, sources: here.appendingPathComponent("Guide.swift")) == [])
    }

    @Test("the article's checksum decides whether the file gets its name") func digest() async throws {
        let directory = try TemporaryDirectory()
        let server = try LoopbackServer { request, _ in .generated(length: 100_000, for: request) }
        let file = directory.file("release")
        #expect(try await !fetchRelease(server.url("/"), sha256: Data(count: 32), to: file, with: makeManager()))
        #expect(!FileManager.default.fileExists(atPath: file.path))
        let digest = Data(SHA256.digest(of: GeneratedBody().data(count: 100_000)))
        #expect(try await fetchRelease(server.url("/"), sha256: digest, to: file, with: makeManager()))
        #expect(GeneratedBody().matches(try Data(contentsOf: file)))
    }

    @Test("the article's download arrives") func download() async throws {
        let directory = try TemporaryDirectory()
        let server = try LoopbackServer { request, _ in .generated(length: 100_000, for: request) }
        let file = directory.file("image")
        #expect(try await fetchImage(server.url("/image"), to: file, with: makeManager()) == 100_000)
        #expect(GeneratedBody().matches(try Data(contentsOf: file)))
    }
}
