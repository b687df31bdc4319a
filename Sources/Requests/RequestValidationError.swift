// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// A response was received, but the request rejects it.
public enum RequestValidationError: Error, Sendable, Hashable {
    /// ``BaseRequest/statusCodeValidator()`` returned `false`.
    case invalidStatusCode(Int)
    /// The response does not have the shape of ``BaseRequest/jsonValidator()``.
    case invalidJSONFormat
}

// MARK: - CustomNSError, LocalizedError

extension RequestValidationError: CustomNSError, LocalizedError {
    /// `curlew.request.validation`.
    public static var errorDomain: String { "curlew.request.validation" }

    /// −8 for the status, −9 for the JSON.
    public var errorCode: Int {
        switch self {
        case .invalidStatusCode: -8
        case .invalidJSONFormat: -9
        }
    }

    /// Names the check that rejected the response.
    public var errorDescription: String? {
        switch self {
        case .invalidStatusCode(let status): "The response's status \(status) was rejected by statusCodeValidator()."
        case .invalidJSONFormat: "The response's JSON does not have the shape of jsonValidator()."
        }
    }

    /// The description.
    public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: errorDescription ?? ""] }
}

/// Classifies the errors requests fail with.
public enum RequestErrors {
    /// Whether a request produced the error: in transfer, validation or serialization; `false` for errors thrown by the caller's code.
    public static func isRequestError(_ error: any Error) -> Bool {
        error is any RequestError || error is CurlewError
    }

    /// Whether the error is a cancellation.
    public static func isCancelledError(_ error: any Error) -> Bool {
        if case .cancelled? = error as? CurlewError { return true }
        return error is CancellationError || (error as? URLError)?.code == .cancelled
    }

    /// Whether the network caused the error, so that a later retry may succeed: unknown host, no connection, timeout, untrusted
    /// certificate.
    public static func isConnectionError(_ error: any Error) -> Bool {
        guard let code = (error as? URLError ?? (error as? CurlewError)?.urlError)?.code else { return false }
        return connectionCodes.contains(code)
    }

    private static let connectionCodes: Set<URLError.Code> = [
        .timedOut, .cannotFindHost, .cannotConnectToHost, .networkConnectionLost, .dnsLookupFailed, .notConnectedToInternet,
        .internationalRoamingOff, .callIsActive, .dataNotAllowed, .secureConnectionFailed, .serverCertificateHasBadDate,
        .serverCertificateUntrusted, .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid, .clientCertificateRejected,
        .clientCertificateRequired, .resourceUnavailable, .badServerResponse, .httpTooManyRedirects,
        .redirectToNonExistentLocation, .cannotLoadFromNetwork,
    ]
}

/// The errors that this module produces have one of these types.
protocol RequestError: Error {}
extension RequestValidationError: RequestError {}
