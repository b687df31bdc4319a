// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@testable import CurlewGraphQL

// A2.3
@Suite(.timeLimit(.minutes(1))) struct UploadTests {
    private static let document = "mutation ($files: [Upload!]!) { count }"
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func request(_ files: [GraphQLUpload]) -> GraphQLRequest {
        GraphQLRequest(Self.document, variables: ["files": files, "title": "t"])
    }

    @Test func `operations, map and files are parts of a form, in this order`() async throws {
        let server = try LoopbackServer { _, _ in .graphQL(#"{"data":{"count":1}}"#) }
        defer { server.stop() }
        let file = try directory.write(GeneratedBody().data(count: 10_000), to: "a.png")
        let files = [GraphQLUpload(file: file), GraphQLUpload(data: Data("b".utf8), fileName: "b \"x\".txt", mimeType: "text/plain")]
        #expect(try await GraphQLClient(server).response(to: request(files), as: Count.self).get() == Count(count: 1))
        let sent = try #require(server.requests.first)
        #expect(sent.header("Content-Length") != nil && sent.header("GraphQL-Require-Preflight") == "1")
        #expect(sent.header("Apollo-Require-Preflight") == "true")
        let parts = try MultipartBody(sent).parts
        let names = parts.compactMap { $0.header("Content-Disposition") }
        #expect(
            names == [
                #"form-data; name="operations""#, #"form-data; name="map""#, #"form-data; name="0"; filename="a.png""#,
                #"form-data; name="1"; filename="b %22x%22.txt""#,
            ])
        #expect(parts.map { $0.header("Content-Type") } == ["application/json", "application/json", "image/png", "text/plain"])
        let operations = try JSONDecoder().decode([String: JSONValue].self, from: parts[0].body)
        #expect(
            operations == [
                "query": .string(Self.document), "variables": .object(["files": .array([.null, .null]), "title": .string("t")]),
            ])
        #expect(parts[1].text == #"{"0":["variables.files.0"],"1":["variables.files.1"]}"#)
        #expect(GeneratedBody().matches(parts[2].body) && parts[3].text == "b")
    }

    @Test func `a file that is not there fails the request, and nothing is sent`() async throws {
        let server = try LoopbackServer { _, _ in .graphQL(#"{"data":{"count":1}}"#) }
        defer { server.stop() }
        let failure = await error {
            try await GraphQLClient(server).response(to: request([GraphQLUpload(file: directory.file("none"))]), as: Count.self)
        }
        guard case CurlewError.multipartEncodingFailed(.bodyPartFileNotReachableWithError, _)? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(server.requestCount == 0)
    }

    @Test func `a file that is gone when the request is sent again fails it`() async throws {
        let file = try directory.write(Data("abc".utf8), to: "a")
        let server = try LoopbackServer { _, _ in
            try? FileManager.default.removeItem(at: file)
            return .status(503)
        }
        defer { server.stop() }
        let client = GraphQLClient(server) {
            $0.interceptor = GraphQLRetryPolicy(retryLimit: 3, exponentialBackoffScale: 0)
            $0.headers = ["Idempotency-Key": "k"]
        }
        let failure = await error { try await client.response(to: request([GraphQLUpload(file: file)]), as: Count.self) }
        #expect(server.requestCount == 1)
        #expect("\(failure.map { "\($0)" } ?? "")".contains("/a"), "\(String(describing: failure))")
        #expect(failure?.asCurlewError != nil || failure is CocoaError, "\(String(describing: failure))")
    }

    @Test func `a large file is sent whole, with its length`() async throws {
        let server = try LoopbackServer(bodies: { _ in .counted }) { request, _ in
            .graphQL(request.header("Content-Length") == "\(request.bodyLength)" ? "{\"data\":{\"count\":\(request.bodyLength)}}" : "{}")
        }
        defer { server.stop() }
        let file = try directory.write(GeneratedBody().data(count: 8 << 20), to: "large")
        let count = try await GraphQLClient(server).response(to: request([GraphQLUpload(file: file)]), as: Count.self).get().count
        #expect(count > 8 << 20 && count < 9 << 20)
    }
}
