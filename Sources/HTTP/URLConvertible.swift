// SPDX-License-Identifier: Apache-2.0

/// A value that stands for a URL.
@preconcurrency public protocol URLConvertible: Sendable {
    /// The URL.
    ///
    /// - Throws: ``CurlewError/invalidURL(url:)`` when the value stands for none.
    func asURL() throws -> URL
}

extension String: URLConvertible {
    /// The string as a URL.
    ///
    /// Strict (RFC 3986): a string with characters that a URL can't hold is refused, not repaired. Percent-encode them first.
    ///
    /// - Throws: ``CurlewError/invalidURL(url:)``.
    public func asURL() throws -> URL {
        guard let url = URL(string: self, encodingInvalidCharacters: false) else { throw CurlewError.invalidURL(url: self) }
        return url
    }
}

extension URL: URLConvertible {
    /// The URL itself.
    public func asURL() throws -> URL { self }
}

extension URLComponents: URLConvertible {
    /// The URL of these components.
    ///
    /// - Throws: ``CurlewError/invalidURL(url:)`` when they give none.
    public func asURL() throws -> URL {
        guard let url else { throw CurlewError.invalidURL(url: self) }
        return url
    }
}
