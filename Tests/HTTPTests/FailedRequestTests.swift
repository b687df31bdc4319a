// SPDX-License-Identifier: Apache-2.0

import CurlewHTTP
import Testing

@Suite struct FailedRequestTests {
    private struct Cause: Error, CustomStringConvertible {
        let description = "the cause"
    }

    private static let request = FailedRequest(
        id: 7, method: .put, url: "https://user:s3cret@example.org/users/7?access_token=s3cret&page=2", attempt: 2, statusCode: 503,
        body: "s3cret\u{1B}", bodyData: Data("s3cret\u{1B}".utf8))
    private static let name = "PUT https://example.org/users/7?access_token=<hidden>&page=2 (attempt 2, status 503)"

    private static func url() -> URL { URL(string: "http://user:s3cret@example.org/") ?? URL(filePath: "/") }

    /// Every case, and what its description has after the request.
    private static let rows: [(CurlewError, String)] = [
        (.invalidURL(url: "https://user:s3cret@example.org/a b", in: request), "URL is not valid: https://example.org/a b"),
        (.urlRequestValidationFailed(reason: .missingHost(url: url()), in: request), "the URL has no host: http://example.org/"),
        (
            .parameterEncodingFailed(reason: .jsonEncodingFailed(error: Cause()), in: request),
            "parameters could not be encoded as JSON: the cause"
        ),
        (
            .multipartEncodingFailed(reason: .bodyPartURLInvalid(url: url()), in: request),
            "the part's URL is not a file URL: http://example.org/"
        ),
        (
            CurlewError.transferFailed(
                TransferFailure(kind: .connect, url: "http://user:s3cret@example.org/", phase: .connecting, message: "Could not connect")
            ).describing(request),
            "could not connect (connect while connecting, http://example.org/, 0 body bytes received)"
        ),
        (.redirectFailed(reason: .insecureDowngrade(to: url()), in: request), "the redirect leads from https to http: http://example.org/"),
        (
            .responseSerializationFailed(reason: .decodingFailed(error: Cause()), in: request),
            "the response could not be decoded: the cause"
        ),
        (.resumeDataInvalid(reason: .notResumeData, in: request), "the data is not resume data"),
        (.cancelled(in: request), "the request was cancelled"),
        (.sessionInvalidated(in: request), "the session has ended: its manager was released, or it was invalidated"),
        (.sessionShutDown(in: request), "the session was shut down"),
        (.responseValidationFailed(reason: .dataFileNil, in: request), "the response could not be validated: there is no file"),
    ]

    @Test(arguments: rows.indices)
    func `each description begins with method, URL, attempt and status`(_ row: Int) {
        let (error, reason) = Self.rows[row]
        #expect(error.description == "\(Self.name): \(reason)")
        #expect(error.errorDescription == error.description)
        #expect(error.request == Self.request)
        #expect(error.statusCode == 503)
        var dumped = ""
        dump(error, to: &dumped)
        for text in ["\(error)", String(reflecting: error), error.localizedDescription, dumped] {
            #expect(!text.contains("s3cret"))
            #expect(!text.contains("\u{1B}"))
        }
    }

    @Test func `a refused status is named once`() {
        let error = CurlewError.responseValidationFailed(reason: .unacceptableStatusCode(code: 503), in: Self.request)
        #expect(
            error.description == "PUT https://example.org/users/7?access_token=<hidden>&page=2 (attempt 2): status 503 is not acceptable")
        #expect(error.statusCode == 503)
        #expect(error.responseBody == "s3cret\u{1B}")
        #expect(error.isResponseValidationError)
    }

    @Test func `a transfer's URL is named once`() {
        let request = FailedRequest(method: .get, url: "http://example.org/", attempt: 1)
        let failure = TransferFailure(kind: .idleTimeout, url: "http://example.org/", phase: .waiting, message: "HTTP timed out")
        let error = CurlewError.transferFailed(failure).describing(request)
        #expect(
            error.description
                == "GET http://example.org/ (attempt 1): HTTP timed out (idleTimeout while waiting, 0 body bytes received)")
        #expect(error.isTimeout)
    }

    @Test func `an invalid URL is named once`() {
        let request = FailedRequest(method: .get, url: "https://example.org/a b")
        #expect(
            CurlewError.invalidURL(url: "https://example.org/a b", in: request).description
                == "GET https://example.org/a b: URL is not valid")
    }

    @Test func `a request is described as far as it is known`() {
        let rows: [(FailedRequest, String)] = [
            (FailedRequest(url: ""), "The request was cancelled."),
            (FailedRequest(id: 3, url: "http://example.org:80"), "http://example.org:80: the request was cancelled"),
            (FailedRequest(url: "", attempt: 1), "request (attempt 1): the request was cancelled"),
            (
                FailedRequest(method: .head, url: "http://a/\n\u{1B}", statusCode: 500),
                #"HEAD http://a/\n\u{1B} (status 500): the request was cancelled"#
            ),
        ]
        for (request, text) in rows { #expect(CurlewError.cancelled(in: request).description == text) }
    }

    @Test func `cases without a payload are thrown and matched by their names`() throws {
        func fail(_ error: CurlewError) throws { throw error }
        func name(_ error: CurlewError) -> String {
            switch error {
            case .cancelled: "cancelled"
            case .sessionInvalidated: "sessionInvalidated"
            default: "other"
            }
        }
        for error in [CurlewError.cancelled, .cancelled(in: Self.request)] {
            #expect(name(error) == "cancelled")
            do { try fail(error) } catch CurlewError.cancelled { continue }
            #expect(Bool(false), "not caught: \(error)")
        }
        for error in [CurlewError.sessionInvalidated, .sessionInvalidated(in: Self.request)] {
            #expect(name(error) == "sessionInvalidated")
            guard case CurlewError.sessionInvalidated = error as any Error else { return #expect(Bool(false), "not matched: \(error)") }
        }
        #expect(CurlewError.cancelled.request == nil)
    }

    @Test func `one cast finds the library's error, and its cause`() {
        let error: any Error = CurlewError.responseSerializationFailed(reason: .jsonSerializationFailed(error: Cause()), in: Self.request)
        #expect(error.asCurlewError?.underlyingError is Cause)
        #expect(error.asCurlewError?.isResponseSerializationError == true)
        #expect(error.asCurlewError?.isResponseValidationError == false)
        #expect((Cause() as any Error).asCurlewError == nil)
        #expect(CurlewError.cancelled.underlyingError == nil)
        #expect(!CurlewError.cancelled.isTimeout)
        #expect(CurlewError.responseValidationFailed(reason: .unacceptableStatusCode(code: 404)).statusCode == 404)
    }
}
