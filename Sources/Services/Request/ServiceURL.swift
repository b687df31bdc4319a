// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Builds the URL of a request.
enum ServiceURL {
    /// Returns the URL with its scheme replaced, the route appended to its path, and the items appended to its query.
    ///
    /// - Parameters:
    ///   - base: the URL; `https` is assumed if it has no scheme.
    ///   - isSecure: whether to use TLS; `nil` to follow the URL's scheme.
    ///   - schemes: the schemes without and with TLS.
    static func make(
        _ base: any URLConvertible, isSecure: Bool?, schemes: (plain: String, secure: String) = ("http", "https"), routes: HTTPRoute,
        query: HTTPQuery
    ) throws(ServiceError) -> URL {
        guard var components = components(of: base), let scheme = components.scheme?.lowercased(), !routes.hasDotSegment else {
            throw .invalidURL
        }
        guard ["http", "https", "ws", "wss"].contains(scheme), components.host?.isEmpty == false else { throw .invalidURL }
        components.scheme = isSecure ?? (scheme == "https" || scheme == "wss") ? schemes.secure : schemes.plain
        if !routes.segments.isEmpty {
            let path = components.percentEncodedPath
            components.percentEncodedPath = path + (path.hasByteSuffix("/") ? "" : "/") + routes.description
        }
        components.percentEncodedQuery = query.appended(to: components.percentEncodedQuery)
        guard let url = components.url else { throw .invalidURL }
        return url
    }

    /// Returns the URL's components. A string such as `localhost:8080/v1` is taken as host and port, although `localhost` would parse as a
    /// scheme.
    private static func components(of base: any URLConvertible) -> URLComponents? {
        let text = base as? String ?? (try? base.asURL().absoluteString) ?? ""
        let schemeEnd = text.prefixScalars {
            $0.isASCII && ($0.properties.isAlphabetic || $0.properties.numericType != nil || "+-.".unicodeScalars.contains($0))
        }.endIndex
        let withScheme =
            text[schemeEnd...].hasBytePrefix("://")
            ? text : "https://" + (text.hasBytePrefix("//") ? String(text.dropFirstScalars(2)) : text)
        return (try? withScheme.asURL()).flatMap { URLComponents(url: $0, resolvingAgainstBaseURL: true) }
    }
}

extension NetworkServiceRequest {
    /// Builds a request for a service, without a body: URL, method, and the header fields of the service, of its asynchronous header, and
    /// its own; later ones replace earlier ones.
    func makeHead<Service: HTTPService>(
        for service: Service, _ method: HTTPMethod, schemes: (plain: String, secure: String) = ("http", "https")
    ) async throws -> URLRequest {
        let url = try ServiceURL.make(
            url ?? service.apiURL, isSecure: usesSecureProtocol ?? service.usesSecureProtocol, schemes: schemes, routes: routes,
            query: query)
        let header = try await service.header + service.asyncHeader + header
        var urlRequest = try URLRequest(url: url, method: method, headers: header)
        // `URLRequest`'s initializer changes the case of some methods.
        urlRequest.httpMethod = method.rawValue
        return urlRequest
    }
}
