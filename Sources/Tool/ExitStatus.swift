// SPDX-License-Identifier: Apache-2.0

/// What the tool ends with: one number for each outcome that a script may want to tell apart.
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

    /// The outcome that a response's status stands for.
    init(httpStatus: Int) {
        switch httpStatus {
        case 200..<300, 304: self = .success
        case 300..<400: self = .redirect
        case 400..<500: self = .clientError
        default: self = .serverError
        }
    }

    /// The outcome in words, for `--help`.
    var summary: String {
        switch self {
        case .success: "a response with a status of 2xx, or 304; also when the reader of the output has closed it"
        case .other: "anything else"
        case .usage: "wrong usage: nothing was sent"
        case .redirect: "a redirect that was not followed: status 3xx, too many, or from https to http"
        case .clientError: "status 4xx"
        case .serverError: "status 5xx"
        case .connection: "no connection: name not resolved, host or proxy not reached"
        case .security: "no TLS: certificate not trusted, handshake failed"
        case .timeout: "a timeout"
        case .transfer: "a broken transfer: connection lost, not HTTP, body not decoded"
        case .file: "a file, or standard output, that can't be read or written"
        case .interrupted: "interrupted (SIGINT)"
        case .terminated: "terminated (SIGTERM)"
        }
    }
}
