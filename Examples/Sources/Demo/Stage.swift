// SPDX-License-Identifier: Apache-2.0
import Curlew
import DemoServer

/// What the steps have in common: servers on loopback, a manager, and a directory that goes with it.
final class Stage: Sendable {
    /// The token that `/me` wants.
    static let token = "7f3a9c"

    let server: LoopbackServer
    let echo: TCPEchoServer
    let manager: SessionManager
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        server = try LoopbackServer(bodies: ServerRoutes.bodies, route: Self.route)
        echo = try TCPEchoServer()

        var configuration = SessionConfiguration()
        configuration.headers = SessionManager.defaultHTTPHeaders
        configuration.proxy = .none  // the servers are in this process, whatever the environment says
        configuration.idleTimeout = .seconds(10)
        configuration.totalTimeout = .seconds(30)
        manager = SessionManager(configuration: configuration)
    }

    /// The routes of the tests, and one for members only.
    private static var route: LoopbackServer.Route {
        let standard = ServerRoutes.standard
        return { request, connection in
            guard request.path == "/me" else { return try standard(request, connection) }
            guard request.header("Authorization") == "Bearer \(token)" else { return .status(401) }
            return .ok(#"{"name": "Numenius arquata", "visits": 12}"#, type: "application/json")
        }
    }
}
