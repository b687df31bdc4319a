// SPDX-License-Identifier: Apache-2.0

extension CurlewError {
    /// The request that failed; `nil` if the error was not delivered by one.
    public var request: FailedRequest? {
        switch self {
        case .transferFailed(let failure): failure.request
        case .invalidURL(_, let request), .urlRequestValidationFailed(_, let request), .parameterEncodingFailed(_, let request),
            .multipartEncodingFailed(_, let request), .redirectFailed(_, let request), .responseValidationFailed(_, let request),
            .responseSerializationFailed(_, let request), .resumeDataInvalid(_, let request), .cancelled(let request),
            .sessionInvalidated(let request), .sessionShutDown(let request):
            request
        }
    }

    /// Returns the same error of a request.
    package func describing(_ request: FailedRequest) -> CurlewError {
        switch self {
        case .invalidURL(let url, _): return .invalidURL(url: url, in: request)
        case .urlRequestValidationFailed(let reason, _): return .urlRequestValidationFailed(reason: reason, in: request)
        case .parameterEncodingFailed(let reason, _): return .parameterEncodingFailed(reason: reason, in: request)
        case .multipartEncodingFailed(let reason, _): return .multipartEncodingFailed(reason: reason, in: request)
        case .transferFailed(var failure):
            failure.request = request
            return .transferFailed(failure)
        case .redirectFailed(let reason, _): return .redirectFailed(reason: reason, in: request)
        case .responseValidationFailed(let reason, _): return .responseValidationFailed(reason: reason, in: request)
        case .responseSerializationFailed(let reason, _): return .responseSerializationFailed(reason: reason, in: request)
        case .resumeDataInvalid(let reason, _): return .resumeDataInvalid(reason: reason, in: request)
        case .cancelled: return .cancelled(in: request)
        case .sessionInvalidated: return .sessionInvalidated(in: request)
        case .sessionShutDown: return .sessionShutDown(in: request)
        }
    }
}

// MARK: - Parts of errors

extension CurlewError {
    /// The status of the response: the refused one, or the one whose body could not be received or serialized. `nil` without a response.
    public var statusCode: Int? {
        if case .responseValidationFailed(.unacceptableStatusCode(let code), _) = self { return code }
        return request?.statusCode
    }

    /// The first 64 KiB of the body of a refused response, if that is text: ``FailedRequest/body``.
    public var responseBody: String? { request?.body }

    /// The body of a refused response as a `validate(decoding:)` has decoded it: ``FailedRequest/decodedBody``. `nil` for another type.
    ///
    /// ```swift
    /// catch { if let problem = error.asCurlewError?.decodedBody(as: APIError.self) { show(problem.message) } }
    /// ```
    public func decodedBody<Value>(as type: Value.Type = Value.self) -> Value? { request?.decodedBody as? Value }

    /// The error that caused this one: of an encoder, a decoder or a file. `nil` without one.
    public var underlyingError: (any Error)? {
        switch self {
        case .parameterEncodingFailed(let reason, _): reason.underlyingError
        case .multipartEncodingFailed(let reason, _): reason.underlyingError
        case .responseSerializationFailed(let reason, _): reason.underlyingError
        default: nil
        }
    }

    /// Whether one of the timeouts has passed: ``TransferFailure/isTimeout``.
    public var isTimeout: Bool { if case .transferFailed(let failure) = self { failure.isTimeout } else { false } }

    /// Whether a built-in validation refused the response, such as its status.
    public var isResponseValidationError: Bool { if case .responseValidationFailed = self { true } else { false } }

    /// Whether a built-in serializer could not convert the response.
    public var isResponseSerializationError: Bool { if case .responseSerializationFailed = self { true } else { false } }
}

extension CurlewError.ParameterEncodingFailureReason {
    fileprivate var underlyingError: (any Error)? {
        switch self {
        case .missingURL: nil
        case .jsonEncodingFailed(let error), .propertyListEncodingFailed(let error), .formEncodingFailed(let error): error
        }
    }
}

extension CurlewError.MultipartEncodingFailureReason {
    fileprivate var underlyingError: (any Error)? {
        switch self {
        case .bodyPartFileNotReachableWithError(_, let error), .bodyPartFileSizeQueryFailedWithError(_, let error),
            .outputStreamWriteFailed(let error), .inputStreamReadFailed(let error):
            error
        default: nil
        }
    }
}

extension CurlewError.ResponseSerializationFailureReason {
    fileprivate var underlyingError: (any Error)? {
        switch self {
        case .jsonSerializationFailed(let error), .propertyListSerializationFailed(let error), .decodingFailed(let error): error
        default: nil
        }
    }
}

// MARK: - Casts

extension Error {
    /// The error as a ``CurlewError``; `nil` for one of users' code, a `CocoaError` or a `CancellationError`.
    public var asCurlewError: CurlewError? { self as? CurlewError }
}
