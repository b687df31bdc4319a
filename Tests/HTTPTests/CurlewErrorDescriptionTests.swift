// SPDX-License-Identifier: Apache-2.0

import CurlewHTTP
import Testing

@Suite struct CurlewErrorDescriptionTests {
    private struct Endpoint: URLConvertible {
        let base = "https://user:s3cret@example.org/a b"
        func asURL() throws -> URL { throw CurlewError.invalidURL(url: self) }
    }

    private struct Cause: Error, CustomStringConvertible {
        let description = "the cause"
    }

    private static func url() -> URL {
        URL(string: "ftp://user:s3cret@example.org/path") ?? URL(filePath: "/")
    }

    private static func brokenComponents() -> URLComponents {
        var components = URLComponents()
        components.scheme = "https"
        components.user = "user"
        components.password = "s3cret"
        components.host = "example.org"
        components.path = "no slash"
        return components
    }

    private static let withUserInfo: [CurlewError] = [
        .invalidURL(url: "https://user:s3cret@example.org/a b"), .invalidURL(url: url()), .invalidURL(url: brokenComponents()),
        .invalidURL(url: Endpoint()),
        .invalidURL(url: "//user:s3cret@example.org"), .invalidURL(url: "https://user:s3 cr@s3cret@example.org"),
        .urlRequestValidationFailed(reason: .missingHost(url: url())), .urlRequestValidationFailed(reason: .unsupportedScheme(url: url())),
        .redirectFailed(reason: .insecureDowngrade(to: url())),
        .redirectFailed(reason: .invalidLocation("ftp://user:s3cret@example.org/")),
        .transferFailed(TransferFailure(kind: .connect, url: "http://user:s3cret@example.org/", phase: .connecting, message: "refused")),
        .multipartEncodingFailed(reason: .bodyPartURLInvalid(url: url())),
        .multipartEncodingFailed(reason: .bodyPartFilenameInvalid(in: url())),
        .multipartEncodingFailed(reason: .outputStreamURLInvalid(url: url())),
    ]

    @Test("user name and password are redacted, the host is not", arguments: withUserInfo)
    func hidesUserInfo(_ error: CurlewError) {
        for text in ["\(error)", String(reflecting: error), error.errorDescription ?? ""] {
            #expect(!text.contains("s3cret"))
            #expect(!text.contains("user"))
            #expect(text.contains("example.org"))
        }
    }

    @Test("the reasons' own descriptions redact user name and password")
    func reasonsHideUserInfo() {
        let host = CurlewError.URLRequestValidationFailureReason.missingHost(url: Self.url())
        let redirect = CurlewError.RedirectFailureReason.invalidLocation("//user:s3cret@example.org/")
        for text in ["\(host)", "\(redirect)"] {
            #expect(!text.contains("s3cret"))
            #expect(text.contains("example.org"))
        }
    }

    private static var multipartRows: [(CurlewError, String)] {
        let file = URL(filePath: "/tmp/a b")
        let rows: [(CurlewError.MultipartEncodingFailureReason, String)] = [
            (.bodyPartURLInvalid(url: url()), "The part's URL is not a file URL: ftp://example.org/path"),
            (.bodyPartFilenameInvalid(in: file), "The URL has no file name: file:///tmp/a%20b"),
            (.bodyPartFileNotReachable(at: file), "The part's file is not reachable: /tmp/a b"),
            (.bodyPartFileNotReachableWithError(atURL: file, error: Cause()), "The part's file is not reachable: /tmp/a b: the cause"),
            (.bodyPartFileIsDirectory(at: file), "The part's file is a directory: /tmp/a b"),
            (.bodyPartFileSizeNotAvailable(at: file), "The part's file is not a regular file, so it has no size: /tmp/a b"),
            (
                .bodyPartFileSizeQueryFailedWithError(forURL: file, error: Cause()),
                "The size of the part's file is unknown: /tmp/a b: the cause"
            ),
            (.bodyPartInputStreamCreationFailed(for: file), "The part's file can't be opened: /tmp/a b"),
            (.outputStreamCreationFailed(for: file), "The file can't be created: /tmp/a b"),
            (.outputStreamFileAlreadyExists(at: file), "The file already exists: /tmp/a b"),
            (.outputStreamURLInvalid(url: url()), "The output URL is not a file URL: ftp://example.org/path"),
            (.outputStreamWriteFailed(error: Cause()), "The multipart body could not be written: the cause"),
            (.inputStreamReadFailed(error: Cause()), "A part could not be read: the cause"),
            (
                .bodyPartLengthMismatch(announced: 3, actual: 2),
                "A part does not have its announced length: 2 bytes were read, 3 announced."
            ),
            (.bodyPartStreamConsumed, "A part's stream was read before, and can be read only once."),
            (.bodyPartHeaderInvalid(name: "A\n"), "A part's header \"A\\n\" has an invalid name or value."),
            (.boundaryInvalid(" "), "The boundary is not valid: \" \""),
        ]
        return rows.map { (.multipartEncodingFailed(reason: $0), $1) }
    }

    @Test("the error of a file says in words what is wrong with which file")
    func files() throws {
        let missing = URL(filePath: "/nowhere/a b")
        let error = #expect(throws: CocoaError.self) { try Data(contentsOf: missing) }
        let cause = try #require(error)
        let reason = CurlewError.MultipartEncodingFailureReason.bodyPartFileNotReachableWithError(atURL: missing, error: cause)
        #expect(
            "\(CurlewError.multipartEncodingFailed(reason: reason))"
                == "The part's file is not reachable: the file \"/nowhere/a b\" does not exist")
        let rows: [(CocoaError, String)] = [
            (FileError.reading("/a", ENOENT), "the file \"/a\" does not exist"),
            (FileError.reading("/a", EACCES), "there is no permission to read the file \"/a\""),
            (FileError.reading("/a", EISDIR), "the file \"/a\" can't be read: Is a directory"),
            (FileError.writing("/a", EACCES), "there is no permission to write the file \"/a\""),
            (FileError.writing("/a", EEXIST), "the file \"/a\" already exists"),
            (FileError.writing("/a", ENOSPC), "the file \"/a\" can't be written: no space is left"),
            (FileError.writing("/a", EROFS), "the file \"/a\" can't be written: its file system is read-only"),
            (FileError.writing("/a", EIO), "the file \"/a\" can't be written: Input/output error"),
        ]
        for (error, text) in rows { #expect(FileError.text(error) == text && error.userInfo["NSLocalizedDescription"] as? String == text) }
        #expect(FileError.text(CocoaError(.fileReadNoSuchFile), of: "/b") == "the file \"/b\" does not exist")
        #expect(FileError.text(Cause()) == "the cause" && FileError.text(Cause(), of: "/b") == "/b: the cause")
    }

    @Test("a sentence can follow a description, with or without a request")
    func fullStops() {
        let refused = CurlewError.responseValidationFailed(reason: .unacceptableStatusCode(code: 503))
        let named = refused.describing(FailedRequest(method: .get, url: "http://h/"))
        #expect("\(refused)".withFullStop == "Status 503 is not acceptable.")
        #expect("\(named)".withFullStop == "GET http://h/: status 503 is not acceptable.")
    }

    @Test("the description has the stage, the reason and the underlying error")
    func descriptions() {
        let rows: [(CurlewError, String)] = [
            (.invalidURL(url: "a b"), "URL is not valid: a b"),
            (.urlRequestValidationFailed(reason: .invalidMethod("G T")), "The method is not a token: \"G T\""),
            (.urlRequestValidationFailed(reason: .invalidHeader(name: "A\n")), "The header \"A\\n\" has an invalid name or value."),
            (.urlRequestValidationFailed(reason: .invalidPort(0)), "The port is not between 1 and 65535: 0"),
            (.parameterEncodingFailed(reason: .jsonEncodingFailed(error: Cause())), "Parameters could not be encoded as JSON: the cause"),
            (.parameterEncodingFailed(reason: .formEncodingFailed(error: Cause())), "Parameters could not be encoded as a form: the cause"),
            (
                .urlRequestValidationFailed(reason: .bodyAlreadyEncoded(contentEncoding: "br")),
                "The body can't be compressed: its Content-Encoding is already \"br\"."
            ),
            (.redirectFailed(reason: .tooMany(limit: 3)), "More than 3 redirects."),
            (.responseValidationFailed(reason: .unacceptableStatusCode(code: 404)), "Status 404 is not acceptable."),
            (.responseSerializationFailed(reason: .decodingFailed(error: Cause())), "The response could not be decoded: the cause"),
            (
                .responseSerializationFailed(reason: .stringSerializationFailed(encoding: .init(rawValue: 0x8000_0632))),
                "The response is not text in the encoding GB18030."
            ),
            (
                .responseSerializationFailed(reason: .unknownCharset("x\u{1B}")),
                "The response is not decoded as text: its charset is unknown: x\\u{1B}"
            ),
            (.cancelled, "The request was cancelled."),
            (.resumeDataInvalid(reason: .notResumeData), "The data is not resume data."),
            (.resumeDataInvalid(reason: .unsupportedVersion(7)), "The resume data has an unknown version: 7."),
            (.resumeDataInvalid(reason: .invalidField("url")), "The resume data is damaged: url is not valid."),
            (.sessionInvalidated, "The session has ended: its manager was released, or it was invalidated."),
            (.sessionShutDown, "The session was shut down."),
        ]
        for (error, text) in rows + Self.multipartRows {
            #expect(error.description == text)
            #expect(error.errorDescription == text)
        }
    }
}
