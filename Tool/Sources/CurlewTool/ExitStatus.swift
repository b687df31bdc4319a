// SPDX-License-Identifier: Apache-2.0

/// The tool's exit status, with a number for each outcome that scripts may want to distinguish; `Outcome` decides which one an error has.
enum ExitStatus: Int32, CaseIterable {
    case success = 0
    case other = 1
    case usage = 2
    case redirect = 3
    case clientError = 4
    case serverError = 5
    case connection = 6
    case security = 7
    case timeout = 8
    case transfer = 9
    case file = 10
    case interrupted = 130
    case terminated = 143

    /// The outcome of a response with an HTTP status.
    init(httpStatus: Int) {
        switch httpStatus {
        case 200..<300, 304: self = .success
        case 300..<400: self = .redirect
        case 400..<500: self = .clientError
        default: self = .serverError
        }
    }

    /// The description for `--help`.
    var summary: String {
        switch self {
        case .success: "status 2xx or 304; also if the reader of the output has closed it"
        case .other: "anything else; also if --filter selects nothing, or what --replay compares differs"
        case .usage: "invalid usage; nothing was sent"
        case .redirect: "redirect not followed: status 3xx, too many redirects, or from https to http"
        case .clientError: "status 4xx"
        case .serverError: "status 5xx"
        case .connection: "connection failed: name not resolved, host or proxy unreachable"
        case .security: "TLS failed: certificate not trusted, handshake failed"
        case .timeout: "timed out"
        case .transfer: "transfer failed: connection lost, invalid HTTP, body can't be decoded"
        case .file: "a file or standard output can't be read or written"
        case .interrupted: "interrupted (SIGINT)"
        case .terminated: "terminated (SIGTERM)"
        }
    }
}
