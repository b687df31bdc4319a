// SPDX-License-Identifier: Apache-2.0

/// The errors of operations other than those of their connections, which are `URLError`s.
///
/// Later versions may add cases, so a `switch` needs a `default`.
public enum OperationError: Error, Sendable {
    /// The body has to be written from the start again, but the output stream has already received a part of it and can't be rewound. An
    /// ``URLConnectionOperation/outputFile`` can.
    case outputStreamNotRestartable
    /// The output stream accepts no more bytes.
    case outputStreamFull
    /// Writing to the output stream failed. The underlying error is the stream's, if it has one.
    case outputStreamFailed(underlying: (any Error)?)
    /// The security policy has pins, but the URL's scheme is not `https`, so there are no certificates to compare with them.
    case pinningRequiresTLS(url: URL)
    /// The string is not a URL, neither absolute nor relative to the manager's base URL.
    case invalidURL(String)
    /// The request serializer can't encode the parameters.
    case parametersNotSupported
    /// The form body contains characters that the serializer's ``HTTPRequestSerializer/stringEncoding`` doesn't have.
    case bodyNotEncodable(encoding: String.Encoding)
    /// The bytes are not an image of a supported format.
    case imageNotRecognised
    /// The XML document is malformed, or uses a feature that is rejected in untrusted documents.
    case invalidXML(reason: String)
    /// The archive was made by a later version of this library.
    case unsupportedArchive(version: Int)
}

extension OperationError: LocalizedError {
    /// The error in one sentence; URLs redacted, control characters escaped.
    public var errorDescription: String? { description }
}

extension OperationError: CustomStringConvertible, RedactedCases {
    /// The error in one sentence; URLs redacted, control characters escaped.
    public var description: String { Redaction.escaped(sentence) }

    /// The name of a case with a payload.
    package var caseName: String? {
        switch self {
        case .outputStreamFailed: "outputStreamFailed"
        case .pinningRequiresTLS: "pinningRequiresTLS"
        case .invalidURL: "invalidURL"
        case .invalidXML: "invalidXML"
        case .bodyNotEncodable: "bodyNotEncodable"
        case .unsupportedArchive: "unsupportedArchive"
        default: nil
        }
    }

    private var sentence: String {
        switch self {
        case .outputStreamNotRestartable:
            "The body has to be written from the start again, but the output stream can't be rewound; use an outputFile instead"
        case .outputStreamFull: "The output stream accepts no more bytes"
        case .outputStreamFailed(let error): "Writing to the output stream failed" + (error.map { ": \($0.localizedDescription)" } ?? "")
        case .pinningRequiresTLS(let url):
            "The security policy has pins, which require an https URL, but the URL's scheme is \(url.scheme ?? "missing")"
        case .invalidURL(let string): "Invalid URL: \(string.redactedURL)"
        case .parametersNotSupported: "The request serializer can't encode the parameters: they are not a dictionary with string keys"
        case .bodyNotEncodable(let encoding):
            "The form body contains characters that the serializer's stringEncoding, \(encoding), doesn't have; use UTF-8"
        case .imageNotRecognised: "The bytes are not an image in PNG, JPEG, GIF, BMP, WebP, TIFF or ICO format"
        case .invalidXML(let reason): "The XML document was rejected: \(reason)"
        case .unsupportedArchive(let version):
            "The archive has format version \(version), but this library supports version \(OperationArchive.currentVersion)"
        }
    }
}

/// Keys in the `userInfo` of operations' errors, with AFNetworking's values.
///
/// The request and the response are complete, but their descriptions are redacted (``/CurlewHTTP/Redaction``), as is the URL under
/// `NSURLErrorFailingURLErrorKey`.
public enum OperationErrorKey {
    /// The `URLRequest` of the failed operation.
    public static let request = "com.alamofire.serialization.request.error.response"
    /// The rejected `HTTPURLResponse`.
    public static let response = "com.alamofire.serialization.response.error.response"
    /// The body of the rejected response, as `Data`.
    public static let data = "com.alamofire.serialization.response.error.data"
}

extension Error {
    /// The error as an operation reports it: a `URLError` with the failing URL if Foundation has a code for it.
    func asOperationError(of request: URLRequest) -> any Error {
        guard let error = self as? CurlewError else { return self }
        var code = error.urlError?.code
        // A server that the policy rejects fails the operation as if it had cancelled the challenge.
        if case .transferFailed(let failure) = error, failure.kind == .serverCertificate { code = .userCancelledAuthentication }
        guard let code else { return self }
        return URLError.operationError(code, request, underlying: error)
    }
}

extension URLError {
    static func operationError(_ code: URLError.Code, _ request: URLRequest, underlying: (any Error)? = nil) -> URLError {
        var info: [String: Any] = [OperationErrorKey.request: request.shownInErrors]
        if let url = request.url?.redacted {
            info[NSURLErrorFailingURLErrorKey] = url
        }
        if let underlying {
            info[NSUnderlyingErrorKey] = underlying
            info[NSLocalizedDescriptionKey] = underlying.localizedDescription
        }
        return URLError(code, userInfo: info)
    }

    /// The error with the request added to its user info.
    func adding(_ request: URLRequest) -> URLError {
        URLError(code, userInfo: userInfo.merging([OperationErrorKey.request: request.shownInErrors]) { _, new in new })
    }
}
