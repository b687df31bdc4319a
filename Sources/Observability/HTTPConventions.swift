// SPDX-License-Identifier: Apache-2.0
#if Observability
import CurlewHTTP
import CurlewTransport

/// What OpenTelemetry's conventions for HTTP clients say about the values of attributes.
enum HTTPConventions {
    /// The methods that the conventions know: those of RFC 9110, `PATCH` (RFC 5789) and `QUERY`.
    static let knownMethods: Set<HTTPMethod> = [.connect, .delete, .get, .head, .options, .patch, .post, .put, .trace, .query]

    /// The value of `http.request.method`: `_OTHER` for an unknown method, of which programs may make up any number.
    static func method(_ method: HTTPMethod) -> String {
        isKnown(method) ? method.rawValue : "_OTHER"
    }

    static func isKnown(_ method: HTTPMethod) -> Bool {
        // The most frequent ones without a hash.
        method == .get || method == .post || knownMethods.contains(method)
    }

    /// The name of a span: the method, and what the request is called. `HTTP` stands for an unknown method.
    static func spanName(_ method: HTTPMethod, _ name: String?) -> String {
        let method = isKnown(method) ? method.rawValue : "HTTP"
        guard let name else { return method }
        // Names often begin with the method.
        return name.hasBytePrefix(method + " ") ? name : "\(method) \(name)"
    }

    /// The path template in a request's name: what follows the method, if there is one.
    static func template(_ method: HTTPMethod, _ name: String) -> String {
        name.hasBytePrefix(method.rawValue + " ") ? String(name.dropFirstScalars(method.rawValue.utf8.count + 1)) : name
    }

    /// The value of `network.protocol.version`.
    static func version(_ version: TransferMetrics.HTTPVersion) -> String {
        switch version {
        case .http1_0: "1.0"
        case .http1_1: "1.1"
        case .http2: "2"
        case .http3: "3"
        }
    }

    /// The value of `error.type`: the status from 400 up, otherwise the error's kind; `nil` for a success.
    static func errorType(_ completion: ExchangeCompletion) -> String? {
        if let status = completion.head?.statusCode, status >= 400 { return String(status) }
        return completion.error?.kindName
    }

    /// The value of `url.full`: user name and password are `REDACTED:REDACTED`, the values of secret items `REDACTED`.
    static func url(_ url: String) -> String {
        var redacted = url.redactedURL.replacingScalars(Redaction.placeholder, with: "REDACTED")
        if let scheme = url.firstScalarRange(of: "://"),
            url[scheme.upperBound...].prefixScalars(while: { !"/?#".unicodeScalars.contains($0) }).unicodeScalars.contains("@")
        {
            redacted.insert(
                contentsOf: "REDACTED:REDACTED@", at: redacted.index(redacted.startIndex, offsetBy: url[..<scheme.upperBound].count))
        }
        return redacted
    }
}
#endif
