// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension HTTPHeaders {
    /// Returns the fields of both; fields of `rhs` replace those of `lhs` of the same name, ignoring case.
    ///
    /// Needs `import CurlewServices`.
    public static func + (lhs: HTTPHeaders, rhs: HTTPHeaders) -> HTTPHeaders {
        var sum = lhs
        sum.merge(rhs)
        return sum
    }
}

extension HTTPHeader {
    /// Makes an `X-Api-Key` field, by which many servers identify their clients. Like `Authorization`, it is redacted and does not follow a
    /// redirect to another origin, unless it is listed in ``RedirectPolicy/forwardedHeaders``.
    ///
    /// Needs `import CurlewServices`.
    public static func apiKey(_ value: String) -> HTTPHeader { HTTPHeader(name: "X-Api-Key", value: value) }
    /// Makes a `Content-Type` field (RFC 9110, section 8.3) of a media type.
    ///
    /// Needs `import CurlewServices`.
    public static func contentType(_ type: MIMEType) -> HTTPHeader { contentType(type.rawValue) }
}

/// Combines header fields from parts, one per line.
@resultBuilder
public enum HTTPHeadersBuilder {
    /// Returns the fields.
    public static func buildExpression(_ headers: HTTPHeaders) -> HTTPHeaders { headers }
    /// Returns the field.
    public static func buildExpression(_ header: HTTPHeader) -> HTTPHeaders { [header] }
    /// Returns the fields of all parts, keeping repeated names.
    public static func buildBlock(_ parts: HTTPHeaders...) -> HTTPHeaders { buildArray(parts) }
    /// Returns the part, or no fields.
    public static func buildOptional(_ part: HTTPHeaders?) -> HTTPHeaders { part ?? [:] }
    /// Returns the part of the first branch.
    public static func buildEither(first part: HTTPHeaders) -> HTTPHeaders { part }
    /// Returns the part of the second branch.
    public static func buildEither(second part: HTTPHeaders) -> HTTPHeaders { part }
    /// Returns the fields of all iterations.
    public static func buildArray(_ parts: [HTTPHeaders]) -> HTTPHeaders { HTTPHeaders(parts.flatMap { Array($0) }) }
}
