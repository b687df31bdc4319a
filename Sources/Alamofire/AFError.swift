// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// The errors of Alamofire 4, by those of its five families that a request can end with.
///
/// What goes wrong on the way to the server and back is a `URLError`, whose `NSUnderlyingErrorKey` holds the ``/CurlewHTTP/CurlewError``
/// that tells more. What code of the user threw arrives as it was thrown.
public enum AFError: Error, Sendable {
    /// A `URLConvertible` stands for no URL.
    case invalidURL(url: any URLConvertible)
    /// Parameters could not be encoded into the request.
    case parameterEncodingFailed(reason: ParameterEncodingFailureReason)
    /// A multipart body could not be put together.
    case multipartEncodingFailed(reason: MultipartEncodingFailureReason)
    /// The response came, but is not acceptable to a built-in validation.
    case responseValidationFailed(reason: ResponseValidationFailureReason)
    /// The response came, but a built-in serializer made nothing of it.
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

    /// Why a multipart body could not be put together.
    public enum MultipartEncodingFailureReason: Sendable {
        /// The part's URL is not that of a file.
        case bodyPartURLInvalid(url: URL)
        /// The part's URL gives no file name with an extension.
        case bodyPartFilenameInvalid(in: URL)
        /// The part's file is not there, or not readable.
        case bodyPartFileNotReachable(at: URL)
        /// The same, with the reason.
        case bodyPartFileNotReachableWithError(atURL: URL, error: any Error)
        /// The part's file is a directory.
        case bodyPartFileIsDirectory(at: URL)
        /// The part's file has no size.
        case bodyPartFileSizeNotAvailable(at: URL)
        /// The part's file does not tell its size, with the reason.
        case bodyPartFileSizeQueryFailedWithError(forURL: URL, error: any Error)
        /// The part's file can't be opened.
        case bodyPartInputStreamCreationFailed(for: URL)
        /// The file to write to can't be made.
        case outputStreamCreationFailed(for: URL)
        /// The file to write to is there already.
        case outputStreamFileAlreadyExists(at: URL)
        /// The URL to write to is not that of a file.
        case outputStreamURLInvalid(url: URL)
        /// Writing failed.
        case outputStreamWriteFailed(error: any Error)
        /// Reading a part failed.
        case inputStreamReadFailed(error: any Error)
    }

    /// Why a built-in validation refused a response.
    public typealias ResponseValidationFailureReason = CurlewError.ResponseValidationFailureReason

    /// Why a built-in serializer made nothing of a response.
    public enum ResponseSerializationFailureReason: Sendable {
        /// There is no body.
        case inputDataNil
        /// There is no body, or an empty one.
        case inputDataNilOrZeroLength
        /// There is no file.
        case inputFileNil
        /// The file can't be read.
        case inputFileReadFailed(at: URL)
        /// The bytes are no text in this encoding.
        case stringSerializationFailed(encoding: String.Encoding)
        /// `JSONSerialization`, or a decoder, refused the bytes.
        case jsonSerializationFailed(error: any Error)
        /// `PropertyListSerialization` refused the bytes.
        case propertyListSerializationFailed(error: any Error)
    }
}

// MARK: - Which family

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

// MARK: - What it carries

extension AFError {
    /// What should have been a URL, of ``invalidURL(url:)``.
    public var urlConvertible: (any URLConvertible)? {
        if case .invalidURL(let url) = self { url } else { nil }
    }

    /// The URL of a multipart error that has one.
    public var url: URL? {
        if case .multipartEncodingFailed(let reason) = self { reason.url } else { nil }
    }

    /// The error behind an encoding or serialization error that has one.
    public var underlyingError: (any Error)? {
        switch self {
        case .parameterEncodingFailed(let reason): reason.underlyingError
        case .multipartEncodingFailed(let reason): reason.underlyingError
        case .responseSerializationFailed(let reason): reason.underlyingError
        case .invalidURL, .responseValidationFailed: nil
        }
    }

    /// The content types that would have been acceptable.
    public var acceptableContentTypes: [String]? {
        switch self {
        case .responseValidationFailed(.missingContentType(let types)), .responseValidationFailed(.unacceptableContentType(let types, _)):
            types
        default: nil
        }
    }

    /// The content type that is not acceptable.
    public var responseContentType: String? {
        if case .responseValidationFailed(.unacceptableContentType(_, let type)) = self { type } else { nil }
    }

    /// The status that is not acceptable.
    public var responseCode: Int? {
        if case .responseValidationFailed(.unacceptableStatusCode(let code)) = self { code } else { nil }
    }

    /// The encoding in which the bytes are no text.
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
