// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension HTTPHeaders {
    /// The fields of both; where a name is in both, without regard to case, only `rhs` counts.
    public static func + (lhs: HTTPHeaders, rhs: HTTPHeaders) -> HTTPHeaders {
        var sum = lhs
        sum.merge(rhs)
        return sum
    }
}

extension HTTPHeader {
    /// `X-Api-Key`, by which many servers tell their clients apart. Unlike `Authorization` it follows a redirect to another origin, unless
    /// ``RedirectPolicy/sensitiveHeaders`` names it.
    public static func apiKey(_ value: String) -> HTTPHeader { HTTPHeader(name: "X-Api-Key", value: value) }
    /// `Content-Type` (RFC 9110, section 8.3) of a type with a name.
    public static func contentType(_ type: MIMEType) -> HTTPHeader { contentType(type.rawValue) }
}

/// Puts header fields together of parts, one a line.
@resultBuilder
public enum HTTPHeadersBuilder {
    /// Fields, or a literal of them.
    public static func buildExpression(_ headers: HTTPHeaders) -> HTTPHeaders { headers }
    /// A field.
    public static func buildExpression(_ header: HTTPHeader) -> HTTPHeaders { [header] }
    /// The fields of all parts, repeated names kept.
    public static func buildBlock(_ parts: HTTPHeaders...) -> HTTPHeaders { buildArray(parts) }
    /// The part, or nothing.
    public static func buildOptional(_ part: HTTPHeaders?) -> HTTPHeaders { part ?? [:] }
    /// The part of a branch.
    public static func buildEither(first part: HTTPHeaders) -> HTTPHeaders { part }
    /// The part of a branch.
    public static func buildEither(second part: HTTPHeaders) -> HTTPHeaders { part }
    /// The parts of a loop.
    public static func buildArray(_ parts: [HTTPHeaders]) -> HTTPHeaders { HTTPHeaders(parts.flatMap { Array($0) }) }
}
