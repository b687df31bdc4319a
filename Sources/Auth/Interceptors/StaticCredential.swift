// SPDX-License-Identifier: Apache-2.0
public import CurlewCore
public import CurlewEncoding
public import CurlewHTTP

/// Adds a credential that does not change to requests: a token, a key, a user name with a password, or those of a netrc file.
///
/// ```swift
/// manager.interceptor = .bearer(token, for: ["https://api.example.org"])
/// ```
///
/// A request that has a field or an item of that name keeps its own. Redirects to another origin are sent without the credential. No
/// description shows it.
public struct StaticCredential: HeaderAdapter, RequestInterceptor {
    fileprivate enum Kind: Sendable {
        case field(HTTPHeader)
        case basic(user: String, password: String)
        case item(name: String, value: String)
        case netrc(Netrc)
    }

    private let kind: Kind
    /// `nil` for all.
    private let origins: Set<HTTPOrigin>?

    fileprivate init(_ kind: Kind, for origins: [String]?) {
        self.kind = kind
        self.origins = origins.map { Set($0.compactMap { HTTPOrigin(url: $0) }) }
    }

    /// `self`, but for a query item `nil`: the URL changes.
    public var headerAdapter: (any HeaderAdapter)? { if case .item = kind { nil } else { self } }

    /// `false`: the same credential would be refused again.
    public var mayRetry: Bool { false }

    /// Adds the field, or the item, if the URL has one of the origins.
    ///
    /// - Throws: ``CurlewError/URLRequestValidationFailureReason/invalidHeader(name:)`` for a user name with a colon.
    public func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        guard let url = urlRequest.url?.absoluteString, isMeant(url) else { return urlRequest }
        var urlRequest = urlRequest
        guard case .item(let name, let value) = kind else {
            var headers = HTTPHeaders(urlRequest.allHTTPHeaderFields ?? [:])
            try adapt(&headers, of: HTTPMethod(rawValue: urlRequest.httpMethod ?? "") ?? .get, to: url)
            // Foundation on Linux drops a value with a line break; the URL has none.
            for field in headers where urlRequest.value(forHTTPHeaderField: field.name) == nil {
                guard !field.value.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else {
                    throw CurlewError.urlRequestValidationFailed(reason: .invalidHeader(name: field.name))
                }
                urlRequest.setValue(field.value, forHTTPHeaderField: field.name)
            }
            return urlRequest
        }
        let (place, fragment) = (url.prefixScalars { $0 != "#" }, url.dropScalars { $0 != "#" })
        let (base, query) = (place.prefixScalars { $0 != "?" }, place.dropScalars { $0 != "?" })
        let names = query.dropFirstScalars(query.isEmpty ? 0 : 1).splitScalars(separator: "&").map { $0.prefixScalars { $0 != "=" } }
        guard !names.contains(where: { String($0).removingPercentEncoding?.hasSameBytes(as: name) == true }) else { return urlRequest }
        let item = "\(PercentEncoding.escape(name))=\(PercentEncoding.escape(value))"
        urlRequest.url = URL(string: "\(base)\(query.isEmpty ? "?" : "\(query)&")\(item)\(fragment)") ?? urlRequest.url
        return urlRequest
    }

    /// Adds the field, if the URL has one of the origins.
    ///
    /// - Throws: ``CurlewError/URLRequestValidationFailureReason/invalidHeader(name:)`` for a user name with a colon.
    public func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) throws {
        guard isMeant(url), let field = try field(for: url), headers.value(for: field.name) == nil else { return }
        headers.append(field)
    }

    private func isMeant(_ url: String) -> Bool {
        guard let origins else { return true }
        return HTTPOrigin(url: url).map { origins.contains($0) } ?? false
    }

    private func field(for url: String) throws -> HTTPHeader? {
        switch kind {
        case .field(let field): return field
        case .basic(let user, let password): return try Self.basic(user, password)
        case .item: return nil
        case .netrc(let netrc):
            guard let host = HTTPOrigin(url: url)?.host, let found = netrc.credential(for: host, user: nil) else { return nil }
            return try Self.basic(found.user, found.password)
        }
    }

    private static func basic(_ user: String, _ password: String) throws -> HTTPHeader {
        // RFC 7617, section 2: a colon ends the user name.
        guard !user.utf8.contains(UInt8(ascii: ":")) else {
            throw CurlewError.urlRequestValidationFailed(reason: .invalidHeader(name: "Authorization"))
        }
        return .authorization(username: user, password: password)
    }
}

// MARK: - Interceptors in one line

extension RequestInterceptor where Self == StaticCredential {
    /// Adds a token (RFC 6750).
    ///
    /// - Parameters:
    ///   - token: the token.
    ///   - origins: URLs of the origins to which it is sent; `nil`, the default, for all requests.
    public static func bearer(_ token: String, for origins: [String]? = nil) -> StaticCredential {
        StaticCredential(.field(.authorization(bearerToken: token)), for: origins)
    }

    /// Adds a user name and a password in the Basic scheme (RFC 7617), without waiting for a challenge.
    ///
    /// - Parameters:
    ///   - user: the user's name, without a colon.
    ///   - password: the password.
    ///   - origins: URLs of the origins to which they are sent; `nil`, the default, for all requests.
    public static func basic(user: String, password: String, for origins: [String]? = nil) -> StaticCredential {
        StaticCredential(.basic(user: user, password: password), for: origins)
    }

    /// Adds a key as a header field, whose value is redacted from then on.
    ///
    /// - Parameters:
    ///   - key: the key.
    ///   - name: the field's name.
    ///   - origins: URLs of the origins to which it is sent; `nil`, the default, for all requests.
    public static func apiKey(_ key: String, header name: String = "X-API-Key", for origins: [String]? = nil) -> StaticCredential {
        Redaction(headers: [name]).register()
        return StaticCredential(.field(HTTPHeader(name: name, value: key)), for: origins)
    }

    /// Adds a key as an item of the query, whose value is redacted from then on. For services that have no header field for it: URLs are
    /// logged by servers and proxies.
    ///
    /// - Parameters:
    ///   - key: the key.
    ///   - name: the item's name.
    ///   - origins: URLs of the origins to which it is sent; `nil`, the default, for all requests.
    public static func apiKey(_ key: String, queryItem name: String, for origins: [String]? = nil) -> StaticCredential {
        Redaction(queryItems: [name]).register()
        return StaticCredential(.item(name: name, value: key), for: origins)
    }

    /// Adds the user name and the password that a netrc file has for the host, in the Basic scheme; read once, as curl reads it.
    ///
    /// - Parameter file: the file; by default that of the variable `NETRC`, or `.netrc` in the home directory.
    /// - Throws: `CocoaError` if the file can't be read, or has a quote without an end.
    public static func netrc(_ file: URL? = nil) throws -> StaticCredential {
        let environment = ProcessInfo.processInfo.environment
        let path = file?.path ?? environment["NETRC"] ?? (environment["HOME"] ?? "") + "/.netrc"
        guard let data = FileManager.default.contents(atPath: path) else { throw FileError.reading(path, ENOENT) }
        do {
            return StaticCredential(.netrc(try Netrc(String(decoding: data, as: UTF8.self))), for: nil)
        } catch {
            throw FileError.reading(path, ENODATA)
        }
    }
}

// MARK: - Descriptions

extension StaticCredential: CustomStringConvertible, CustomReflectable {
    /// The kind; never the credential.
    public var description: String {
        switch kind {
        case .field(let field): "StaticCredential(\(Redaction.escaped(field.name)))"
        case .basic: "StaticCredential(Authorization)"
        case .item(let name, _): "StaticCredential(?\(Redaction.escaped(name)))"
        case .netrc: "StaticCredential(netrc)"
        }
    }

    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["description": description]) }
}
