// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Alamofire 4's errors: the five of its families that a request can fail with.
///
/// Transfer errors are `URLError`s, whose `NSUnderlyingErrorKey` holds the more detailed ``/CurlewHTTP/CurlewError``. Errors thrown by the
/// user's code are delivered unchanged.
public enum AFError: Error, Sendable {
    /// A `URLConvertible` does not give a valid URL.
    case invalidURL(url: any URLConvertible)
    /// Parameters could not be encoded into the request.
    case parameterEncodingFailed(reason: ParameterEncodingFailureReason)
    /// A multipart body could not be encoded.
    case multipartEncodingFailed(reason: MultipartEncodingFailureReason)
    /// A built-in validation rejected the response.
    case responseValidationFailed(reason: ResponseValidationFailureReason)
    /// A built-in serializer could not read the response.
    case responseSerializationFailed(reason: ResponseSerializationFailureReason)

    /// Why parameters could not be encoded.
    public enum ParameterEncodingFailureReason: Sendable {
        /// The parameters belong in the query, but the request has no URL.
        case missingURL
        /// `JSONSerialization`, or an encoder of forms, refused the parameters.
        case jsonEncodingFailed(error: any Error)
        /// `PropertyListSerialization` refused the parameters.
        case propertyListEncodingFailed(error: any Error)
    }

    /// Why a multipart body could not be encoded.
    public enum MultipartEncodingFailureReason: Sendable {
        /// The part's URL is not a file URL.
        case bodyPartURLInvalid(url: URL)
        /// The part's URL does not give a file name with an extension.
        case bodyPartFilenameInvalid(in: URL)
        /// The part's file does not exist or is not readable.
        case bodyPartFileNotReachable(at: URL)
        /// The same, with the reason.
        case bodyPartFileNotReachableWithError(atURL: URL, error: any Error)
        /// The part's file is a directory.
        case bodyPartFileIsDirectory(at: URL)
        /// The part's file has no size.
        case bodyPartFileSizeNotAvailable(at: URL)
        /// The size of the part's file could not be determined, with the reason.
        case bodyPartFileSizeQueryFailedWithError(forURL: URL, error: any Error)
        /// The part's file can't be opened.
        case bodyPartInputStreamCreationFailed(for: URL)
        /// The output file can't be created.
        case outputStreamCreationFailed(for: URL)
        /// The output file exists already.
        case outputStreamFileAlreadyExists(at: URL)
        /// The output URL is not a file URL.
        case outputStreamURLInvalid(url: URL)
        /// Writing failed.
        case outputStreamWriteFailed(error: any Error)
        /// Reading a part failed.
        case inputStreamReadFailed(error: any Error)
    }

    /// Why a built-in validation rejected a response.
    public typealias ResponseValidationFailureReason = CurlewError.ResponseValidationFailureReason

    /// Why a built-in serializer could not read a response.
    public enum ResponseSerializationFailureReason: Sendable {
        /// There is no body.
        case inputDataNil
        /// There is no body, or an empty one.
        case inputDataNilOrZeroLength
        /// There is no file.
        case inputFileNil
        /// The file can't be read.
        case inputFileReadFailed(at: URL)
        /// The bytes are not text in this encoding; its raw value is 0xFFFFFFFF if the response's charset is unknown.
        case stringSerializationFailed(encoding: String.Encoding)
        /// `JSONSerialization`, or a decoder, refused the bytes.
        case jsonSerializationFailed(error: any Error)
        /// `PropertyListSerialization` refused the bytes.
        case propertyListSerializationFailed(error: any Error)
    }
}

// MARK: - Families

extension AFError {
    /// Whether the error is ``invalidURL(url:)``.
    public var isInvalidURLError: Bool { if case .invalidURL = self { true } else { false } }
    /// Whether the error is ``parameterEncodingFailed(reason:)``.
    public var isParameterEncodingError: Bool { if case .parameterEncodingFailed = self { true } else { false } }
    /// Whether the error is ``multipartEncodingFailed(reason:)``.
    public var isMultipartEncodingError: Bool { if case .multipartEncodingFailed = self { true } else { false } }
    /// Whether the error is ``responseValidationFailed(reason:)``.
    public var isResponseValidationError: Bool { if case .responseValidationFailed = self { true } else { false } }
    /// Whether the error is ``responseSerializationFailed(reason:)``.
    public var isResponseSerializationError: Bool { if case .responseSerializationFailed = self { true } else { false } }
}

// MARK: - Associated values

extension AFError {
    /// The value that is not a valid URL, of ``invalidURL(url:)``.
    public var urlConvertible: (any URLConvertible)? {
        if case .invalidURL(let url) = self { url } else { nil }
    }

    /// The URL of a multipart error that has one.
    public var url: URL? {
        if case .multipartEncodingFailed(let reason) = self { reason.url } else { nil }
    }

    /// The underlying error of an encoding or serialization error, if it has one.
    public var underlyingError: (any Error)? {
        switch self {
        case .parameterEncodingFailed(let reason): reason.underlyingError
        case .multipartEncodingFailed(let reason): reason.underlyingError
        case .responseSerializationFailed(let reason): reason.underlyingError
        case .invalidURL, .responseValidationFailed: nil
        }
    }

    /// The content types that were acceptable.
    public var acceptableContentTypes: [String]? {
        switch self {
        case .responseValidationFailed(.missingContentType(let types)), .responseValidationFailed(.unacceptableContentType(let types, _)):
            types
        default: nil
        }
    }

    /// The content type that was rejected.
    public var responseContentType: String? {
        if case .responseValidationFailed(.unacceptableContentType(_, let type)) = self { type } else { nil }
    }

    /// The status that was rejected.
    public var responseCode: Int? {
        if case .responseValidationFailed(.unacceptableStatusCode(let code)) = self { code } else { nil }
    }

    /// The encoding in which the bytes are not text; its raw value is 0xFFFFFFFF if the response's charset is unknown.
    public var failedStringEncoding: String.Encoding? {
        if case .responseSerializationFailed(.stringSerializationFailed(let encoding)) = self { encoding } else { nil }
    }
}

extension AFError.ParameterEncodingFailureReason {
    fileprivate var underlyingError: (any Error)? {
        switch self {
        case .jsonEncodingFailed(let error), .propertyListEncodingFailed(let error): error
        case .missingURL: nil
        }
    }
}

extension AFError.MultipartEncodingFailureReason {
    fileprivate var url: URL? {
        switch self {
        case .bodyPartURLInvalid(let url), .bodyPartFilenameInvalid(let url), .bodyPartFileNotReachable(let url),
            .bodyPartFileNotReachableWithError(let url, _), .bodyPartFileIsDirectory(let url), .bodyPartFileSizeNotAvailable(let url),
            .bodyPartFileSizeQueryFailedWithError(let url, _), .bodyPartInputStreamCreationFailed(let url),
            .outputStreamCreationFailed(let url), .outputStreamFileAlreadyExists(let url), .outputStreamURLInvalid(let url):
            url
        case .outputStreamWriteFailed, .inputStreamReadFailed: nil
        }
    }

    fileprivate var underlyingError: (any Error)? {
        switch self {
        case .bodyPartFileNotReachableWithError(_, let error), .bodyPartFileSizeQueryFailedWithError(_, let error),
            .outputStreamWriteFailed(let error), .inputStreamReadFailed(let error):
            error
        default: nil
        }
    }
}

extension AFError.ResponseSerializationFailureReason {
    fileprivate var underlyingError: (any Error)? {
        switch self {
        case .jsonSerializationFailed(let error), .propertyListSerializationFailed(let error): error
        default: nil
        }
    }
}
