// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// An answer came, and the request does not take it.
public enum RequestValidationError: Error, Sendable, Hashable {
    /// ``BaseRequest/statusCodeValidator()`` said no.
    case invalidStatusCode(Int)
    /// The answer has not the shape of ``BaseRequest/jsonValidator()``.
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

    /// What is wrong, in a sentence.
    public var errorDescription: String? {
        switch self {
        case .invalidStatusCode(let status): "Invalid status code (\(status))"
        case .invalidJSONFormat: "Invalid JSON format"
        }
    }

    /// The description.
    public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: errorDescription ?? ""] }
}

/// What kind of error it is that a request has failed with.
public enum RequestErrors {
    /// Whether a request made the error: on the way, by a check, or by a serializer; not one that code of the user threw.
    public static func isRequestError(_ error: any Error) -> Bool {
        error is any RequestError || error is CurlewError
    }

    /// Whether something was cancelled.
    public static func isCancelledError(_ error: any Error) -> Bool {
        if case .cancelled? = error as? CurlewError { return true }
        return error is CancellationError || (error as? URLError)?.code == .cancelled
    }

    /// Whether the network was at fault, so that trying again later may help: no host, no connection, no time, no trust.
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

/// The errors that this module makes are of one of these types.
protocol RequestError: Error {}
extension RequestValidationError: RequestError {}
