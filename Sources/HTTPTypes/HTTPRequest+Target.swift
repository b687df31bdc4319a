// SPDX-License-Identifier: Apache-2.0
#if HTTPTypes
import CurlewEncoding
import CurlewHTTP

extension HTTPRequest {
    /// Whether the request is about the server as a whole (RFC 9110, section 9.3.7; RFC 9113, section 8.3.1).
    var isServerWide: Bool { method == .options && path == "*" }

    /// Returns the URL of the request: that of its scheme, authority and path (RFC 9113, section 8.3.1), or, of a request without scheme and
    /// authority, its path appended to the base URL's. For a request about the server as a whole, the URL has no path.
    ///
    /// - Throws: a ``CurlewError`` that names what is missing or invalid.
    func target(relativeTo baseURL: URL?) throws(CurlewError) -> String {
        // Without a path, or with another meaning of it.
        guard method != .connect, extendedConnectProtocol == nil else {
            throw .invalidURL(url: "\(method) \(authority ?? "")")
        }
        let path = isServerWide ? "" : try validPath()
        if scheme == nil, authority == nil, let baseURL { return try baseURL.appending(target: path, toPath: !isServerWide) }
        let url = "\(scheme.map { $0 + ":" } ?? "")//\(authority ?? "")\(path)"
        guard let scheme, ["http", "https"].contains(scheme.lowercased()) else {
            guard let parsed = URL(string: url) else { throw .invalidURL(url: url) }
            throw .urlRequestValidationFailed(reason: .unsupportedScheme(url: parsed))
        }
        guard let authority, !authority.isEmpty else {
            guard let parsed = URL(string: url) else { throw .invalidURL(url: url) }
            throw .urlRequestValidationFailed(reason: .missingHost(url: parsed))
        }
        // What ends an authority would move the rest of it into the path, or make the beginning of it a user name.
        guard !authority.unicodeScalars.contains(where: { "/?#@\\".unicodeScalars.contains($0) }) else { throw .invalidURL(url: url) }
        return url
    }

    /// The path with its query, which begins with a slash: `/` for none.
    private func validPath() throws(CurlewError) -> String {
        guard let path, !path.isEmpty else { return "/" }
        // A fragment is not sent, and "*" is for OPTIONS only (RFC 9112, section 3.2.4).
        guard path.hasBytePrefix("/"), !path.unicodeScalars.contains("#") else { throw .invalidURL(url: path) }
        return path
    }
}

extension URL {
    /// The URL with a path and query appended to its own path, which may be dropped as well; its own query and fragment are dropped.
    fileprivate func appending(target: String, toPath keepsPath: Bool) throws(CurlewError) -> String {
        guard var components = URLComponents(url: self, resolvingAgainstBaseURL: true) else { throw .invalidURL(url: self) }
        components.query = nil
        components.fragment = nil
        if !keepsPath { components.percentEncodedPath = "" }
        guard var base = components.string else { throw .invalidURL(url: self) }
        while base.hasByteSuffix("/"), !components.percentEncodedPath.isEmpty {
            base.removeLast()
            components.percentEncodedPath.removeLast()
        }
        return base + target
    }
}
#endif
