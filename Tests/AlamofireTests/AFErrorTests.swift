// SPDX-License-Identifier: Apache-2.0
import CurlewAlamofire
import CurlewTestSupport
import Foundation
import Testing

@Suite(.timeLimit(.minutes(2))) struct AFErrorTests {
    private let file = URL(fileURLWithPath: "/tmp/part")
    private let cause = TestError("cause")

    /// As programs write it: no `default`.
    private func family(of error: AFError) -> String {
        switch error {
        case .invalidURL: return "url"
        case .parameterEncodingFailed(let reason):
            switch reason {
            case .missingURL, .jsonEncodingFailed, .propertyListEncodingFailed: return "parameters"
            }
        case .multipartEncodingFailed(let reason):
            switch reason {
            case .bodyPartURLInvalid, .bodyPartFilenameInvalid, .bodyPartFileNotReachable, .bodyPartFileNotReachableWithError,
                .bodyPartFileIsDirectory, .bodyPartFileSizeNotAvailable, .bodyPartFileSizeQueryFailedWithError,
                .bodyPartInputStreamCreationFailed, .outputStreamCreationFailed, .outputStreamFileAlreadyExists, .outputStreamURLInvalid,
                .outputStreamWriteFailed, .inputStreamReadFailed:
                return "multipart"
            }
        case .responseValidationFailed(let reason):
            switch reason {
            case .dataFileNil, .dataFileReadFailed, .missingContentType, .unacceptableContentType, .unacceptableStatusCode:
                return "validation"
            }
        case .responseSerializationFailed(let reason):
            switch reason {
            case .inputDataNil, .inputDataNilOrZeroLength, .inputFileNil, .inputFileReadFailed, .stringSerializationFailed,
                .jsonSerializationFailed, .propertyListSerializationFailed:
                return "serialization"
            }
        }
    }

    @Test("descriptions are sentences, without secrets and control characters")
    func texts() {
        let url = URL(string: "ftp://user:s3cret@h/?access_token=s3cret") ?? file
        let errors: [AFError] = [
            .invalidURL(url: url), .multipartEncodingFailed(reason: .bodyPartURLInvalid(url: url)),
            .responseValidationFailed(
                reason: .unacceptableContentType(acceptableContentTypes: ["*/*"], responseContentType: "x\r\n\u{9B}\u{202E}")),
            .parameterEncodingFailed(reason: .jsonEncodingFailed(error: TestError("\u{1B}"))),
        ]
        for error in errors {
            var text = "\(error) \(String(reflecting: error)) \(error.localizedDescription)"
            #expect(!text.unicodeScalars.contains { ["\r", "\n", "\u{1B}", "\u{9B}", "\u{202E}"].contains($0) })
            dump(error, to: &text)
            #expect(!text.contains("s3cret"))
            #expect("\(error)" == error.errorDescription)
        }
        #expect("\(AFError.MultipartEncodingFailureReason.bodyPartURLInvalid(url: url))".contains("access_token=<hidden>"))
    }

    @Test("five families, each with its own property; a switch needs no default")
    func families() {
        let errors: [AFError] = [
            .invalidURL(url: "x y"), .parameterEncodingFailed(reason: .missingURL),
            .multipartEncodingFailed(reason: .bodyPartURLInvalid(url: file)), .responseValidationFailed(reason: .dataFileNil),
            .responseSerializationFailed(reason: .inputDataNil),
        ]
        #expect(errors.map { family(of: $0) } == ["url", "parameters", "multipart", "validation", "serialization"])
        #expect(errors.map(\.isInvalidURLError) == [true, false, false, false, false])
        #expect(errors.map(\.isParameterEncodingError) == [false, true, false, false, false])
        #expect(errors.map(\.isMultipartEncodingError) == [false, false, true, false, false])
        #expect(errors.map(\.isResponseValidationError) == [false, false, false, true, false])
        #expect(errors.map(\.isResponseSerializationError) == [false, false, false, false, true])
    }

    @Test("the properties of associated values") func properties() {
        #expect(AFError.invalidURL(url: "x y").urlConvertible as? String == "x y")
        #expect(AFError.responseValidationFailed(reason: .dataFileNil).urlConvertible == nil)
        let missing = AFError.responseValidationFailed(reason: .missingContentType(acceptableContentTypes: ["a/b"]))
        #expect(missing.acceptableContentTypes == ["a/b"] && missing.responseContentType == nil)
        let other = AFError.responseValidationFailed(
            reason: .unacceptableContentType(acceptableContentTypes: ["a/b"], responseContentType: "c/d"))
        #expect(other.acceptableContentTypes == ["a/b"] && other.responseContentType == "c/d" && other.responseCode == nil)
        #expect(AFError.responseValidationFailed(reason: .unacceptableStatusCode(code: 404)).responseCode == 404)
        #expect(AFError.responseSerializationFailed(reason: .stringSerializationFailed(encoding: .utf8)).failedStringEncoding == .utf8)
    }

    @Test("the underlying error") func underlyingErrors() {
        let errors: [AFError] = [
            .parameterEncodingFailed(reason: .jsonEncodingFailed(error: cause)),
            .parameterEncodingFailed(reason: .propertyListEncodingFailed(error: cause)),
            .multipartEncodingFailed(reason: .bodyPartFileNotReachableWithError(atURL: file, error: cause)),
            .multipartEncodingFailed(reason: .bodyPartFileSizeQueryFailedWithError(forURL: file, error: cause)),
            .multipartEncodingFailed(reason: .outputStreamWriteFailed(error: cause)),
            .multipartEncodingFailed(reason: .inputStreamReadFailed(error: cause)),
            .responseSerializationFailed(reason: .jsonSerializationFailed(error: cause)),
            .responseSerializationFailed(reason: .propertyListSerializationFailed(error: cause)),
        ]
        for error in errors { #expect(error.underlyingError as? TestError == cause) }
        #expect(AFError.invalidURL(url: "").underlyingError == nil)
        #expect(AFError.multipartEncodingFailed(reason: .bodyPartURLInvalid(url: file)).underlyingError == nil)
    }

    @Test("the URL of a multipart error") func multipartURLs() {
        let reasons: [AFError.MultipartEncodingFailureReason] = [
            .bodyPartURLInvalid(url: file), .bodyPartFilenameInvalid(in: file), .bodyPartFileNotReachable(at: file),
            .bodyPartFileNotReachableWithError(atURL: file, error: cause), .bodyPartFileIsDirectory(at: file),
            .bodyPartFileSizeNotAvailable(at: file), .bodyPartFileSizeQueryFailedWithError(forURL: file, error: cause),
            .bodyPartInputStreamCreationFailed(for: file), .outputStreamCreationFailed(for: file),
            .outputStreamFileAlreadyExists(at: file), .outputStreamURLInvalid(url: file),
        ]
        for reason in reasons { #expect(AFError.multipartEncodingFailed(reason: reason).url == file) }
        #expect(AFError.multipartEncodingFailed(reason: .inputStreamReadFailed(error: cause)).url == nil)
        #expect(AFError.invalidURL(url: file).url == nil)
    }

    @Test("descriptions contain the associated values") func descriptions() {
        #expect(AFError.invalidURL(url: "x y").localizedDescription.contains("x y"))
        #expect(AFError.responseValidationFailed(reason: .unacceptableStatusCode(code: 404)).errorDescription?.contains("404") == true)
        #expect(AFError.multipartEncodingFailed(reason: .bodyPartFileIsDirectory(at: file)).errorDescription?.contains("/tmp/part") == true)
        #expect(AFError.parameterEncodingFailed(reason: .jsonEncodingFailed(error: cause)).errorDescription?.contains("cause") == true)
        let serialization = AFError.responseSerializationFailed(reason: .inputFileReadFailed(at: file))
        #expect(serialization.errorDescription?.contains("/tmp/part") == true)
    }
}
