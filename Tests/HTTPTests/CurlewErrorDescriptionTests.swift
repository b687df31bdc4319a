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
    ]

    @Test("user name and password are never shown, the host is", arguments: withUserInfo)
    func hidesUserInfo(_ error: CurlewError) {
        for text in ["\(error)", String(reflecting: error), error.errorDescription ?? ""] {
            #expect(!text.contains("s3cret"))
            #expect(!text.contains("user"))
            #expect(text.contains("example.org"))
        }
    }

    @Test("the reasons hide user name and password on their own, too")
    func reasonsHideUserInfo() {
        let host = CurlewError.URLRequestValidationFailureReason.missingHost(url: Self.url())
        let redirect = CurlewError.RedirectFailureReason.invalidLocation("//user:s3cret@example.org/")
        for text in ["\(host)", "\(redirect)"] {
            #expect(!text.contains("s3cret"))
            #expect(text.contains("example.org"))
        }
    }

    @Test("the description says the stage, the reason and the cause")
    func descriptions() {
        let rows: [(CurlewError, String)] = [
            (.invalidURL(url: "a b"), "URL is not valid: a b"),
            (.urlRequestValidationFailed(reason: .invalidMethod("G T")), "The method is not a token: \"G T\""),
            (.urlRequestValidationFailed(reason: .invalidHeader(name: "A\n")), "The header \"A\\n\" has an invalid name or value."),
            (.urlRequestValidationFailed(reason: .invalidPort(0)), "The port is not between 1 and 65535: 0"),
            (.parameterEncodingFailed(reason: .jsonEncodingFailed(error: Cause())), "Parameters could not be encoded as JSON: the cause"),
            (.redirectFailed(reason: .tooMany(limit: 3)), "More than 3 redirects."),
            (.responseValidationFailed(reason: .unacceptableStatusCode(code: 404)), "The response's status is not acceptable: 404."),
            (.responseSerializationFailed(reason: .decodingFailed(error: Cause())), "The response could not be decoded: the cause"),
            (.cancelled, "The request was cancelled."),
            (.sessionInvalidated, "The session was invalidated."),
        ]
        for (error, text) in rows {
            #expect(error.description == text)
            #expect(error.errorDescription == text)
        }
    }
}
