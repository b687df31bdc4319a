// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

extension CurlewError {
    /// The error as a `URLError`; `nil` for errors without a counterpart in Foundation: encoding, validation and serialization.
    ///
    /// A ``CurlewError`` itself bridges to `NSError` with Foundation's domain and code.
    public var urlError: URLError? {
        guard let code = urlErrorCode else { return nil }
        return URLError(code, userInfo: userInfo.merging([NSUnderlyingErrorKey: self]) { $1 })
    }

    private var userInfo: [String: Any] {
        var info: [String: Any] = [NSLocalizedDescriptionKey: errorDescription ?? ""]
        if let url = URL(string: failingURL ?? "") { info[NSURLErrorFailingURLErrorKey] = url }
        return info
    }

    private var failingURL: String? {
        if case .transferFailed(let failure) = self { failure.url } else { request?.url }
    }

    private var urlErrorCode: URLError.Code? {
        switch self {
        case .invalidURL: .badURL
        case .urlRequestValidationFailed(let reason, _): reason.urlErrorCode
        case .transferFailed(let failure): failure.kind.urlErrorCode
        case .redirectFailed(let reason, _): reason.urlErrorCode
        case .cancelled, .sessionInvalidated, .sessionShutDown: .cancelled
        case .parameterEncodingFailed, .multipartEncodingFailed, .resumeDataInvalid, .responseValidationFailed,
            .responseSerializationFailed:
            nil
        }
    }
}

extension CurlewError.URLRequestValidationFailureReason {
    fileprivate var urlErrorCode: URLError.Code {
        if case .unsupportedScheme = self { .unsupportedURL } else { .badURL }
    }
}

extension CurlewError.RedirectFailureReason {
    fileprivate var urlErrorCode: URLError.Code {
        switch self {
        case .tooMany: .httpTooManyRedirects
        case .insecureDowngrade: .appTransportSecurityRequiresSecureConnection
        case .invalidLocation: .redirectToNonExistentLocation
        case .bodyNotRepeatable: .requestBodyStreamExhausted
        }
    }
}

extension TransferFailure.Kind {
    fileprivate var urlErrorCode: URLError.Code {
        switch self {
        case .invalidURL: .badURL
        case .unsupportedScheme: .unsupportedURL
        case .nameResolution: .cannotFindHost
        case .connect, .proxy, .addressNotAllowed: .cannotConnectToHost
        case .secureConnection: .secureConnectionFailed
        case .serverCertificate: .serverCertificateUntrusted
        case .clientCertificate: .clientCertificateRequired
        case .connectTimeout, .firstByteTimeout, .idleTimeout, .totalTimeout, .queueTimeout, .deadline: .timedOut
        case .connectionLost: .networkConnectionLost
        case .protocolViolation: .badServerResponse
        case .decoding: .cannotDecodeContentData
        case .tooLarge: .dataLengthExceedsMaximum
        case .requestBody: .requestBodyStreamExhausted
        case .notInCache: .resourceUnavailable
        case .cellularNotAllowed: .dataNotAllowed
        default: .unknown
        }
    }
}

// MARK: - CustomNSError

extension CurlewError: CustomNSError {
    /// `NSURLErrorDomain`, also for errors without a code of Foundation, because a type has one domain.
    public static var errorDomain: String { NSURLErrorDomain }

    /// The code of ``urlError``; −1 (`NSURLErrorUnknown`) if that is `nil`.
    public var errorCode: Int { urlErrorCode?.rawValue ?? NSURLErrorUnknown }

    /// The description and, if it is known, the URL.
    public var errorUserInfo: [String: Any] { userInfo }
}
