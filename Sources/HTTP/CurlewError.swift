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
    /// The bytes did not make it there, or not back.
    case transferFailed(TransferFailure)
    /// A redirect was not followed to its end.
    case redirectFailed(reason: RedirectFailureReason)
    /// The response came, but is not acceptable to a built-in validation.
    case responseValidationFailed(reason: ResponseValidationFailureReason)
    /// The response came, but a built-in serializer made nothing of it.
    case responseSerializationFailed(reason: ResponseSerializationFailureReason)
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
    }

    /// Why parameters could not be encoded.
    public enum ParameterEncodingFailureReason: Sendable {
        /// The parameters belong in the query, but the request has no URL.
        case missingURL
        /// `JSONSerialization` or `JSONEncoder` refused the parameters.
        case jsonEncodingFailed(error: any Error)
        /// `PropertyListSerialization` refused the parameters.
        case propertyListEncodingFailed(error: any Error)
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
