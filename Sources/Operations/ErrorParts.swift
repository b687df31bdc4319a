// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

// Foundation's errors print their user info: requests and responses in it are of these classes, whose descriptions show no secrets.

/// The request of an operation that failed; equal to the operation's, and cast to `URLRequest` like any.
final class ErrorRequest: NSURLRequest, CustomReflectable {
    private let request: URLRequest

    /// `nil` for a request without a URL.
    init?(_ request: URLRequest) {
        guard let url = request.url else { return nil }
        self.request = request
        super.init(url: url, cachePolicy: request.cachePolicy, timeoutInterval: request.timeoutInterval)
    }

    /// There is no archive of one.
    required init?(coder: NSCoder) { nil }

    override func copy(with zone: NSZone? = nil) -> Any { self }

    override func mutableCopy(with zone: NSZone? = nil) -> Any { (request as NSURLRequest).mutableCopy() }

    override var description: String { "\(request.httpMethod ?? "GET") \((request.url?.absoluteString ?? "").redactedURL)" }
    override var debugDescription: String { description }
    var customMirror: Mirror { .redacted(self) }
}

/// A response that was refused.
final class ErrorResponse: HTTPURLResponse, CustomReflectable, @unchecked Sendable {  // immutable
    convenience init?(_ response: HTTPURLResponse) {
        guard let url = response.url else { return nil }
        let fields = response.allHeaderFields.compactMap { name, value in (name as? String).map { ($0, "\(value)") } }
        self.init(
            url: url, statusCode: response.statusCode, httpVersion: nil, headerFields: Dictionary(fields) { first, _ in first })
    }

    override var description: String { "\(statusCode) \((url?.absoluteString ?? "").redactedURL)" }
    override var debugDescription: String { description }
    var customMirror: Mirror { .redacted(self) }
}

extension URLRequest {
    /// The request as it goes into an error.
    var shownInErrors: Any { ErrorRequest(self).map { $0 as Any } ?? self }
}

extension URL {
    /// The URL as it may be shown; `nil` where that is no URL.
    var redacted: URL? { URL(string: Redaction.current.url(absoluteString)) }
}
