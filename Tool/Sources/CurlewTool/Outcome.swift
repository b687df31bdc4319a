// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewDownloads
import CurlewEvents
import CurlewWebSocket

/// Why a file can't be used.
struct FileFailure: Error {
    let path: String
    /// The system's error code.
    let code: Int32
}

/// The outcome of the tool's work, with its message.
struct Outcome: Equatable {
    let status: ExitStatus
    /// A line for standard error; `nil` for no message.
    var message: String?

    static let success = Outcome(status: .success)

    init(status: ExitStatus, message: String? = nil) {
        self.status = status
        self.message = message.map(SafeText.escaped)
    }

    /// The same with the reason why the request is not sent again, if there is one.
    func notRetried(_ reason: String?) -> Outcome {
        guard let reason else { return self }
        return Outcome(status: status, message: "\(message ?? "failed"); not retried: \(reason)")
    }

    /// The outcome of a complete response.
    init(_ response: HTTPURLResponse?) {
        guard let response else {
            self.init(status: .other, message: "no response was received")
            return
        }
        let status = ExitStatus(httpStatus: response.statusCode)
        self.init(status: status, message: status == .success ? nil : "the server responded with \(response.statusText)")
    }

    /// The outcome of an error thrown by the library.
    init(_ error: any Error) {
        switch error {
        case let error as CurlewError: self.init(error)
        case let error as WebSocketError: self.init(error)
        case let error as SegmentedDownloadError: self.init(error)
        case let error as EventStreamError: self.init(error)
        case Output.Failure.closed: self = .success
        case Output.Failure.failed(let code):
            self.init(status: .file, message: "can't write to standard output: \(String(cString: strerror(code)))")
        case is Credentials.Interruption: self.init(status: .interrupted)
        case let error as CocoaError: self.init(status: .file, message: Self.describe(error))
        case let error as Replay.Difference: self.init(status: .other, message: error.text)
        case let error as FileFailure:
            let reason = error.code == ELOOP ? "a symbolic link, which is not followed" : String(cString: strerror(error.code))
            self.init(status: .file, message: "\(error.path): \(reason)")
        case let error as CookieStoreError: self.init(status: .file, message: "\(error)")
        case let error as SessionFile.Damage:
            self.init(status: .file, message: "\(error.path): not a session's file; remove it to begin anew")
        case let error as CurlTransfer.Refusal: self.init(status: .transfer, message: error.message)
        case let error as UsageError: self.init(status: .usage, message: error.message)
        case let error as POSIXError: self.init(status: .file, message: String(cString: strerror(error.code.rawValue)))
        default: self.init(status: .other, message: "\(error)")
        }
    }

    private init(_ error: CurlewError) {
        switch error {
        case .transferFailed(let failure): self.init(failure)
        case .redirectFailed(let reason, _): self.init(status: .redirect, message: Self.describe(reason))
        case .responseValidationFailed(.unacceptableStatusCode(let code), _):
            let response = URL(string: "http://localhost").flatMap {
                HTTPURLResponse(url: $0, statusCode: code, httpVersion: nil, headerFields: nil)
            }
            self.init(response)
        case .invalidURL, .parameterEncodingFailed: self.init(status: .usage, message: "can't create the request: its URL is invalid")
        case .urlRequestValidationFailed(let reason, _): self.init(status: .usage, message: Self.describe(reason))
        case .multipartEncodingFailed: self.init(status: .file, message: "\(error)")
        case .responseValidationFailed, .responseSerializationFailed: self.init(status: .transfer, message: "\(error)")
        case .resumeDataInvalid, .cancelled, .sessionInvalidated, .sessionShutDown: self.init(status: .other, message: "\(error)")
        }
    }

    private init(_ error: WebSocketError) {
        switch error {
        case .invalidRequest: self.init(status: .usage, message: "\(error)")
        case .handshakeRejected(let rejection):
            let status = ExitStatus(httpStatus: rejection.response.statusCode)
            self.init(status: status == .success ? .transfer : status, message: "\(error)")
        case .timedOut: self.init(status: .timeout, message: "\(error)")
        case .closed(let closure): self.init(status: .transfer, message: "the server closed the WebSocket with \(closure)")
        default: self.init(status: .transfer, message: "\(error)")
        }
    }

    private init(_ error: SegmentedDownloadError) {
        switch error {
        case .noURL: self.init(status: .usage, message: "\(error)")
        case .inUse: self.init(status: .file, message: "\(error)")
        case .changing, .invalidResponse, .digestMismatch: self.init(status: .transfer, message: "\(error)")
        }
    }

    private init(_ error: EventStreamError) {
        switch error {
        case .rejected(let rejection):
            let status = ExitStatus(httpStatus: rejection.response.statusCode)
            self.init(status: status == .success ? .transfer : status, message: "\(rejection.error)")
        default: self.init(status: .transfer, message: "\(error)")
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
        // CURLE_SSL_CACERT_BADFILE: the file has no valid certificates.
        case .configuration where failure.code == 77: .security
        default: .other
        }
    }

    private static func describe(_ reason: CurlewError.RedirectFailureReason) -> String {
        switch reason {
        case .tooMany(let limit): "more than \(limit) redirects; see --max-redirects"
        case .insecureDowngrade(let url):
            "not following a redirect from https to http: \(RequestURL.shown(url.absoluteString))"
        case .invalidLocation(let location): "invalid redirect location: \(RequestURL.shown(location))"
        case .bodyNotRepeatable: "can't follow the redirect: it repeats the body, which can be read only once"
        }
    }

    private static func describe(_ reason: CurlewError.URLRequestValidationFailureReason) -> String {
        switch reason {
        case .invalidHeader(let name): "the header \(name.quoted) has an invalid name or value"
        case .invalidMethod(let method): "\(method.quoted) is not a valid method"
        case .bodyNotAllowed(let method): "a \(method) request can't have a body"
        case .invalidPort(let port): "the port must be between 1 and 65535, not \(port)"
        case .bodyAlreadyEncoded: "\(reason)"
        case .missingURL, .missingHost, .unsupportedScheme: "the URL has no host, or its scheme is not http or https"
        }
    }

    /// Path and reason; on Linux, Foundation's own description has neither.
    private static func describe(_ error: CocoaError) -> String {
        let path = error.userInfo["NSFilePath"] as? String
        let cause = (error.userInfo["NSUnderlyingError"] as? POSIXError).map { String(cString: strerror($0.code.rawValue)) }
        return [path, cause ?? error.localizedDescription].compactMap { $0 }.joined(separator: ": ")
    }
}
