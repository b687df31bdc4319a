// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

// Foundation's errors print their user info, so requests and responses in it are of these classes, whose descriptions are redacted.

/// The request of a failed operation; equal to the operation's request, and castable to `URLRequest`.
final class ErrorRequest: NSURLRequest, CustomReflectable {
    private let request: URLRequest

    /// `nil` for a request without a URL.
    init?(_ request: URLRequest) {
        guard let url = request.url else { return nil }
        self.request = request
        super.init(url: url, cachePolicy: request.cachePolicy, timeoutInterval: request.timeoutInterval)
    }

    /// Archiving is not supported.
    required init?(coder: NSCoder) { nil }

    override func copy(with zone: NSZone? = nil) -> Any { self }

    override func mutableCopy(with zone: NSZone? = nil) -> Any { (request as NSURLRequest).mutableCopy() }

    override var description: String { "\(request.httpMethod ?? "GET") \((request.url?.absoluteString ?? "").redactedURL)" }
    override var debugDescription: String { description }
    var customMirror: Mirror { .redacted(self) }
}

/// A rejected response.
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
    /// The request as it is put into an error's user info.
    var shownInErrors: Any { ErrorRequest(self).map { $0 as Any } ?? self }
}

extension URL {
    /// The redacted URL; `nil` if redaction leaves no valid URL.
    var redacted: URL? { URL(string: Redaction.current.url(absoluteString)) }
}
