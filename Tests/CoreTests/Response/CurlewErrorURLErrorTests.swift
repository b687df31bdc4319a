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

    /// Kind, the system's error, libcurl's message and the code that these mean together.
    private static let messages: [(TransferFailure.Kind, Int32, String, URLError.Code)] = [
        (.nameResolution, 0, "Could not resolve host: mock", .cannotFindHost),
        (.nameResolution, 0, "Could not resolve host: mock (Could not contact DNS servers)", .dnsLookupFailed),
        (.connect, ECONNREFUSED, "", .cannotConnectToHost), (.connect, ENETUNREACH, "", .notConnectedToInternet),
        (.connect, EHOSTUNREACH, "", .cannotConnectToHost), (.proxy, ENETUNREACH, "", .cannotConnectToHost),
        (.serverCertificate, 0, "SSL certificate problem: certificate has expired", .serverCertificateHasBadDate),
        (.serverCertificate, 0, "SSL certificate problem: certificate is not yet valid", .serverCertificateNotYetValid),
        (.serverCertificate, 0, "SSL certificate problem: self-signed certificate", .serverCertificateHasUnknownRoot),
        (.serverCertificate, 0, "SSL certificate problem: self signed certificate", .serverCertificateHasUnknownRoot),
        (.serverCertificate, 0, "SSL certificate problem: self-signed certificate in certificate chain", .serverCertificateUntrusted),
        (.serverCertificate, 0, "SSL certificate problem: unable to get local issuer certificate", .serverCertificateUntrusted),
        (.serverCertificate, 0, "SSL: no alternative certificate subject name matches target host name", .serverCertificateUntrusted),
        (.clientCertificate, 0, "error:0A00045C:SSL routines::tlsv13 alert certificate required", .clientCertificateRequired),
        (.clientCertificate, 0, "The host requested a client certificate, and ended the connection", .clientCertificateRequired),
        (.clientCertificate, 0, "error:0A000418:SSL routines::tlsv1 alert unknown ca", .clientCertificateRejected),
        (.secureConnection, 0, "wrong version number", .secureConnectionFailed), (.decoding, 0, "truncated", .cannotDecodeRawData),
        (.decoding, 0, "9 content codings, at most 5 are decoded", .cannotDecodeContentData),
    ]

    // U3.2
    @Test("the system's error and libcurl's message tell codes of a kind apart", arguments: messages)
    func causes(_ kind: TransferFailure.Kind, _ systemError: Int32, _ message: String, _ code: URLError.Code) {
        var failure = TransferFailure(kind: kind, url: "http://mock/", phase: .connecting, message: message)
        failure.systemError = systemError
        #expect(CurlewError.transferFailed(failure).urlError?.code == code)
    }

    @Test("a URLError has the failing URL without user info, and the underlying error")
    func details() {
        let failure = TransferFailure(kind: .connect, url: "http://user:s3cret@mock/", phase: .connecting, message: "It failed")
        let error = CurlewError.transferFailed(failure).urlError
        #expect((error?.userInfo[NSURLErrorFailingURLErrorKey] as? URL)?.absoluteString == "http://mock/")
        #expect(error?.userInfo[NSUnderlyingErrorKey] is CurlewError)
    }
}
