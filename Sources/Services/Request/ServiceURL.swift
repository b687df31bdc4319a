// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Puts the URL of a request together.
enum ServiceURL {
    /// The URL with its scheme replaced, the route behind its path, and the query's items behind its own.
    ///
    /// - Parameters:
    ///   - base: the URL; one without a scheme gets one.
    ///   - isSecure: whether to use TLS; `nil` for what the URL says.
    ///   - schemes: the one without and the one with TLS.
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
            components.percentEncodedPath = path + (path.hasSuffix("/") ? "" : "/") + routes.description
        }
        components.percentEncodedQuery = query.added(to: components.percentEncodedQuery)
        guard let url = components.url else { throw .invalidURL }
        return url
    }

    /// The URL's parts. A text such as `localhost:8080/v1` is taken for what it means: as a URL, `localhost` were its scheme.
    private static func components(of base: any URLConvertible) -> URLComponents? {
        let text = base as? String ?? (try? base.asURL().absoluteString) ?? ""
        let schemeEnd = text.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || "+-.".contains($0)) }.endIndex
        let withScheme = text[schemeEnd...].hasPrefix("://") ? text : "https://" + (text.hasPrefix("//") ? String(text.dropFirst(2)) : text)
        return (try? withScheme.asURL()).flatMap { URLComponents(url: $0, resolvingAgainstBaseURL: true) }
    }
}

extension NetworkServiceRequest {
    /// What goes to a service, but for a body: URL, method, and the fields of the service, of its asynchronous header, and its own, of
    /// which the later ones count.
    func makeHead<Service: HTTPService>(
        for service: Service, _ method: HTTPMethod, schemes: (plain: String, secure: String) = ("http", "https")
    ) async throws -> URLRequest {
        let url = try ServiceURL.make(
            url ?? service.apiURL, isSecure: usesSecureProtocol ?? service.usesSecureProtocol, schemes: schemes, routes: routes,
            query: query)
        let header = try await service.header + service.asyncHeader + header
        var urlRequest = try URLRequest(url: url, method: method, headers: header)
        // The initializer spells some methods in its own way.
        urlRequest.httpMethod = method.rawValue
        return urlRequest
    }
}
