// SPDX-License-Identifier: Apache-2.0

/// An HTTP/1.1 server on 127.0.0.1 for tests: one thread a connection, keep-alive, and any misbehaviour one asks for.
///
/// ```swift
/// let server = try LoopbackServer { request, _ in request.path == "/hello" ? .ok("Hello") : .status(404) }
/// defer { server.stop() }
/// let address = server.url("/hello")
/// ```
///
/// Reads bodies by `Content-Length` and in chunks, and answers `Expect: 100-continue`. No TLS, no HTTP/2.
public final class LoopbackServer: Sendable {
    /// Answers a request, on the connection's own thread.
    ///
    /// Nil says that the route has answered by itself; the connection then stands or closes as its `keepAlive` says. A
    /// ``SocketError`` closes the connection, any other error is answered with 500 and its text. A route must not hold the
    /// server itself, which would then never be released.
    public typealias Route = @Sendable (ServerRequest, ServerConnection) throws -> ServerResponse?

    /// What becomes of a request's body, asked when its head has been read.
    public enum BodyHandling: Sendable {
        /// Read into memory, counted and hashed.
        case kept
        /// Read, counted and hashed, and let go: for bodies of gigabytes.
        case counted
        /// Not read, so that an upload comes to a halt; the connection closes behind the response.
        case unread
        /// Not read: the client gets this response, in place of `100 Continue` if it waits for that.
        case refused(ServerResponse)
    }

    private let listener: SocketListener
    private let journal: Monitor<RequestJournal>

    /// Starts a server on a port that the system chooses.
    ///
    /// `bodies` gets a request without its body. `recording: false` counts requests and keeps none, for tests that look at
    /// the process's memory. Throws a ``SocketError`` if the system refuses a socket or a thread.
    public init(
        bodies: @escaping @Sendable (ServerRequest) -> BodyHandling = { _ in .kept },
        recording: Bool = true,
        route: @escaping Route
    ) throws {
        let journal = Monitor(RequestJournal(isKept: recording))
        self.journal = journal
        listener = try SocketListener { socket, number in
            let exchange = HTTPExchange(
                connection: ServerConnection(number: number, socket: socket), socket: socket, journal: journal, bodies: bodies,
                route: route)
            exchange.run()
        }
    }

    deinit {
        stop()
    }

    /// The port on 127.0.0.1.
    public var port: Int { listener.port }

    /// `http://127.0.0.1:port`.
    public var url: URL {
        guard let url = URL(string: url("")) else { preconditionFailure("An address and a port make a URL") }
        return url
    }

    /// The URL of a path with its query, which are taken as they are.
    public func url(_ path: String) -> String {
        "http://127.0.0.1:\(port)\(path)"
    }

    /// Closes the port and all connections and joins every thread; routes that wait on their connection return.
    ///
    /// Any thread. Takes at most `timeout`: a route that is busy for longer is left to itself. Again does nothing.
    public func stop(timeout: Duration = .seconds(10)) {
        listener.stop(timeout: timeout)
    }

    /// All requests whose bodies have been read, in that order; a body over 64 KiB is not kept here.
    public var requests: [ServerRequest] { journal.read { $0.requests } }

    /// How many requests there were, recorded or not.
    public var requestCount: Int { journal.read { $0.count } }

    /// Waits for `count` requests; false if the time ran out first.
    @discardableResult
    public func waitForRequests(_ count: Int, timeout: Duration = .seconds(10)) -> Bool {
        journal.wait(timeout: timeout) { $0.count >= count }
    }

    /// Waits for `count` requests; false if the time ran out first.
    @discardableResult
    public func waitForRequests(_ count: Int, timeout: Duration = .seconds(10)) async -> Bool {
        await offThePool { [journal] in journal.wait(timeout: timeout) { $0.count >= count } }
    }

    /// How many connections have been accepted so far.
    public var connectionCount: Int { listener.connectionCount }

    /// How many connections are open on this side.
    public var openConnections: Int { listener.openConnections }

    /// Waits until no connection is open; false if the time ran out first.
    @discardableResult
    public func waitForConnectionsToClose(timeout: Duration = .seconds(10)) -> Bool {
        listener.waitForConnectionsToClose(timeout: timeout)
    }

    /// Waits until no connection is open; false if the time ran out first.
    @discardableResult
    public func waitForConnectionsToClose(timeout: Duration = .seconds(10)) async -> Bool {
        await offThePool { [listener] in listener.waitForConnectionsToClose(timeout: timeout) }
    }

    /// What the server's threads are called, for ``ProcessProbe/threadCount(named:)``.
    public var threadName: String { listener.threadName }
}

/// The requests of a server so far.
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
