// SPDX-License-Identifier: Apache-2.0

/// A value that can be converted to a URL.
@preconcurrency public protocol URLConvertible: Sendable {
    /// Converts the value to a URL.
    ///
    /// - Throws: ``CurlewError/invalidURL(url:in:)`` if it can't be converted.
    func asURL() throws -> URL
}

extension String: URLConvertible {
    /// Parses the string as a URL.
    ///
    /// Strict (RFC 3986): a string with characters that a URL can't contain is rejected, not repaired. Percent-encode them first.
    ///
    /// - Throws: ``CurlewError/invalidURL(url:in:)``.
    public func asURL() throws -> URL {
        guard let url = URL(string: self, encodingInvalidCharacters: false) else { throw CurlewError.invalidURL(url: self) }
        return url
    }
}

extension URL: URLConvertible {
    /// Returns the URL itself.
    public func asURL() throws -> URL { self }
}

extension URLComponents: URLConvertible {
    /// Returns the URL of these components.
    ///
    /// - Throws: ``CurlewError/invalidURL(url:in:)`` if they don't form a URL.
    public func asURL() throws -> URL {
        guard let url else { throw CurlewError.invalidURL(url: self) }
        return url
    }
}
