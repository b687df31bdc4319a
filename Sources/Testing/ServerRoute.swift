// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewLoopback

/// A route of a `LoopbackServer`: a method, a pattern of paths, and what responds.
public struct ServerRoute: Sendable {
    private let method: HTTPMethod?
    private let pattern: URLPattern
    fileprivate let respond: LoopbackServer.Route

    /// Creates a route.
    ///
    /// - Parameters:
    ///   - method: the method; `nil`, the default, for any.
    ///   - pattern: the path, and items of the query; `ServerRequest.parameters` has what its placeholders match.
    ///   - respond: responds, on the connection's thread; see `LoopbackServer.Route`.
    public init(_ method: HTTPMethod? = nil, _ pattern: URLPattern, _ respond: @escaping LoopbackServer.Route) {
        self.method = method
        self.pattern = pattern
        self.respond = respond
    }

    /// A route for GET.
    public static func get(_ pattern: URLPattern, _ respond: @escaping LoopbackServer.Route) -> ServerRoute {
        ServerRoute(.get, pattern, respond)
    }

    /// A route for POST.
    public static func post(_ pattern: URLPattern, _ respond: @escaping LoopbackServer.Route) -> ServerRoute {
        ServerRoute(.post, pattern, respond)
    }

    /// A route for PUT.
    public static func put(_ pattern: URLPattern, _ respond: @escaping LoopbackServer.Route) -> ServerRoute {
        ServerRoute(.put, pattern, respond)
    }

    /// A route for DELETE.
    public static func delete(_ pattern: URLPattern, _ respond: @escaping LoopbackServer.Route) -> ServerRoute {
        ServerRoute(.delete, pattern, respond)
    }

    fileprivate func parameters(of request: ServerRequest) -> [String: String]? {
        guard method == nil || method?.rawValue == request.method else { return nil }
        return pattern.parameters(in: request.target)
    }

    fileprivate func matchesPath(of request: ServerRequest) -> Bool { pattern.matches(request.target) }
}

extension LoopbackServer {
    /// Starts a server with routes, of which the first that matches responds. Others get 404, or 405 if the method alone is wrong.
    ///
    /// - Parameters:
    ///   - tls: the settings of TLS; `nil`, the default, for none.
    ///   - routes: the routes. They must not retain the server.
    /// - Throws: `SocketError` if the system refuses a socket or a thread; `TLSError` if TLS is not possible.
    public convenience init(tls: ServerTLS? = nil, routes: [ServerRoute]) throws {
        try self.init(tls: tls) { request, connection in
            var request = request
            for route in routes {
                guard let parameters = route.parameters(of: request) else { continue }
                request.parameters = parameters
                return try route.respond(request, connection)
            }
            return .status(routes.contains { $0.matchesPath(of: request) } ? 405 : 404)
        }
    }
}
