// SPDX-License-Identifier: Apache-2.0

/// A failure, by the stage of the request at which it occurred.
///
/// Errors thrown by users' code (an adapter, a validator, a serializer, a parameter encoding) are passed on unchanged, and files that can't
/// be opened, written or moved fail with Foundation's `CocoaError`; everything else is one of these cases.
///
/// An error that a request has failed with names that request: ``request`` has its method, URL, attempt and status, and its description
/// begins with them. Programs that create errors leave it out.
///
/// Later versions may add cases, so a `switch` needs a `default`.
public enum CurlewError: Error, Sendable {
    /// A ``URLConvertible`` could not be converted to a URL.
    case invalidURL(url: any URLConvertible, in: FailedRequest? = nil)
    /// A request is invalid: nothing was sent.
    case urlRequestValidationFailed(reason: URLRequestValidationFailureReason, in: FailedRequest? = nil)
    /// Parameters could not be encoded into the request.
    case parameterEncodingFailed(reason: ParameterEncodingFailureReason, in: FailedRequest? = nil)
    /// A multipart body could not be encoded.
    case multipartEncodingFailed(reason: MultipartEncodingFailureReason, in: FailedRequest? = nil)
    /// The request could not be sent, or its response not be received.
    case transferFailed(TransferFailure)
    /// A redirect was not followed.
    case redirectFailed(reason: RedirectFailureReason, in: FailedRequest? = nil)
    /// A built-in validation rejected the response.
    case responseValidationFailed(reason: ResponseValidationFailureReason, in: FailedRequest? = nil)
    /// A built-in serializer could not convert the response.
    case responseSerializationFailed(reason: ResponseSerializationFailureReason, in: FailedRequest? = nil)
    /// A download can't be resumed from the given data.
    case resumeDataInvalid(reason: ResumeDataFailureReason, in: FailedRequest? = nil)
    /// The request was cancelled; to be matched as `.cancelled`.
    case cancelled(in: FailedRequest?)
    /// The session's manager was released or the session invalidated, while the request was in flight or before it was created; to be matched
    /// as `.sessionInvalidated`.
    case sessionInvalidated(in: FailedRequest?)
    /// The session was shut down; to be matched as `.sessionShutDown`.
    case sessionShutDown(in: FailedRequest?)

    /// The request was cancelled: by `cancel()`, its reader or its handler.
    public static var cancelled: CurlewError { .cancelled(in: nil) }
    /// The session's manager was released, or the session was invalidated, while the request was in flight or before it was created. A
    /// request that is awaited retains its manager.
    public static var sessionInvalidated: CurlewError { .sessionInvalidated(in: nil) }
    /// The session was shut down: the request was created after the call, was not started, or was in flight when the grace period had
    /// passed.
    public static var sessionShutDown: CurlewError { .sessionShutDown(in: nil) }

    /// The reason why a request is invalid. Later versions may add cases, so a `switch` needs a `default`.
    public enum URLRequestValidationFailureReason: Sendable, Hashable {
        /// The request has no URL.
        case missingURL
        /// The URL has no host.
        case missingHost(url: URL)
        /// The URL's scheme is neither `http` nor `https`.
        case unsupportedScheme(url: URL)
        /// The method is not a token (RFC 9110, section 9.1).
        case invalidMethod(String)
        /// The field's name is not a token, or its value contains a line break or another control character (RFC 9110, section 5).
        case invalidHeader(name: String)
        /// The method does not allow a body (RFC 9110, sections 9.3.2 and 9.3.8).
        case bodyNotAllowed(HTTPMethod)
        /// A port outside 1 to 65,535.
        case invalidPort(Int)
        /// The body was to be compressed, but its `Content-Encoding` says that it is encoded already.
        case bodyAlreadyEncoded(contentEncoding: String)
    }

    /// The reason why parameters could not be encoded. Later versions may add cases, so a `switch` needs a `default`.
    public enum ParameterEncodingFailureReason: Sendable {
        /// The parameters are to be encoded into the query, but the request has no URL.
        case missingURL
        /// `JSONSerialization` or `JSONEncoder` failed to encode the parameters.
        case jsonEncodingFailed(error: any Error)
        /// `PropertyListSerialization` failed to encode the parameters.
        case propertyListEncodingFailed(error: any Error)
        /// The parameters can't be represented as a form, or their own encoding failed.
        case formEncodingFailed(error: any Error)
    }

    /// The reason why a multipart body could not be encoded. Later versions may add cases, so a `switch` needs a `default`.
    public enum MultipartEncodingFailureReason: Sendable {
        /// A part's URL is not a file URL.
        case bodyPartURLInvalid(url: URL)
        /// The URL has no file name.
        case bodyPartFilenameInvalid(in: URL)
        /// A part's file is not reachable.
        case bodyPartFileNotReachable(at: URL)
        /// A part's file is not reachable: usually, it doesn't exist.
        case bodyPartFileNotReachableWithError(atURL: URL, error: any Error)
        /// A part's file is a directory.
        case bodyPartFileIsDirectory(at: URL)
        /// A part's file is not a regular file and so has no size, such as a pipe or a device.
        case bodyPartFileSizeNotAvailable(at: URL)
        /// The system failed to report the size of a part's file.
        case bodyPartFileSizeQueryFailedWithError(forURL: URL, error: any Error)
        /// A part's file can't be opened for reading.
        case bodyPartInputStreamCreationFailed(for: URL)
        /// The output file can't be created.
        case outputStreamCreationFailed(for: URL)
        /// The output file already exists.
        case outputStreamFileAlreadyExists(at: URL)
        /// The output URL is not a file URL.
        case outputStreamURLInvalid(url: URL)
        /// The output file could not be written completely.
        case outputStreamWriteFailed(error: any Error)
        /// A part's stream or file could not be read completely.
        case inputStreamReadFailed(error: any Error)
        /// A part has fewer or more bytes than announced; `actual` is the number of bytes read when that was detected.
        case bodyPartLengthMismatch(announced: UInt64, actual: UInt64)
        /// A part's stream can only be read once, and was read by an earlier encoding.
        case bodyPartStreamConsumed
        /// A part's header field has a name that is not a token, or a value with a line break or another control character.
        case bodyPartHeaderInvalid(name: String)
        /// The boundary doesn't consist of 1 to 70 allowed characters, or ends in a space (RFC 2046, section 5.1.1).
        case boundaryInvalid(String)
    }

    /// The reason why a redirect was not followed. Later versions may add cases, so a `switch` needs a `default`.
    public enum RedirectFailureReason: Sendable, Hashable {
        /// The response redirects beyond the limit.
        case tooMany(limit: Int)
        /// The redirect leads from `https` to `http`, which is refused unless allowed.
        case insecureDowngrade(to: URL)
        /// The `Location` is not a URL, or not one with the scheme `http` or `https`.
        case invalidLocation(String)
        /// The redirect, or a retry, requires sending the body again, but the body can be sent only once.
        case bodyNotRepeatable
    }

    /// The reason why a download can't be resumed from the given data. Later versions may add cases, so a `switch` needs a `default`.
    public enum ResumeDataFailureReason: Sendable, Hashable {
        /// The data is not resume data of this library.
        case notResumeData
        /// The data was created by a later version of this library, in this version of the format.
        case unsupportedVersion(Int)
        /// The field of that name is invalid.
        case invalidField(String)
    }

    /// The reason why a built-in validation rejected a response. Later versions may add cases, so a `switch` needs a `default`.
    public enum ResponseValidationFailureReason: Sendable, Hashable {
        /// The content type of a download can't be validated without a file.
        case dataFileNil
        /// The content type of a download can't be validated because the file can't be read.
        case dataFileReadFailed(at: URL)
        /// The response has a body but no content type, and `*/*` is not acceptable.
        case missingContentType(acceptableContentTypes: [String])
        /// The content type is not acceptable.
        case unacceptableContentType(acceptableContentTypes: [String], responseContentType: String)
        /// The status code is not acceptable.
        case unacceptableStatusCode(code: Int)
    }

    /// The reason why a built-in serializer could not convert a response. Later versions may add cases, so a `switch` needs a `default`.
    public enum ResponseSerializationFailureReason: Sendable {
        /// There is no body.
        case inputDataNil
        /// There is no body, or an empty one.
        case inputDataNilOrZeroLength
        /// There is no file.
        case inputFileNil
        /// The file can't be read.
        case inputFileReadFailed(at: URL)
        /// The bytes are not valid text in this encoding.
        case stringSerializationFailed(encoding: String.Encoding)
        /// The charset of the response, or the encoding that an XML document declares, has an unknown name, of which these are the first
        /// 40 bytes. Give an encoding, or read the body as data.
        case unknownCharset(String)
        /// `JSONSerialization` failed to parse the bytes.
        case jsonSerializationFailed(error: any Error)
        /// `PropertyListSerialization` failed to parse the bytes.
        case propertyListSerializationFailed(error: any Error)
        /// The decoder failed to decode the bytes.
        case decodingFailed(error: any Error)
    }
}
