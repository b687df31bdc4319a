// SPDX-License-Identifier: Apache-2.0

// These texts are logged: URLs are redacted (`Redaction`), and control characters in texts of peers and of underlying errors are escaped.

// MARK: - LocalizedError

extension CurlewError: LocalizedError {
    /// The failed request, as far as it is known, and the reason.
    public var errorDescription: String? { description }
}

// MARK: - CustomStringConvertible

extension CurlewError: LineConvertible {
    /// The failed request, as far as it is known, and the reason: `GET https://example.org/ (attempt 2): status 404 is not acceptable`.
    ///
    /// Without a request, the reason as a sentence.
    package var line: String {
        if case .transferFailed(let failure) = self { return failure.description }
        return Redaction.escaped(request?.failing(because: sentence, hasStatus: !namesStatus) ?? sentence)
    }

    /// Whether the sentence has the response's status.
    private var namesStatus: Bool {
        if case .responseValidationFailed(.unacceptableStatusCode, _) = self { true } else { false }
    }

    private var sentence: String {
        switch self {
        case .invalidURL(let url, let request):
            request?.url == url.redactedDescription ? "URL is not valid" : "URL is not valid: \(url.redactedDescription)"
        case .urlRequestValidationFailed(let reason, _): reason.description
        case .parameterEncodingFailed(let reason, _): reason.description
        case .multipartEncodingFailed(let reason, _): reason.description
        case .transferFailed(let failure): failure.description
        case .redirectFailed(let reason, _): reason.description
        case .responseValidationFailed(let reason, _): reason.description
        case .responseSerializationFailed(let reason, _): reason.description
        case .resumeDataInvalid(let reason, _): reason.description
        case .cancelled: "The request was cancelled."
        case .sessionInvalidated: "The session has ended: its manager was released, or it was invalidated."
        case .sessionShutDown: "The session was shut down."
        }
    }
}

extension CurlewError.URLRequestValidationFailureReason: LineConvertible {
    package var line: String {
        switch self {
        case .missingURL: "The request has no URL."
        case .missingHost(let url): "The URL has no host: \(url.redactedDescription)"
        case .unsupportedScheme(let url): "The URL's scheme is neither http nor https: \(url.redactedDescription)"
        case .invalidMethod(let method): "The method is not a token: \(method.debugDescription)"
        case .invalidHeader(let name): "The header \(name.debugDescription) has an invalid name or value."
        case .bodyNotAllowed(let method): "A \(method) request has no body."
        case .invalidPort(let port): "The port is not between 1 and 65535: \(port)"
        case .bodyAlreadyEncoded(let coding): "The body can't be compressed: its Content-Encoding is already \(coding.debugDescription)."
        }
    }
}

extension CurlewError.ParameterEncodingFailureReason: LineConvertible {
    package var line: String {
        switch self {
        case .missingURL: "Parameters could not be encoded into the query of a request without a URL."
        case .jsonEncodingFailed(let error): "Parameters could not be encoded as JSON: \(FileError.text(error))"
        case .propertyListEncodingFailed(let error): "Parameters could not be encoded as a property list: \(FileError.text(error))"
        case .formEncodingFailed(let error): "Parameters could not be encoded as a form: \(FileError.text(error))"
        }
    }
}

extension CurlewError.MultipartEncodingFailureReason: LineConvertible {
    package var line: String {
        switch self {
        case .bodyPartURLInvalid(let url): "The part's URL is not a file URL: \(url.redactedDescription)"
        case .bodyPartFilenameInvalid(let url): "The URL has no file name: \(url.redactedDescription)"
        case .bodyPartFileNotReachable(let url): "The part's file is not reachable: \(url.path)"
        case .bodyPartFileNotReachableWithError(let url, let error):
            "The part's file is not reachable: \(FileError.text(error, of: url.path))"
        case .bodyPartFileIsDirectory(let url): "The part's file is a directory: \(url.path)"
        case .bodyPartFileSizeNotAvailable(let url): "The part's file is not a regular file, so it has no size: \(url.path)"
        case .bodyPartFileSizeQueryFailedWithError(let url, let error):
            "The size of the part's file is unknown: \(FileError.text(error, of: url.path))"
        case .bodyPartInputStreamCreationFailed(let url): "The part's file can't be opened: \(url.path)"
        case .outputStreamCreationFailed(let url): "The file can't be created: \(url.path)"
        case .outputStreamFileAlreadyExists(let url): "The file already exists: \(url.path)"
        case .outputStreamURLInvalid(let url): "The output URL is not a file URL: \(url.redactedDescription)"
        case .outputStreamWriteFailed(let error): "The multipart body could not be written: \(FileError.text(error))"
        case .inputStreamReadFailed(let error): "A part could not be read: \(FileError.text(error))"
        case .bodyPartLengthMismatch(let announced, let actual):
            "A part does not have its announced length: \(actual) bytes were read, \(announced) announced."
        case .bodyPartStreamConsumed: "A part's stream was read before, and can be read only once."
        case .bodyPartHeaderInvalid(let name): "A part's header \(name.debugDescription) has an invalid name or value."
        case .boundaryInvalid(let boundary): "The boundary is not valid: \(boundary.debugDescription)"
        }
    }
}

extension CurlewError.RedirectFailureReason: LineConvertible {
    package var line: String {
        switch self {
        case .tooMany(let limit): "More than \(limit) redirects."
        case .insecureDowngrade(let url): "The redirect leads from https to http: \(url.redactedDescription)"
        case .invalidLocation(let location):
            "The redirect's Location is not an http or https URL: \(Redaction.current.url(location).debugDescription)"
        case .bodyNotRepeatable: "The body would have to be sent again, by a redirect or a retry, but it can be sent only once."
        }
    }
}

extension CurlewError.ResumeDataFailureReason: LineConvertible {
    package var line: String {
        switch self {
        case .notResumeData: "The data is not resume data."
        case .unsupportedVersion(let version): "The resume data has an unknown version: \(version)."
        case .invalidField(let name): "The resume data is damaged: \(name) is not valid."
        }
    }
}

extension CurlewError.ResponseValidationFailureReason: LineConvertible {
    package var line: String {
        switch self {
        case .dataFileNil: "The response could not be validated: there is no file."
        case .dataFileReadFailed(let url): "The response could not be validated: the file can't be read: \(url.path)"
        case .missingContentType(let acceptable):
            "The response has no content type; acceptable are \(acceptable.joined(separator: ", "))."
        case .unacceptableContentType(let acceptable, let actual):
            "The response's content type is \(actual); acceptable are \(acceptable.joined(separator: ", "))."
        case .unacceptableStatusCode(let code): "Status \(code) is not acceptable."
        }
    }
}

extension CurlewError.ResponseSerializationFailureReason: LineConvertible {
    package var line: String {
        switch self {
        case .inputDataNil: "The response could not be serialized: there is no body."
        case .inputDataNilOrZeroLength: "The response could not be serialized: its body is missing or empty."
        case .inputFileNil: "The response could not be serialized: there is no file."
        case .inputFileReadFailed(let url): "The response could not be serialized: the file can't be read: \(url.path)"
        case .stringSerializationFailed(let encoding): "The response is not text in the encoding \(encoding.charsetName ?? "\(encoding)")."
        case .unknownCharset(let name): "The response is not decoded as text: its charset is unknown: \(name)"
        case .jsonSerializationFailed(let error): "The response is not JSON: \(FileError.text(error))"
        case .propertyListSerializationFailed(let error): "The response is not a property list: \(FileError.text(error))"
        case .decodingFailed(let error): "The response could not be decoded: \(FileError.text(error))"
        }
    }
}

extension URLConvertible {
    /// The value's description, redacted.
    package var redactedDescription: String {
        guard var components = self as? URLComponents else { return "\(self)".redactedURL }
        // Components that don't form a URL are described by their parts.
        components.user = nil
        components.password = nil
        components.queryItems = components.queryItems?.map { item in
            item.value != nil && Redaction.current.hides(queryItem: item.name)
                ? URLQueryItem(name: item.name, value: Redaction.placeholder) : item
        }
        return "\(components)".redactedURL
    }
}
