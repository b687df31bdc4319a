// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewHTTP
import CurlewRedis
import CurlewTestSupport
import Testing

/// A Redis server of a test's own, on a Unix socket in a temporary directory. Ends with its last reference.
final class RedisServer: Sendable {
    /// Whether tests that need a server run: they are skipped where none is installed, unless servers are required.
    static let isInstalled = Servers.areRequired || ChildProcess.path(of: "redis-server") != nil

    let directory: TemporaryDirectory
    private let process: Lock<ChildProcess>
    private let options: [String]

    var socket: String { directory.file("redis.sock").path }

    /// Starts a server with further options, and waits until it accepts connections.
    init(_ options: String...) async throws {
        directory = try TemporaryDirectory()
        self.options = options
        process = Lock(try Self.start(directory, options))
        try await ready()
    }

    private static func start(_ directory: TemporaryDirectory, _ options: [String]) throws -> ChildProcess {
        let socket = directory.file("redis.sock").path
        return try ChildProcess(
            "redis-server",
            ["--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", directory.url.path, "--daemonize", "no"]
                + options)
    }

    private func ready() async throws {
        let process = process.withLock { $0 }
        while let line = await process.readLine() {
            if line.lowercased().contains("ready to accept connections") { return }
        }
        throw TestError("redis-server ended before it was ready")
    }

    /// A configuration for the server, patient enough for a loaded machine unless told otherwise.
    func configuration(timeout: Duration = .seconds(5)) -> RedisConfiguration {
        var configuration = RedisConfiguration(.unix(path: socket))
        configuration.commandTimeout = timeout
        configuration.longestBackoff = .milliseconds(100)
        return configuration
    }

    func client(timeout: Duration = .seconds(5)) throws -> RedisClient { try RedisClient(configuration(timeout: timeout)) }

    /// Stops the server's process without ending it, or lets it continue.
    func send(_ signal: Int32) { process.withLock { $0.send(signal) } }

    /// Kills the server, and waits for its end.
    func kill() async {
        let process = process.withLock { $0 }
        process.send(SIGKILL)
        _ = await process.finish()
    }

    /// Starts it again, without what it knew.
    func restart() async throws {
        await kill()
        try? FileManager.default.removeItem(atPath: socket)
        let started = try Self.start(directory, options)
        process.withLock { $0 = started }
        try await ready()
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
