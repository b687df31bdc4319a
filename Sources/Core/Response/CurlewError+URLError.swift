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
        case .transferFailed(let failure): failure.urlErrorCode
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

extension TransferFailure {
    /// Where Foundation has several codes for a kind, the system's error and libcurl's message decide, as far as they say it.
    fileprivate var urlErrorCode: URLError.Code {
        switch kind {
        case .nameResolution: isAboutNameServer ? .dnsLookupFailed : .cannotFindHost
        case .connect where systemError == ENETUNREACH || systemError == ENETDOWN: .notConnectedToInternet
        case .serverCertificate: serverCertificateCode
        case .clientCertificate: isAboutRejection ? .clientCertificateRejected : .clientCertificateRequired
        // A coding that is not known is not decoded, and fails nothing; what has too many can't be decoded.
        case .decoding: message.containsScalars(of: "content codings") ? .cannotDecodeContentData : .cannotDecodeRawData
        default: kind.urlErrorCode
        }
    }

    /// Whether the server of names has failed, and has not answered that the name is unknown.
    private var isAboutNameServer: Bool {
        ["DNS server", "Timeout while", "Temporary failure", "DoH"].contains { message.containsScalars(of: $0) }
    }

    /// By OpenSSL's words for the results of its verification.
    private var serverCertificateCode: URLError.Code {
        if message.containsScalars(of: "has expired") { return .serverCertificateHasBadDate }
        if message.containsScalars(of: "not yet valid") { return .serverCertificateNotYetValid }
        // The host's own certificate; one that the root of a chain has is signed by a root, which is not trusted.
        let isSelfSigned = ["self-signed certificate", "self signed certificate"].contains { message.containsScalars(of: $0) }
        let hasRoot = message.containsScalars(of: "in certificate chain")
        return isSelfSigned && !hasRoot ? .serverCertificateHasUnknownRoot : .serverCertificateUntrusted
    }

    /// Whether the host has rejected the certificate that it was given (RFC 8446, section 6.2), in OpenSSL's words.
    private var isAboutRejection: Bool {
        message.containsScalars(of: " alert ") && !message.containsScalars(of: "certificate required")
    }
}

extension TransferFailure.Kind {
    fileprivate var urlErrorCode: URLError.Code {
        switch self {
        case .invalidURL: .badURL
        case .unsupportedScheme: .unsupportedURL
        case .connect, .proxy, .addressNotAllowed: .cannotConnectToHost
        case .secureConnection: .secureConnectionFailed
        case .connectTimeout, .firstByteTimeout, .idleTimeout, .totalTimeout, .queueTimeout, .deadline: .timedOut
        case .connectionLost: .networkConnectionLost
        case .protocolViolation: .badServerResponse
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
