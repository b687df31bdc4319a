// SPDX-License-Identifier: Apache-2.0

/// An HTTP/1.1 server on 127.0.0.1 for tests, with or without TLS: one thread per connection, keep-alive, and any kind of misbehaviour.
///
/// ```swift
/// let server = try LoopbackServer { request, _ in request.path == "/hello" ? .ok("Hello") : .status(404) }
/// defer { server.stop() }
/// let address = server.url("/hello")
/// ```
///
/// Reads bodies with Content-Length and chunked ones, and handles `Expect: 100-continue`. No HTTP/2. Stops with its last reference.
public final class LoopbackServer: Sendable {
    /// Responds to a request, on the connection's thread.
    ///
    /// Returns nil if the route has sent a response itself; the connection is then kept open or closed according to its `keepAlive`. A
    /// ``SocketError`` closes the connection; any other error is sent as the text of a 500 response. A route must not retain the server,
    /// which would then never be released.
    public typealias Route = @Sendable (ServerRequest, ServerConnection) throws -> ServerResponse?

    /// What to do with a request's body, decided after its head has been read.
    public enum BodyHandling: Sendable {
        /// Read into memory, counted and hashed.
        case kept
        /// Read, counted and hashed, then discarded: for bodies of gigabytes.
        case counted
        /// Not read, so that an upload stalls; the connection is closed after the response.
        case unread
        /// Not read: the client receives this response, instead of `100 Continue` if it waits for that.
        case refused(ServerResponse)
    }

    private let listener: SocketListener
    private let journal: Monitor<RequestJournal>
    private let failedHandshakes: Monitor<[String]>
    /// Whether the server speaks TLS.
    public let isSecure: Bool

    /// Starts a server on a port, by default one chosen by the system.
    ///
    /// A `port` that another program listens on is a ``SocketError`` whose code is `EADDRINUSE`, one that needs privileges `EACCES`.
    /// `bodies` receives each request without its body. With `recording: false` requests are counted but not recorded, for tests that
    /// measure the process's memory. Throws a ``SocketError`` if the system refuses a socket or a thread, and a ``TLSError`` if TLS is not
    /// possible with the settings. With `unixSocketPath` the server listens on a Unix domain socket instead, which is removed when it stops;
    /// a path that begins with a NUL is a name in Linux's abstract namespace.
    public init(
        tls: ServerTLS? = nil,
        unixSocketPath: String? = nil,
        port: UInt16 = 0,
        bodies: @escaping @Sendable (ServerRequest) -> BodyHandling = { _ in .kept },
        recording: Bool = true,
        route: @escaping Route
    ) throws {
        let journal = Monitor(RequestJournal(isKept: recording))
        self.journal = journal
        let context = try tls.map { try TLSContext($0) }
        isSecure = context != nil
        let failedHandshakes = Monitor<[String]>([])
        self.failedHandshakes = failedHandshakes
        self.unixSocketPath = unixSocketPath
        listener = try SocketListener(path: unixSocketPath, port: port) { socket, number in
            do {
                let info = try context.map { try socket.secure($0) }
                let exchange = HTTPExchange(
                    connection: ServerConnection(number: number, socket: socket, tls: info), socket: socket, journal: journal,
                    bodies: bodies,
                    route: route)
                exchange.run()
            } catch {
                failedHandshakes.update { $0.append("\(error)") }
            }
        }
    }

    deinit {
        stop()
    }

    /// The path of the Unix domain socket on which the server listens; `nil` for a port.
    public let unixSocketPath: String?

    /// The port on 127.0.0.1; 0 on a Unix domain socket.
    public var port: Int { listener.port }

    /// `http://127.0.0.1:port`, or `https://localhost:port` with TLS; on a Unix domain socket without a port, on `localhost`.
    public var url: URL {
        // No misuse: an address with a port is a valid URL.
        guard let url = URL(string: url("")) else { preconditionFailure("An address with a port is a valid URL") }
        return url
    }

    /// Returns the URL of a path with its query, both taken verbatim.
    public func url(_ path: String) -> String {
        if unixSocketPath != nil { return "\(isSecure ? "https" : "http")://localhost\(path)" }
        return "\(isSecure ? "https://localhost" : "http://127.0.0.1"):\(port)\(path)"
    }

    /// Closes the port and all connections and joins all threads; routes waiting on their connection return.
    ///
    /// Thread-safe. Takes at most `timeout`: a route that is busy for longer is abandoned. Further calls do nothing.
    public func stop(timeout: Duration = .seconds(10)) {
        listener.stop(timeout: timeout)
        if let unixSocketPath, !unixSocketPath.hasPrefix("\0") { unlink(unixSocketPath) }
    }

    /// All requests whose bodies have been read, in that order; a body over 64 KiB is not recorded.
    public var requests: [ServerRequest] { journal.read { $0.requests } }

    /// The number of requests, recorded or not.
    public var requestCount: Int { journal.read { $0.count } }

    /// Waits for `count` requests. Returns false on timeout.
    @discardableResult
    public func waitForRequests(_ count: Int, timeout: Duration = .seconds(10)) -> Bool {
        journal.wait(timeout: timeout) { $0.count >= count }
    }

    /// Waits for `count` requests. Returns false on timeout.
    @discardableResult
    public func waitForRequests(_ count: Int, timeout: Duration = .seconds(10)) async -> Bool {
        await offThePool { [journal] in journal.wait(timeout: timeout) { $0.count >= count } }
    }

    /// Why handshakes of TLS have failed, in OpenSSL's words, a line each.
    public var handshakeFailures: [String] { failedHandshakes.read { $0 } }

    /// The number of connections accepted so far.
    public var connectionCount: Int { listener.connectionCount }

    /// The number of connections open on this side.
    public var openConnections: Int { listener.openConnections }

    /// Waits until no connection is open. Returns false on timeout.
    @discardableResult
    public func waitForConnectionsToClose(timeout: Duration = .seconds(10)) -> Bool {
        listener.waitForConnectionsToClose(timeout: timeout)
    }

    /// Waits until no connection is open. Returns false on timeout.
    @discardableResult
    public func waitForConnectionsToClose(timeout: Duration = .seconds(10)) async -> Bool {
        await offThePool { [listener] in listener.waitForConnectionsToClose(timeout: timeout) }
    }

    /// The name of the server's threads.
    package var threadName: String { listener.threadName }
}

/// The requests received by a server.
struct RequestJournal {
    let isKept: Bool
    private(set) var requests: [ServerRequest] = []
    private(set) var count = 0

    init(isKept: Bool) {
        self.isKept = isKept
    }

    mutating func enter(_ request: ServerRequest) {
        count += 1
        guard isKept else { return }
        var entry = request
        if entry.body.count > 64 << 10 { entry.body = Data() }
        requests.append(entry)
    }
}
