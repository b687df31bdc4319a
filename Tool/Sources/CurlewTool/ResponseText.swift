// SPDX-License-Identifier: Apache-2.0
import Curlew

extension HTTPURLResponse {
    /// The status with its standard reason phrase; the library doesn't pass on the server's.
    var statusText: String {
        Self.reasons[statusCode].map { "\(statusCode) \($0)" } ?? "\(statusCode)"
    }

    private static var reasons: [Int: String] {
        [
            200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 206: "Partial Content", 301: "Moved Permanently", 302: "Found",
            303: "See Other", 304: "Not Modified", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request",
            401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable",
            407: "Proxy Authentication Required", 408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required",
            412: "Precondition Failed", 413: "Content Too Large", 414: "URI Too Long", 415: "Unsupported Media Type",
            416: "Range Not Satisfiable", 421: "Misdirected Request", 422: "Unprocessable Content", 426: "Upgrade Required",
            429: "Too Many Requests", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway",
            503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported",
        ]
    }
}
