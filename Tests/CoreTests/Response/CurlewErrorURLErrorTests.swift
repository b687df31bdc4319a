// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct CurlewErrorURLErrorTests {
    private static let rows: [(CurlewError, URLError.Code?)] = [
        (.cancelled, .cancelled), (.sessionInvalidated, .cancelled), (.sessionShutDown, .cancelled), (.invalidURL(url: "a b"), .badURL),
        (.urlRequestValidationFailed(reason: .missingURL), .badURL), (.redirectFailed(reason: .tooMany(limit: 1)), .httpTooManyRedirects),
        (.failure(.nameResolution), .cannotFindHost), (.failure(.connect), .cannotConnectToHost), (.failure(.idleTimeout), .timedOut),
        (.failure(.connectionLost), .networkConnectionLost), (.failure(.serverCertificate), .serverCertificateUntrusted),
        (.failure(.tooLarge), .dataLengthExceedsMaximum), (.failure(.other), .unknown),
        (.responseValidationFailed(reason: .unacceptableStatusCode(code: 404)), nil),
        (.responseSerializationFailed(reason: .inputDataNil), nil), (.multipartEncodingFailed(reason: .bodyPartStreamConsumed), nil),
    ]

    @Test("errors have Foundation's domain and code", arguments: rows)
    func codes(_ error: CurlewError, _ code: URLError.Code?) {
        #expect(error.urlError?.code == code)
        let bridged = error as NSError
        #expect(bridged.domain == NSURLErrorDomain)
        #expect(bridged.code == code?.rawValue ?? NSURLErrorUnknown)
        #expect(bridged.localizedDescription == error.description)
        #expect(bridged.userInfo[NSUnderlyingErrorKey] == nil)
    }

    @Test("a URLError has the failing URL without user info, and the underlying error")
    func details() {
        let failure = TransferFailure(kind: .connect, url: "http://user:s3cret@mock/", phase: .connecting, message: "It failed")
        let error = CurlewError.transferFailed(failure).urlError
        #expect((error?.userInfo[NSURLErrorFailingURLErrorKey] as? URL)?.absoluteString == "http://mock/")
        #expect(error?.userInfo[NSUnderlyingErrorKey] is CurlewError)
    }
}
