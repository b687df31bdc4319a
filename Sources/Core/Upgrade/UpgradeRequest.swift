// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A request over HTTP/1.1 that asks for another protocol on its connection (RFC 9110, section 7.8), validated and serialized.
package struct UpgradeRequest: Sendable {
    /// Why a request can't be sent.
    package enum Invalid: Error {
        case url(String)
        case scheme(String)
        case header(String)
    }

    /// Header fields that the request sets itself, or that would break it.
    package static let ownFields = ["Connection", "Upgrade", "Content-Length", "Transfer-Encoding"]

    package var host: String { target.host }
    package var port: Int { target.port }
    package var isSecure: Bool { target.isSecure }
    /// The URL with an HTTP scheme, without user name and password.
    package var url: String { target.url }
    package let method: HTTPMethod
    /// The fields of the request, without its own.
    package let headers: HTTPHeaders
    /// The length of its body; `nil` for none.
    var bodyLength: Int64? { body.map { Int64($0.count) } }
    private let target: Target
    /// Whether cookies are sent, and those of the response stored.
    package let handlesCookies: Bool
    /// The request's `mainDocumentURL`, by which its cookies are judged; `nil` for none.
    package let document: URL?
    private let own: HTTPHeaders
    private let reserved: [String]
    private let body: Data?

    /// Makes the request, after the adapters have modified it.
    ///
    /// - Parameters:
    ///   - headers: its fields, without `own`.
    ///   - name: the protocol, as the value of `Upgrade`.
    ///   - own: further fields that the protocol sets itself.
    ///   - reserved: the names of the fields that only the request itself sets.
    ///   - schemes: those that the URL may have, in lowercase, and whether they mean TLS.
    ///   - defaults: fields that are added unless the request has one of that name.
    ///   - document: the request's `mainDocumentURL`; `nil`, the default, for none.
    ///   - cookies: returns the value of `Cookie` for a URL, given the user's; `nil` if the request does not handle cookies.
    package init(
        _ url: URL?, _ method: HTTPMethod, _ headers: HTTPHeaders, body: Data? = nil, to name: String, own: HTTPHeaders = [:],
        reserved: [String] = ownFields, schemes: [String: Bool] = ["http": false, "https": true], defaults: HTTPHeaders,
        document: URL? = nil, cookies: ((_ url: String, _ given: String?) -> String?)?
    ) throws(Invalid) {
        target = try Target(url, schemes)
        handlesCookies = cookies != nil
        self.document = document
        var fields: HTTPHeaders = ["Upgrade": name, "Connection": "Upgrade"]
        for field in own { fields.append(field) }
        if let body { fields.append(name: "Content-Length", value: "\(body.count)") }
        (self.method, self.own, self.reserved, self.body) = (method, fields, reserved, body)
        if let field = headers.first(where: { !$0.isValid || $0.isOneOf(reserved) }) ?? fields.first(where: { !$0.isValid }) {
            throw .header(field.name)
        }
        var headers = headers
        // A refusal's body is not decoded.
        for field in defaults where headers[field.name] == nil && !field.isOneOf(reserved + ["Accept-Encoding"]) { headers.append(field) }
        if headers["Authorization"] == nil, let authorization = target.authorization { headers.append(authorization) }
        if let cookies { headers["Cookie"] = cookies(target.url, headers["Cookie"]) }
        self.headers = headers
    }

    /// Returns the request's fields: its own, and the others of these, which are ``headers``, or what the session's instruments have made of
    /// them.
    package func fields(with given: HTTPHeaders) -> HTTPHeaders {
        var fields = own
        for field in given where !field.isOneOf(reserved) { fields.append(field) }
        return fields
    }

    /// Returns the request with ``fields(with:)``.
    package func bytes(with given: HTTPHeaders) -> Data {
        var lines = ["\(method.rawValue) \(target.pathAndQuery) HTTP/1.1", "Host: \(given["Host"] ?? target.hostField)"]
        lines += fields(with: given).filter { !$0.isNamed("Host") }.map { "\($0.name): \($0.value)" }
        return Data((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + (body ?? Data())
    }

    /// The parts of its URL.
    private struct Target {
        let host: String
        let port: Int
        let isSecure: Bool
        let pathAndQuery: String
        let authorization: HTTPHeader?

        init(_ url: URL?, _ schemes: [String: Bool]) throws(Invalid) {
            guard let url else { throw .url("") }
            let text = url.absoluteString.withoutUserInfo
            guard let isSecure = schemes[url.scheme?.lowercased() ?? ""] else { throw .scheme(url.scheme?.lowercased() ?? "") }
            guard let parts = URLComponents(url: url, resolvingAgainstBaseURL: true), let host = parts.percentEncodedHost, !host.isEmpty,
                parts.percentEncodedFragment == nil, let host = try? URLHost.normalized(host[...])
            else { throw .url(text) }
            self.isSecure = isSecure
            self.host = host.hasBytePrefix("[") ? String(host.dropFirstScalars().dropLastScalars()) : host
            port = parts.port ?? (isSecure ? 443 : 80)
            guard (1...65_535).contains(port) else { throw .url(text) }
            let path = parts.percentEncodedPath
            pathAndQuery = (path.isEmpty ? "/" : path) + (parts.percentEncodedQuery.map { "?" + $0 } ?? "")
            let field = parts.user.flatMap { Request.authorizationHeader(user: $0, password: parts.password ?? "") }
            // Basic can't send a name with a colon.
            if parts.user != nil, field == nil { throw .url(text) }
            authorization = field.map { HTTPHeader(name: $0.key, value: $0.value) }
        }

        var url: String { "\(isSecure ? "https" : "http")://\(Self.authority(host, isDefault ? nil : port))\(pathAndQuery)" }

        /// Host and port without a zone, as libcurl sends them.
        var hostField: String { Self.authority(host.withoutZone, isDefault ? nil : port) }

        private var isDefault: Bool { port == (isSecure ? 443 : 80) }

        private static func authority(_ host: String, _ port: Int?) -> String { host.bracketed + (port.map { ":\($0)" } ?? "") }
    }
}

extension HTTPHeader {
    fileprivate func isOneOf(_ names: [String]) -> Bool { names.contains { isNamed($0) } }
}
