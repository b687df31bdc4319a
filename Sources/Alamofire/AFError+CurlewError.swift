// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

extension AFError {
    /// Translates an error for a program written for Alamofire: a `CurlewError` becomes an `AFError` or a `URLError`; others stay as they
    /// are.
    @Sendable
    static func translate(_ error: any Error) -> any Error {
        guard let error = error as? CurlewError else { return error }
        if let translation = AFError(error) { return translation }
        guard let urlError = error.urlError else { return error }
        // Alamofire cancels the challenge of a server that a policy rejects.
        if case .transferFailed(let failure) = error, failure.isRefusedByPolicy { return URLError(.cancelled, userInfo: urlError.userInfo) }
        return urlError
    }

    /// Runs a closure and translates the errors it throws.
    static func translating<Value>(_ body: () throws -> Value) throws -> Value {
        do { return try body() } catch { throw translate(error) }
    }

    /// The corresponding error; `nil` for errors that become a `URLError`.
    public init?(_ error: CurlewError) {
        switch error {
        case .invalidURL(let url, _): self = .invalidURL(url: url)
        case .parameterEncodingFailed(let reason, _): self = .parameterEncodingFailed(reason: .init(reason))
        case .multipartEncodingFailed(let reason, _): self = .multipartEncodingFailed(reason: .init(reason))
        case .responseValidationFailed(let reason, _): self = .responseValidationFailed(reason: reason)
        case .responseSerializationFailed(let reason, _): self = .responseSerializationFailed(reason: .init(reason))
        default: return nil
        }
    }
}

extension AFError.ParameterEncodingFailureReason {
    fileprivate init(_ reason: CurlewError.ParameterEncodingFailureReason) {
        switch reason {
        case .missingURL: self = .missingURL
        case .jsonEncodingFailed(let error), .formEncodingFailed(let error): self = .jsonEncodingFailed(error: error)
        case .propertyListEncodingFailed(let error): self = .propertyListEncodingFailed(error: error)
        }
    }
}

extension AFError.ResponseSerializationFailureReason {
    fileprivate init(_ reason: CurlewError.ResponseSerializationFailureReason) {
        switch reason {
        case .inputDataNil: self = .inputDataNil
        case .inputDataNilOrZeroLength: self = .inputDataNilOrZeroLength
        case .inputFileNil: self = .inputFileNil
        case .inputFileReadFailed(let url): self = .inputFileReadFailed(at: url)
        case .stringSerializationFailed(let encoding): self = .stringSerializationFailed(encoding: encoding)
        // Core Foundation's kCFStringEncodingInvalidId, which Alamofire gets for such a name.
        case .unknownCharset: self = .stringSerializationFailed(encoding: String.Encoding(rawValue: 0xFFFF_FFFF))
        case .jsonSerializationFailed(let error), .decodingFailed(let error): self = .jsonSerializationFailed(error: error)
        case .propertyListSerializationFailed(let error): self = .propertyListSerializationFailed(error: error)
        }
    }
}

// MARK: - LocalizedError

extension AFError: LocalizedError {
    /// What failed, on what and why, in one sentence.
    public var errorDescription: String? { CurlewError(self).errorDescription }
}

// The reverse conversion, since the texts are Curlew's.

extension CurlewError {
    fileprivate init(_ error: AFError) {
        switch error {
        case .invalidURL(let url): self = .invalidURL(url: url)
        case .parameterEncodingFailed(let reason): self = .parameterEncodingFailed(reason: .init(reason))
        case .multipartEncodingFailed(let reason): self = .multipartEncodingFailed(reason: .init(reason))
        case .responseValidationFailed(let reason): self = .responseValidationFailed(reason: reason)
        case .responseSerializationFailed(let reason): self = .responseSerializationFailed(reason: .init(reason))
        }
    }
}

extension CurlewError.ParameterEncodingFailureReason {
    fileprivate init(_ reason: AFError.ParameterEncodingFailureReason) {
        switch reason {
        case .missingURL: self = .missingURL
        case .jsonEncodingFailed(let error): self = .jsonEncodingFailed(error: error)
        case .propertyListEncodingFailed(let error): self = .propertyListEncodingFailed(error: error)
        }
    }
}

extension CurlewError.ResponseSerializationFailureReason {
    fileprivate init(_ reason: AFError.ResponseSerializationFailureReason) {
        switch reason {
        case .inputDataNil: self = .inputDataNil
        case .inputDataNilOrZeroLength: self = .inputDataNilOrZeroLength
        case .inputFileNil: self = .inputFileNil
        case .inputFileReadFailed(let url): self = .inputFileReadFailed(at: url)
        case .stringSerializationFailed(let encoding): self = .stringSerializationFailed(encoding: encoding)
        case .jsonSerializationFailed(let error): self = .jsonSerializationFailed(error: error)
        case .propertyListSerializationFailed(let error): self = .propertyListSerializationFailed(error: error)
        }
    }
}

// MARK: - Descriptions

extension AFError: CustomStringConvertible, CustomReflectable {
    /// What failed, on what and why, in one sentence; URLs redacted, control characters escaped.
    public var description: String { CurlewError(self).description }

    /// The description, under the case's name.
    public var customMirror: Mirror { .redacted(self, caseName: CurlewError(self).caseName) }
}

extension AFError.ParameterEncodingFailureReason: CustomStringConvertible {
    /// The reason in one sentence.
    public var description: String { CurlewError.ParameterEncodingFailureReason(self).description }
}

extension AFError.MultipartEncodingFailureReason: CustomStringConvertible, CustomReflectable {
    /// The reason in one sentence.
    public var description: String { CurlewError.MultipartEncodingFailureReason(self).description }

    /// The description, under the case's name.
    public var customMirror: Mirror { .redacted(self, caseName: CurlewError.MultipartEncodingFailureReason(self).caseName) }
}

extension AFError.ResponseSerializationFailureReason: CustomStringConvertible {
    /// The reason in one sentence.
    public var description: String { CurlewError.ResponseSerializationFailureReason(self).description }
}
