// SPDX-License-Identifier: Apache-2.0
import CurlewAlamofire
import CurlewTestSupport
import Foundation
import Testing

@Suite(.timeLimit(.minutes(2))) struct MultipartErrorTests {
    private let url = URL(fileURLWithPath: "/tmp/part")
    private let cause = TestError("cause")

    /// The case's name, without its associated values.
    private func name(_ reason: Any) -> String {
        String("\(reason)".prefix { $0 != "(" })
    }

    @Test("each reason has Alamofire's name; reasons that it lacks are errors of reading or writing") func reasons() {
        let reasons: [CurlewError.MultipartEncodingFailureReason] = [
            .bodyPartURLInvalid(url: url), .bodyPartFilenameInvalid(in: url), .bodyPartFileNotReachable(at: url),
            .bodyPartFileNotReachableWithError(atURL: url, error: cause), .bodyPartFileIsDirectory(at: url),
            .bodyPartFileSizeNotAvailable(at: url), .bodyPartFileSizeQueryFailedWithError(forURL: url, error: cause),
            .bodyPartInputStreamCreationFailed(for: url), .outputStreamCreationFailed(for: url), .outputStreamFileAlreadyExists(at: url),
            .outputStreamURLInvalid(url: url), .outputStreamWriteFailed(error: cause), .inputStreamReadFailed(error: cause),
            .bodyPartLengthMismatch(announced: 1, actual: 2), .bodyPartStreamConsumed, .bodyPartHeaderInvalid(name: "x y"),
            .boundaryInvalid(""),
        ]
        let names = reasons.map { reason -> String in
            guard case .multipartEncodingFailed(let translated)? = AFError(.multipartEncodingFailed(reason: reason)) else { return "" }
            return Mirror(reflecting: translated).children.first?.label ?? ""
        }
        #expect(
            names == [
                "bodyPartURLInvalid", "bodyPartFilenameInvalid", "bodyPartFileNotReachable", "bodyPartFileNotReachableWithError",
                "bodyPartFileIsDirectory", "bodyPartFileSizeNotAvailable", "bodyPartFileSizeQueryFailedWithError",
                "bodyPartInputStreamCreationFailed", "outputStreamCreationFailed", "outputStreamFileAlreadyExists",
                "outputStreamURLInvalid", "outputStreamWriteFailed", "inputStreamReadFailed", "inputStreamReadFailed",
                "inputStreamReadFailed", "outputStreamWriteFailed", "outputStreamWriteFailed",
            ])
    }

    @Test("encoding throws Alamofire's errors") func thrown() throws {
        let directory = try TemporaryDirectory()
        let missing = MultipartFormData()
        missing.append(directory.file("missing.txt"), withName: "file")
        #expect(throws: AFError.self) { try missing.encode() }
        let form = MultipartFormData()
        form.append(Data("a".utf8), withName: "a")
        let file = try directory.write(Data(), to: "there")
        do {
            try form.writeEncodedData(to: file)
            Issue.record("nothing thrown")
        } catch {
            #expect((error as? AFError)?.isMultipartEncodingError == true && (error as? AFError)?.url == file)
        }
        #expect(try form.encode().isEmpty == false)
    }

    @Test("an upload that can't be encoded passes them to its completion") func delivered() async throws {
        let manager = SessionManager()
        let directory = try TemporaryDirectory()
        let result: SessionManager.MultipartFormDataEncodingResult = await outcome { completion in
            manager.upload(
                multipartFormData: { $0.append(directory.url, withName: "file", fileName: "a", mimeType: "b/c") }, to: "http://127.0.0.1/",
                queue: callbackQueue, encodingCompletion: completion)
        }
        guard case .failure(let error) = result, case .multipartEncodingFailed(.bodyPartFileIsDirectory)? = error as? AFError else {
            Issue.record("not bodyPartFileIsDirectory: \(result)")
            return
        }
    }
}

/// The ways to upload a form.
@Suite(.timeLimit(.minutes(2))) struct MultipartRequestsTests {
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer.standard()
    }

    private func expectForm(_ result: SessionManager.MultipartFormDataEncodingResult, streamed: Bool = false) async throws {
        switch result {
        case let .success(upload, streamingFromDisk, streamFileURL):
            #expect(streamingFromDisk == streamed && (streamFileURL != nil) == streamed)
            let reply = try await upload.echoed()
            #expect(reply.header("X-One") == "1")
            #expect(reply.header("Content-Type")?.hasPrefix("multipart/form-data; boundary=") == true)
            #expect(String(decoding: reply.body, as: UTF8.self).contains("name=\"field\"\r\n\r\nvalue\r\n"))
            if let file = streamFileURL { #expect(!FileManager.default.fileExists(atPath: file.path)) }
        case .failure(let error):
            Issue.record(error)
        }
    }

    @Sendable private func fill(_ form: MultipartFormData) {
        form.append(Data("value".utf8), withName: "field")
    }

    @Test("forms with the default manager, to a URL and with a request") func defaultManager() async throws {
        let url = server.url("/echo")
        let headers: HTTPHeaders = ["X-One": "1"]
        let urlRequest = try URLRequest(url: url, method: .post, headers: headers)
        try await expectForm(
            await outcome { Alamofire.upload(multipartFormData: fill, to: url, headers: headers, encodingCompletion: $0) })
        try await expectForm(await outcome { upload(multipartFormData: fill, to: url, headers: headers, encodingCompletion: $0) })
        try await expectForm(await outcome { Alamofire.upload(multipartFormData: fill, with: urlRequest, encodingCompletion: $0) })
        try await expectForm(await outcome { upload(multipartFormData: fill, with: urlRequest, encodingCompletion: $0) })
    }

    @Test("forms with a manager, from disk above the threshold") func manager() async throws {
        let manager = SessionManager()
        let headers: HTTPHeaders = ["X-One": "1"]
        let result: SessionManager.MultipartFormDataEncodingResult = await outcome {
            manager.upload(
                multipartFormData: fill, usingThreshold: 1, to: server.url("/echo"), headers: headers, queue: callbackQueue,
                encodingCompletion: $0)
        }
        try await expectForm(result, streamed: true)
    }

    @Test("a part from a stream has its header fields in a dictionary") func streamHeaders() throws {
        let form = MultipartFormData()
        let headers: HTTPHeaders = ["Content-Type": "a/b", "Content-Disposition": "form-data; name=\"s\""]
        form.append(InputStream(data: Data("x".utf8)), withLength: 1, headers: headers)
        let text = String(decoding: try form.encode(), as: UTF8.self)
        #expect(text.contains("Content-Disposition: form-data; name=\"s\"\r\nContent-Type: a/b\r\n\r\nx\r\n"))
    }
}
