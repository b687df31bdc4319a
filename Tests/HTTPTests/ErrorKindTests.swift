// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CurlewHTTP

/// The kinds by which metrics and traces tell errors apart: dashboards have them as text.
@Suite(.timeLimit(.minutes(1))) struct ErrorKindTests {
    private enum OtherError: Error {
        case secret(String)
    }

    @Test(
        "each error has a kind that stays the same",
        arguments: [
            (.transferFailed(TransferFailure(kind: .idleTimeout, url: "http://a.test/", phase: .waiting, message: "")), "idleTimeout"),
            (.invalidURL(url: ""), "invalidURL"), (.urlRequestValidationFailed(reason: .missingURL), "urlRequestValidationFailed"),
            (.parameterEncodingFailed(reason: .missingURL), "parameterEncodingFailed"),
            (.multipartEncodingFailed(reason: .bodyPartStreamConsumed), "multipartEncodingFailed"),
            (.redirectFailed(reason: .bodyNotRepeatable), "redirectFailed"),
            (.responseValidationFailed(reason: .dataFileNil), "responseValidationFailed"),
            (.responseSerializationFailed(reason: .inputDataNil), "responseSerializationFailed"),
            (.resumeDataInvalid(reason: .notResumeData), "resumeDataInvalid"), (.cancelled(in: nil), "cancelled"),
            (.sessionInvalidated(in: nil), "sessionInvalidated"), (.sessionShutDown(in: nil), "sessionShutDown"),
        ] as [(CurlewError, String)])
    func kinds(_ error: CurlewError, _ kind: String) {
        #expect(error.kindName == kind)
    }

    @Test("other errors have the name of their type, without what they carry") func otherErrors() {
        #expect(CancellationError().kindName == "cancelled")
        #expect(OtherError.secret("hunter2").kindName.hasSuffix("OtherError"))
        #expect(!OtherError.secret("hunter2").kindName.contains("hunter2"))
    }
}
