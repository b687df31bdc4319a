// SPDX-License-Identifier: Apache-2.0

/// A request method (RFC 9110, section 9).
///
/// An open set: standard methods are static members, any other token can be used with ``init(rawValue:)``. Methods are case-sensitive.
public struct HTTPMethod: RawRepresentable, Hashable, Sendable {
    /// The method as in the request line.
    public let rawValue: String

    /// Creates a method from a token (RFC 9110, section 5.6.2); `nil` if the string is not one.
    public init?(rawValue: String) {
        guard HTTPToken.isToken(rawValue) else { return nil }
        self.rawValue = rawValue
    }

    /// Creates a method from a string that is known to be a token.
    package init(known: String) {
        rawValue = known
    }

    /// `OPTIONS` (RFC 9110, section 9.3.7).
    public static let options = HTTPMethod(known: "OPTIONS")
    /// `GET` (RFC 9110, section 9.3.1).
    public static let get = HTTPMethod(known: "GET")
    /// `HEAD` (RFC 9110, section 9.3.2).
    public static let head = HTTPMethod(known: "HEAD")
    /// `POST` (RFC 9110, section 9.3.3).
    public static let post = HTTPMethod(known: "POST")
    /// `PUT` (RFC 9110, section 9.3.4).
    public static let put = HTTPMethod(known: "PUT")
    /// `PATCH` (RFC 5789).
    public static let patch = HTTPMethod(known: "PATCH")
    /// `DELETE` (RFC 9110, section 9.3.5).
    public static let delete = HTTPMethod(known: "DELETE")
    /// `TRACE` (RFC 9110, section 9.3.8).
    public static let trace = HTTPMethod(known: "TRACE")
    /// `CONNECT` (RFC 9110, section 9.3.6).
    public static let connect = HTTPMethod(known: "CONNECT")
    /// `QUERY` (draft-ietf-httpbis-safe-method-w-body).
    public static let query = HTTPMethod(known: "QUERY")

    /// Whether a repeated request has the same effect as a single one (RFC 9110, section 9.2.2).
    ///
    /// Only such requests may be repeated when it is unknown whether the first one was received.
    public var isIdempotent: Bool {
        switch self {
        case .get, .head, .options, .trace, .put, .delete, .query: true
        default: false
        }
    }
}

// MARK: - CustomStringConvertible

extension HTTPMethod: CustomStringConvertible {
    /// The method as in the request line.
    public var description: String { rawValue }
}

// MARK: - Tokens

/// The grammar of names in HTTP.
package enum HTTPToken {
    /// Whether `string` is a token of RFC 9110, section 5.6.2.
    package static func isToken(_ string: String) -> Bool {
        // Scanning contiguous bytes is several times as fast.
        !string.isEmpty
            && string.utf8.withContiguousStorageIfAvailable { $0.allSatisfy(isTokenCharacter) } ?? string.utf8.allSatisfy(isTokenCharacter)
    }

    package static func isTokenCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"), UInt8(ascii: "'"),
            UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "^"), UInt8(ascii: "_"),
            UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            true
        default:
            false
        }
    }
}
