// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewOperations
import CurlewRequests
import CurlewTestSupport
import Dispatch
import Testing

/// Runs the code of the guides for YTKNetwork and AFNetworking 2, with the imports that they name.
extension LayerSnippetTests {
    private static func differences(_ page: String, _ source: String) throws -> [String] {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/Curlew/Curlew.docc/\(page)")
        return try DocumentedCode.differences(page: page, sources: here.appendingPathComponent(source))
    }

    @Test("every block of the guides is compiled, and everything compiled for them is in them") func sameCode() throws {
        #expect(try Self.differences("ComingFromYTKNetwork.md", "RequestsGuideSnippets.swift") == [])
        #expect(try Self.differences("ComingFromAFNetworking2.md", "OperationsGuideSnippets.swift") == [])
    }

    /// Stores cached responses in the test's own directory.
    private struct CacheDirectory: CacheDirPathFilter {
        let path: String

        func filterCacheDirPath(_ originPath: String, with request: BaseRequest) -> String { path }
    }

    @Test("requests that are objects, with the imports of the guide") func requestsOfTheGuide() async throws {
        let server = try LoopbackServer { request, _ in try .json(["nick": "curlew"], status: request.method == "POST" ? 201 : 200) }
        defer { server.stop() }
        let directory = try TemporaryDirectory()
        let configuration = RequestsConfiguration.shared
        configuration.callbackQueue = DispatchQueue(label: "snippets")
        configuration.addUrlFilter(Detour(server: server))
        configuration.addCacheDirPathFilter(CacheDirectory(path: directory.url.path))
        defer {
            configuration.clearUrlFilter()
            configuration.clearCacheDirPathFilter()
        }
        let (user, status) = try await RequestsGuide.use()
        #expect((user as? [String: String]) == ["nick": "curlew"])
        #expect(status == 201)
        #expect(server.requests.map { "\($0.method) \($0.path)" } == ["GET /v1/users/1", "POST /v1/users"])
        #expect(server.requests.last.map { String(decoding: $0.body, as: UTF8.self) } == #"{"nick":"curlew"}"#)
    }

    @Test("operations, with the import of the guide") func operationsOfTheGuide() async throws {
        let server = try LoopbackServer { request, _ in
            request.path == "/missing" ? .status(404) : try .json([request.path])
        }
        defer { server.stop() }
        let urls = try ["/a", "/b", "/missing"].map { try #require(URL(string: server.url($0))) }
        let queue = OperationQueue()
        for (url, expected) in [(urls[0], #"200: ["/a"]"#), (urls[2], "failed: ")] {
            let printed: String = await withTrackedContinuation { continuation in
                OperationsGuide.start(url, on: queue) { continuation.resume(returning: $0) }
            }
            #expect(printed.hasPrefix(expected))
        }
        let operations = urls.prefix(2).map { HTTPRequestOperation(request: URLRequest(url: $0)) }
        let bodies = try await OperationsGuide.batch(operations[0], operations[1], on: queue)
        #expect(bodies.map { String(decoding: $0, as: UTF8.self) } == [#"["/a"]"#, #"["/b"]"#])
    }
}
