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
    /// Characters that are invalid where they stand in a URL (RFC 3986), such as `[` and `]` in a query, are percent-encoded in path, query
    /// and fragment: the space, `"<>[]^{|}`, the backtick, and `#` in a fragment. Escapes stay as they are. A string is rejected if it has
    /// such a character before its path, or has no host, or contains a control character, one beyond ASCII, a backslash, or a percent sign
    /// that begins no escape.
    ///
    /// - Throws: ``CurlewError/invalidURL(url:in:)``.
    public func asURL() throws -> URL {
        if let url = URL(string: self, encodingInvalidCharacters: false) { return url }
        guard isUnambiguousURL, let url = URL(string: encodingInvalidCharacters, encodingInvalidCharacters: false) else {
            throw CurlewError.invalidURL(url: self)
        }
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
