// SPDX-License-Identifier: Apache-2.0

/// What went wrong, by the stage of a request at which it did.
///
/// What user code threw (an adapter, a validator, a serializer, a parameter encoding) arrives as it was thrown, and files that can't
/// be opened, written or moved give the `CocoaError` that Foundation's users know; everything else is one of these.
public enum CurlewError: Error, Sendable {
    /// A ``URLConvertible`` stands for no URL.
    case invalidURL(url: any URLConvertible)
    /// A request can't be sent as it is: nothing left the process.
    case urlRequestValidationFailed(reason: URLRequestValidationFailureReason)
    /// Parameters could not be encoded into the request.
    case parameterEncodingFailed(reason: ParameterEncodingFailureReason)
    /// A multipart body could not be put together.
    case multipartEncodingFailed(reason: MultipartEncodingFailureReason)
    /// The bytes did not make it there, or not back.
    case transferFailed(TransferFailure)
    /// A redirect was not followed to its end.
    case redirectFailed(reason: RedirectFailureReason)
    /// The response came, but is not acceptable to a built-in validation.
    case responseValidationFailed(reason: ResponseValidationFailureReason)
    /// The response came, but a built-in serializer made nothing of it.
    case responseSerializationFailed(reason: ResponseSerializationFailureReason)
    /// A download can't go on from data that it was given.
    case resumeDataInvalid(reason: ResumeDataFailureReason)
    /// The request was cancelled.
    case cancelled
    /// The session ended while the request was on its way, or before it was made.
    case sessionInvalidated

    /// Why a request can't be sent as it is.
    public enum URLRequestValidationFailureReason: Sendable, Hashable {
        /// The request has no URL.
        case missingURL
        /// The URL has no host.
        case missingHost(url: URL)
        /// The URL's scheme is neither `http` nor `https`.
        case unsupportedScheme(url: URL)
        /// The method is not a token (RFC 9110, section 9.1).
        case invalidMethod(String)
        /// The header's name is not a token, or its value holds a line break or another control character (RFC 9110, section 5).
        case invalidHeader(name: String)
        /// The method does not allow a body (RFC 9110, sections 9.3.2 and 9.3.8).
        case bodyNotAllowed(HTTPMethod)
        /// A port outside 1 to 65,535.
        case invalidPort(Int)
        /// The body was to be compressed, and its `Content-Encoding` says that something was done to it before.
        case bodyAlreadyEncoded(contentEncoding: String)
    }

    /// Why parameters could not be encoded.
    public enum ParameterEncodingFailureReason: Sendable {
        /// The parameters belong in the query, but the request has no URL.
        case missingURL
        /// `JSONSerialization` or `JSONEncoder` refused the parameters.
        case jsonEncodingFailed(error: any Error)
        /// `PropertyListSerialization` refused the parameters.
        case propertyListEncodingFailed(error: any Error)
        /// The parameters are none that a form can hold, or refused to be encoded.
        case formEncodingFailed(error: any Error)
    }

    /// Why a multipart body could not be put together.
    public enum MultipartEncodingFailureReason: Sendable {
        /// A part's URL is not that of a file.
        case bodyPartURLInvalid(url: URL)
        /// The URL gives no file name, or one without an extension, from which the MIME type would follow.
        case bodyPartFilenameInvalid(in: URL)
        /// A part's file can't be reached.
        case bodyPartFileNotReachable(at: URL)
        /// A part's file can't be reached: mostly because there is none.
        case bodyPartFileNotReachableWithError(atURL: URL, error: any Error)
        /// A part's file is a directory.
        case bodyPartFileIsDirectory(at: URL)
        /// A part's file is none that has a size: a pipe, a device.
        case bodyPartFileSizeNotAvailable(at: URL)
        /// The system does not tell the size of a part's file.
        case bodyPartFileSizeQueryFailedWithError(forURL: URL, error: any Error)
        /// A part's file can't be opened for reading.
        case bodyPartInputStreamCreationFailed(for: URL)
        /// The file to write to can't be made.
        case outputStreamCreationFailed(for: URL)
        /// The file to write to is there already.
        case outputStreamFileAlreadyExists(at: URL)
        /// The URL to write to is not that of a file.
        case outputStreamURLInvalid(url: URL)
        /// The file could not be written to its end.
        case outputStreamWriteFailed(error: any Error)
        /// A part's stream or file could not be read to its end.
        case inputStreamReadFailed(error: any Error)
        /// A part gave fewer or more bytes than announced: `actual` counts those that were read before that was clear.
        case bodyPartLengthMismatch(announced: UInt64, actual: UInt64)
        /// A part's stream was read by an earlier encoding, and can be read once.
        case bodyPartStreamConsumed
        /// A part's header has a name that is no token, or a value with a line break or another control character.
        case bodyPartHeaderInvalid(name: String)
        /// The boundary has not 1 to 70 of the characters that it may have, or ends in a space (RFC 2046, section 5.1.1).
        case boundaryInvalid(String)
    }

    /// Why a redirect was not followed.
    public enum RedirectFailureReason: Sendable, Hashable {
        /// More redirects than allowed.
        case tooMany(limit: Int)
        /// From `https` to `http`, which is refused unless allowed.
        case insecureDowngrade(to: URL)
        /// The `Location` is no URL, or none with the scheme `http` or `https`.
        case invalidLocation(String)
        /// The redirect asks for the body again, and the body can be sent only once.
        case bodyNotRepeatable
    }

    /// Why a download can't go on from data that it was given.
    public enum ResumeDataFailureReason: Sendable, Hashable {
        /// The data was not made by this library.
        case notResumeData
        /// The data was made by a later version of this library, in this version of the form.
        case unsupportedVersion(Int)
        /// The part of that name is nothing that this library writes.
        case invalidField(String)
    }

    /// Why a built-in validation refused a response.
    public enum ResponseValidationFailureReason: Sendable, Hashable {
        /// A download's content type was to be validated, and there is no file.
        case dataFileNil
        /// A download's content type was to be validated, and the file can't be read.
        case dataFileReadFailed(at: URL)
        /// A body without a content type, and `*/*` is not acceptable.
        case missingContentType(acceptableContentTypes: [String])
        /// The content type is none of the acceptable ones.
        case unacceptableContentType(acceptableContentTypes: [String], responseContentType: String)
        /// The status is none of the acceptable ones.
        case unacceptableStatusCode(code: Int)
    }

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
        /// `JSONSerialization` refused the bytes.
        case jsonSerializationFailed(error: any Error)
        /// `PropertyListSerialization` refused the bytes.
        case propertyListSerializationFailed(error: any Error)
        /// The decoder refused the bytes.
        case decodingFailed(error: any Error)
    }
}
