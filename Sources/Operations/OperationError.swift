// SPDX-License-Identifier: Apache-2.0

/// What can go wrong with an operation beyond what its connection can end with, which is an `URLError`.
public enum OperationError: Error, Sendable {
    /// The body has to be written from its beginning again, and the output stream has got a part of it: a stream can't be taken back.
    /// An ``URLConnectionOperation/outputFile`` can.
    case outputStreamNotRestartable
    /// The output stream takes no more bytes.
    case outputStreamFull
    /// The output stream refused bytes. The underlying error is the stream's, where it has one.
    case outputStreamFailed(underlying: (any Error)?)
    /// The security policy has pins, and the URL's scheme is not `https`: nothing could be compared with them.
    case pinningRequiresTLS(url: URL)
    /// The string makes no URL, not even relative to the manager's base URL.
    case invalidURL(String)
    /// The parameters are none that the request serializer can write.
    case parametersNotSupported
    /// The bytes are no image of a format that is known.
    case imageNotRecognised
    /// An XML document is malformed, or uses what is refused in documents from elsewhere.
    case invalidXML(reason: String)
    /// None of a compound serializer's serializers made anything of the response.
    case noSerializerAccepted
    /// An archive was made by a later version of this library.
    case unsupportedArchive(version: Int)
}

extension OperationError: LocalizedError {
    /// One sentence for people; URLs redacted, control characters escaped.
    public var errorDescription: String? { description }
}

extension OperationError: CustomStringConvertible, CustomReflectable {
    /// One sentence for people; URLs redacted, control characters escaped.
    public var description: String { Redaction.escaped(sentence) }

    /// The description, under the name of the case where it has a payload.
    public var customMirror: Mirror {
        let name: String? =
            switch self {
            case .outputStreamFailed: "outputStreamFailed"
            case .pinningRequiresTLS: "pinningRequiresTLS"
            case .invalidURL: "invalidURL"
            case .invalidXML: "invalidXML"
            case .unsupportedArchive: "unsupportedArchive"
            default: nil
            }
        return .redacted(self, caseName: name)
    }

    private var sentence: String {
        switch self {
        case .outputStreamNotRestartable: "The body has to be written anew, and the output stream can't be taken back to its beginning"
        case .outputStreamFull: "The output stream takes no more bytes"
        case .outputStreamFailed(let error): "The output stream refused bytes" + (error.map { ": \($0.localizedDescription)" } ?? "")
        case .pinningRequiresTLS(let url): "The security policy has pins, and the scheme of the URL is \(url.scheme ?? "missing")"
        case .invalidURL(let string): "The string makes no URL: \(string.redactedURL)"
        case .parametersNotSupported: "The request serializer can't write such parameters"
        case .imageNotRecognised: "The bytes are no image of a format that is known"
        case .invalidXML(let reason): "The XML is malformed: \(reason)"
        case .noSerializerAccepted: "No serializer made anything of the response"
        case .unsupportedArchive(let version): "The archive has the version \(version), which is later than this library"
        }
    }
}

/// Keys in the `userInfo` of the errors that operations end with; the values are those that programs for AFNetworking know.
///
/// Request and response are whole; descriptions of the errors show them redacted (``/CurlewHTTP/Redaction``), and so is the URL under
/// `NSURLErrorFailingURLErrorKey`.
public enum OperationErrorKey {
    /// The `URLRequest` of the operation that failed.
    public static let request = "com.alamofire.serialization.request.error.response"
    /// The `HTTPURLResponse` that was refused.
    public static let response = "com.alamofire.serialization.response.error.response"
    /// The body of the response that was refused, as `Data`.
    public static let data = "com.alamofire.serialization.response.error.data"
}

extension Error {
    /// The error as an operation ends with it: an `URLError` where Foundation has a code for it, with the URL that failed.
    func asOperationError(of request: URLRequest) -> any Error {
        guard let error = self as? CurlewError else { return self }
        var code = error.urlError?.code
        // What its policy refuses, the operation refuses itself: as if it had cancelled the challenge.
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

    /// The same with the request under its key.
    func adding(_ request: URLRequest) -> URLError {
        URLError(code, userInfo: userInfo.merging([OperationErrorKey.request: request.shownInErrors]) { _, new in new })
    }
}
