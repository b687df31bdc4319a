// SPDX-License-Identifier: Apache-2.0

// Payloads contain URLs, whose secrets reflection must not reveal, and texts of peers. The case's name is kept as the label, because
// programs distinguish cases by it; the other reasons have nothing to redact.

extension Mirror {
    /// The mirror of an enum whose payload may be secret: its description, labeled with the case's name as in Swift's own mirror.
    package static func redacted<Subject>(_ subject: Subject, caseName: String?) -> Mirror {
        let children = caseName.map { [(label: $0, value: "\(subject)" as Any)] } ?? []
        return Mirror(subject, children: children, displayStyle: .enum)
    }
}

extension CurlewError: RedactedCases {
    /// The name of the case; `nil` for a case without a payload, or with a request as its only one that is unknown.
    package var caseName: String? {
        switch self {
        case .cancelled, .sessionInvalidated, .sessionShutDown: request == nil ? nil : name
        default: name
        }
    }

    /// The name of the case.
    package var name: String {
        switch self {
        case .invalidURL: "invalidURL"
        case .urlRequestValidationFailed: "urlRequestValidationFailed"
        case .parameterEncodingFailed: "parameterEncodingFailed"
        case .multipartEncodingFailed: "multipartEncodingFailed"
        case .transferFailed: "transferFailed"
        case .redirectFailed: "redirectFailed"
        case .responseValidationFailed: "responseValidationFailed"
        case .responseSerializationFailed: "responseSerializationFailed"
        case .resumeDataInvalid: "resumeDataInvalid"
        case .cancelled: "cancelled"
        case .sessionInvalidated: "sessionInvalidated"
        case .sessionShutDown: "sessionShutDown"
        }
    }
}

extension CurlewError.URLRequestValidationFailureReason: RedactedCases {
    /// The name of the case; `nil` for a case without a payload.
    package var caseName: String? {
        switch self {
        case .missingHost: "missingHost"
        case .unsupportedScheme: "unsupportedScheme"
        case .invalidMethod: "invalidMethod"
        case .invalidHeader: "invalidHeader"
        case .bodyNotAllowed: "bodyNotAllowed"
        case .invalidPort: "invalidPort"
        case .bodyAlreadyEncoded: "bodyAlreadyEncoded"
        case .missingURL: nil
        }
    }
}

extension CurlewError.MultipartEncodingFailureReason: RedactedCases {
    /// The name of the case; `nil` for a case without a payload.
    package var caseName: String? {
        switch self {
        case .bodyPartURLInvalid: "bodyPartURLInvalid"
        case .bodyPartFilenameInvalid: "bodyPartFilenameInvalid"
        case .bodyPartFileNotReachable: "bodyPartFileNotReachable"
        case .bodyPartFileNotReachableWithError: "bodyPartFileNotReachableWithError"
        case .bodyPartFileIsDirectory: "bodyPartFileIsDirectory"
        case .bodyPartFileSizeNotAvailable: "bodyPartFileSizeNotAvailable"
        case .bodyPartFileSizeQueryFailedWithError: "bodyPartFileSizeQueryFailedWithError"
        case .bodyPartInputStreamCreationFailed: "bodyPartInputStreamCreationFailed"
        case .outputStreamCreationFailed: "outputStreamCreationFailed"
        case .outputStreamFileAlreadyExists: "outputStreamFileAlreadyExists"
        case .outputStreamURLInvalid: "outputStreamURLInvalid"
        case .outputStreamWriteFailed: "outputStreamWriteFailed"
        case .inputStreamReadFailed: "inputStreamReadFailed"
        case .bodyPartLengthMismatch: "bodyPartLengthMismatch"
        case .bodyPartHeaderInvalid: "bodyPartHeaderInvalid"
        case .boundaryInvalid: "boundaryInvalid"
        case .bodyPartStreamConsumed: nil
        }
    }
}

extension CurlewError.RedirectFailureReason: RedactedCases {
    /// The name of the case; `nil` for a case without a payload.
    package var caseName: String? {
        switch self {
        case .tooMany: "tooMany"
        case .insecureDowngrade: "insecureDowngrade"
        case .invalidLocation: "invalidLocation"
        case .bodyNotRepeatable: nil
        }
    }
}

extension CurlewError.ResponseValidationFailureReason: RedactedCases {
    /// The name of the case; `nil` for a case without a payload.
    package var caseName: String? {
        switch self {
        case .dataFileReadFailed: "dataFileReadFailed"
        case .missingContentType: "missingContentType"
        case .unacceptableContentType: "unacceptableContentType"
        case .unacceptableStatusCode: "unacceptableStatusCode"
        case .dataFileNil: nil
        }
    }
}
