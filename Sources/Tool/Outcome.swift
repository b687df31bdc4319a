// SPDX-License-Identifier: Apache-2.0
import Curlew

/// How the tool's work ended, and what is to be said about it.
struct Outcome: Equatable {
    let status: ExitStatus
    /// A line for standard error; `nil` where there is nothing to say.
    var message: String?

    static let success = Outcome(status: .success)

    init(status: ExitStatus, message: String? = nil) {
        self.status = status
        self.message = message.map(Redaction.escaped)
    }

    /// The outcome of a response that arrived whole.
    init(_ response: HTTPURLResponse?) {
        guard let response else {
            self.init(status: .other, message: "the library gave no response")
            return
        }
        let status = ExitStatus(httpStatus: response.statusCode)
        self.init(status: status, message: status == .success ? nil : "the server answered \(response.statusText)")
    }

    /// The outcome of an error of the library.
    init(_ error: any Error) {
        switch error {
        case let error as CurlewError: self.init(error)
        case Output.Failure.closed: self = .success
        case Output.Failure.failed(let code):
            self.init(status: .file, message: "can't write to standard output: \(String(cString: strerror(code)))")
        case let error as CocoaError: self.init(status: .file, message: Self.describe(error))
        default: self.init(status: .other, message: "\(error)")
        }
    }

    private init(_ error: CurlewError) {
        switch error {
        case .transferFailed(let failure): self.init(failure)
        case .redirectFailed(let reason): self.init(status: .redirect, message: Self.describe(reason))
        case .responseValidationFailed(.unacceptableStatusCode(let code)):
            let response = URL(string: "http://localhost").flatMap {
                HTTPURLResponse(url: $0, statusCode: code, httpVersion: nil, headerFields: nil)
            }
            self.init(response)
        case .invalidURL, .parameterEncodingFailed: self.init(status: .usage, message: "the request can't be made: its URL is not valid")
        case .urlRequestValidationFailed(let reason): self.init(status: .usage, message: Self.describe(reason))
        case .multipartEncodingFailed: self.init(status: .file, message: "\(error)")
        case .responseValidationFailed, .responseSerializationFailed: self.init(status: .transfer, message: "\(error)")
        case .resumeDataInvalid, .cancelled, .sessionInvalidated: self.init(status: .other, message: "\(error)")
        }
    }

    private init(_ failure: TransferFailure) {
        self.init(status: Self.status(of: failure), message: "\(failure.message) (\(RequestURL.shown(failure.url)))")
    }

    private static func status(of failure: TransferFailure) -> ExitStatus {
        switch failure.kind {
        case _ where failure.isTimeout: .timeout
        case .invalidURL, .unsupportedScheme: .usage
        case .nameResolution, .proxy, .connect: .connection
        case .secureConnection, .serverCertificate, .clientCertificate: .security
        case .connectionLost, .protocolViolation, .decoding, .tooLarge: .transfer
        case .requestBody: .file
        // libcurl's code for certificates that are none, CURLE_SSL_CACERT_BADFILE.
        case .configuration where failure.code == 77: .security
        default: .other
        }
    }

    private static func describe(_ reason: CurlewError.RedirectFailureReason) -> String {
        switch reason {
        case .tooMany(let limit): "more than \(limit) redirects"
        case .insecureDowngrade(let url):
            "the redirect leads from https to http, which is not followed: \(RequestURL.shown(url.absoluteString))"
        case .invalidLocation(let location): "the redirect leads nowhere: \(RequestURL.shown(location))"
        case .bodyNotRepeatable: "the redirect asks for the body again, which came from standard input"
        }
    }

    private static func describe(_ reason: CurlewError.URLRequestValidationFailureReason) -> String {
        switch reason {
        case .invalidHeader(let name): "the header \(name.quoted) has a name or a value that can't be sent"
        case .invalidMethod(let method): "\(method.quoted) is not a method"
        case .bodyNotAllowed(let method): "a \(method) request has no body"
        case .invalidPort(let port): "the port is not between 1 and 65535: \(port)"
        case .bodyAlreadyEncoded: "\(reason)"
        case .missingURL, .missingHost, .unsupportedScheme: "the URL has no host, or is neither http nor https"
        }
    }

    /// Path and reason; Foundation's own words say neither on Linux.
    private static func describe(_ error: CocoaError) -> String {
        let path = error.userInfo["NSFilePath"] as? String
        let cause = (error.userInfo["NSUnderlyingError"] as? POSIXError).map { String(cString: strerror($0.code.rawValue)) }
        return [path, cause ?? error.localizedDescription].compactMap { $0 }.joined(separator: ": ")
    }
}
