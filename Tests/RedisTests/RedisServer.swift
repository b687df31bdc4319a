// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewHTTP
import CurlewRedis
import CurlewTestSupport
import CurlewTesting
import CurlewTransport
import Testing

/// A server in a process of its own.
protocol ServerProcess: Sendable {
    var process: Lock<ChildProcess> { get }
}

extension ServerProcess {
    /// Stops the process without ending it, or lets it continue.
    func send(_ signal: Int32) { process.withLock { $0.send(signal) } }

    /// Kills the process, and waits for its end.
    func kill() async {
        let process = process.withLock { $0 }
        process.send(SIGKILL)
        _ = await process.finish()
    }
}

/// A Redis server of a test's own, on a Unix socket in a temporary directory, and over TLS if it is to be. Ends with its last reference.
final class RedisServer: ServerProcess {
    /// Whether tests that need a server run: they are skipped where none is installed, unless servers are required.
    static let isInstalled = Servers.areRequired || ChildProcess.path(of: program) != nil
    /// The server's program; `CURLEW_TEST_REDIS_SERVER` names another one, such as `valkey-server`.
    static let program = ProcessInfo.processInfo.environment["CURLEW_TEST_REDIS_SERVER"] ?? "redis-server"

    let directory: TemporaryDirectory
    let process: Lock<ChildProcess>
    private let options: [String]
    /// The port of TLS, and who has issued the certificate; `nil` without TLS.
    let secure: (port: Int, authority: CertificateAuthority)?

    var socket: String { directory.file("redis.sock").path }

    /// Starts a server with further options, and waits until it accepts connections.
    ///
    /// - Parameter isSecure: whether ``configuration(timeout:)`` is one of TLS.
    init(_ options: String..., isSecure: Bool = false) async throws {
        directory = try TemporaryDirectory()
        let secure = isSecure ? (try Self.freePort(), try CertificateAuthority()) : nil
        self.secure = secure
        self.options = try options + (secure.map { [directory] in try Self.options(of: $0, in: directory, besides: options) } ?? [])
        let (directory, options) = (directory, self.options)
        process = Lock(try await RedisNode.started { try Self.start(directory, options) })
    }

    private static func options(
        of secure: (port: Int, authority: CertificateAuthority), in directory: TemporaryDirectory, besides others: [String]
    ) throws -> [String] {
        let identity = try secure.authority.issue()
        let files = try ["cert": Data(identity.chain.utf8), "key": Data(identity.key.utf8), "ca-cert": secure.authority.certificate].map {
            ["--tls-\($0)-file", try directory.write($1, to: "\($0).pem").path]
        }
        let clients = others.contains("--tls-auth-clients") ? [] : ["--tls-auth-clients", "no"]
        return ["--tls-port", "\(secure.port)"] + clients + files.joined()
    }

    /// A port that was free just now: the server can't choose one itself.
    private static func freePort() throws -> Int {
        let server = try LoopbackServer { _, _ in .ok("") }
        defer { server.stop() }
        return server.port
    }

    private static func start(_ directory: TemporaryDirectory, _ options: [String]) throws -> ChildProcess {
        let socket = directory.file("redis.sock").path
        return try ChildProcess(
            program,
            ["--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", directory.url.path, "--daemonize", "no"]
                + options)
    }

    /// A configuration for the server, patient enough for a loaded machine unless told otherwise.
    func configuration(timeout: Duration = .seconds(5)) -> RedisConfiguration {
        var configuration = RedisConfiguration(secure.map { .tls(host: "localhost", port: $0.port) } ?? .unix(path: socket))
        configuration.tls.certificateAuthorities = secure?.authority.certificate
        configuration.commandTimeout = timeout
        configuration.connectTimeout = .seconds(10)
        configuration.silenceLimit = .seconds(10)
        configuration.maximumBackoff = .milliseconds(100)
        return configuration
    }

    func client(timeout: Duration = .seconds(5)) throws -> RedisClient { try RedisClient(configuration(timeout: timeout)) }

    /// Starts it again, without what it knew.
    func restart() async throws {
        await kill()
        try? FileManager.default.removeItem(atPath: socket)
        let started = try await RedisNode.started { try Self.start(directory, options) }
        process.withLock { $0 = started }
    }

    deinit { process.withLock { $0.send(SIGKILL) } }
}

extension RedisClient {
    /// Waits until the server responds to this client.
    func becomesReady() async -> Bool {
        let start = ContinuousClock.now
        while (try? await ping()) == nil {
            guard start.duration(to: .now) < .seconds(30) else { return false }
            await Task.yield()
        }
        return true
    }
}
#endif
