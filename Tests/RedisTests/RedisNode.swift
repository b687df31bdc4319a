// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import CurlewTransport
import Testing

@testable import CurlewRedis

/// A process of redis-server on a port of loopback, or in a network of its own: a server, a sentinel or a node of a cluster. Ends with its last
/// reference.
final class RedisNode: ServerProcess {
    /// The files of TLS, as options of servers and lines of sentinels.
    struct Security: Sendable {
        let authority: CertificateAuthority
        let directory: TemporaryDirectory
        let options: [String]

        init() throws {
            let (authority, directory) = (try CertificateAuthority(), try TemporaryDirectory())
            let identity = try authority.issue()
            // The nodes of a cluster are clients of each other.
            let client = try authority.issue("node", usage: .client)
            let files = [
                "cert": Data(identity.chain.utf8), "key": Data(identity.key.utf8), "client-cert": Data(client.chain.utf8),
                "client-key": Data(client.key.utf8), "ca-cert": authority.certificate,
            ]
            let named = try files.flatMap { ["tls-\($0)-file", try directory.write($1, to: "\($0).pem").path] }
            options = named + ["tls-auth-clients", "no", "tls-replication", "yes"]
            (self.authority, self.directory) = (authority, directory)
        }

        var arguments: [String] { options.enumerated().map { $0.isMultiple(of: 2) ? "--" + $1 : $1 } }

        var lines: String { stride(from: 0, to: options.count, by: 2).map { "\(options[$0]) \(options[$0 + 1])\n" }.joined() }
    }

    /// Where a process listens: the address, and the network that the process is in, if that is another one.
    struct Place: Sendable {
        var host = "127.0.0.1"
        var network: CutOffNetwork?

        func start(_ arguments: [String]) async throws -> ChildProcess {
            if let network { return try await network.start(RedisServer.program, arguments) }
            return try ChildProcess(RedisServer.program, arguments)
        }
    }

    let port: Int
    private let place: Place
    private let security: Security?
    private let directory: TemporaryDirectory
    private let arguments: [String]
    /// What the output has when it is ready.
    private let readiness: String
    let process: Lock<ChildProcess>

    var address: RedisConfiguration.Address {
        security == nil ? .tcp(host: place.host, port: port) : .tls(host: place.host, port: port)
    }

    /// Starts a server without persistence, and waits until it accepts connections.
    convenience init(port: Int, _ options: [String], _ security: Security? = nil, at place: Place = Place()) async throws {
        let directory = try TemporaryDirectory()
        let ports = security == nil ? ["--port", "\(port)"] : ["--port", "0", "--tls-port", "\(port)"]
        let common =
            ports + (security?.arguments ?? []) + [
                "--bind", place.host, "--protected-mode", "no", "--save", "", "--appendonly", "no", "--dir", directory.url.path,
                "--daemonize", "no",
                "--repl-diskless-sync-delay", "0", "--enable-debug-command", "yes",
            ]
        try await self.init(port, place, directory, common + options, security, readiness: "ready to accept connections")
    }

    /// Starts a sentinel with a configuration.
    convenience init(sentinelAt port: Int, _ configuration: String, _ security: Security? = nil, at place: Place = Place()) async throws {
        let directory = try TemporaryDirectory()
        let lines = security.map { "port 0\ntls-port \(port)\n" + $0.lines } ?? "port \(port)\n"
        let file = try directory.write(
            Data("\(lines)bind \(place.host)\nprotected-mode no\ndir \(directory.url.path)\n\(configuration)\n".utf8), to: "sentinel.conf")
        try await self.init(port, place, directory, [file.path, "--sentinel"], security, readiness: "+monitor")
    }

    private init(
        _ port: Int, _ place: Place, _ directory: TemporaryDirectory, _ arguments: [String], _ security: Security?, readiness: String
    ) async throws {
        self.port = port
        self.place = place
        self.security = security
        self.directory = directory
        self.arguments = arguments
        self.readiness = readiness
        process = Lock(try await Self.started(readiness) { try await place.start(arguments) })
    }

    /// Starts a process, and waits until it is ready. Where one of its ports was taken since it was chosen, by a connection of another test, it
    /// is started again until that has ended.
    static func started(
        _ readiness: String = "ready to accept connections", _ start: () async throws -> ChildProcess
    ) async throws -> ChildProcess {
        let end = ContinuousClock.now + .seconds(30)
        while true {
            let process = try await start()
            var output: [String] = []
            while let line = await process.readLine() {
                if line.lowercased().contains(readiness) { return process }
                output.append(line)
            }
            guard output.contains(where: { $0.contains("Address already in use") }), .now < end else {
                throw TestError("redis-server ended before it was ready: \(output.suffix(3))")
            }
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    /// Starts it again after its end, without what it knew.
    func restart() async throws {
        let started = try await Self.started(readiness) { try await place.start(arguments) }
        process.withLock { $0 = started }
    }

    /// A client of this server alone, for the tests' own questions.
    func client(_ credentials: RedisCredentials? = nil) throws -> RedisClient {
        var configuration = RedisConfiguration(address)
        configuration.commandTimeout = .seconds(10)
        configuration.connectTimeout = .seconds(5)
        configuration.credentials = credentials
        configuration.tls.certificateAuthorities = security?.authority.certificate
        return try RedisClient(configuration)
    }

    deinit { process.withLock { $0.send(SIGKILL) } }

    /// Different ports that were free just now: a server can't choose one itself.
    static func freePorts(_ count: Int) throws -> [Int] {
        let sockets = (0..<count).map { _ in socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0) }
        defer { for socket in sockets { close(socket) } }
        return try sockets.map { socket in
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let status = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(socket, $0, length) | getsockname(socket, $0, &length) }
            }
            guard status == 0 else { throw TestError("bind: \(String(cString: strerror(errno)))") }
            return Int(UInt16(bigEndian: address.sin_port))
        }
    }
}

/// Waits until a condition holds that has to be asked for, for at most half a minute.
func becomesTrue(_ condition: () async -> Bool) async -> Bool {
    let start = ContinuousClock.now
    while await !condition() {
        guard start.duration(to: .now) < .seconds(30) else { return false }
        try? await Task.sleep(for: .milliseconds(5))
    }
    return true
}

/// Three sentinels with a master and its replicas, two if nothing else is asked for. Their periods are short, so that a fail-over takes a second or two.
struct SentinelGroup {
    static let name = "service"

    /// The first is the master at the beginning.
    let servers: [RedisNode]
    let sentinels: [RedisNode]
    let credentials: RedisCredentials?
    let sentinelCredentials: RedisCredentials?
    private let security: RedisNode.Security?

    /// - Parameters:
    ///   - downAfter: how long the master may be silent, in milliseconds.
    ///   - users: whether servers and sentinels need a user and a password.
    ///   - isSecure: whether servers and sentinels have TLS only.
    ///   - network: the one that the master and the first sentinel are in, if that is another one.
    ///   - replicas: how many there are, and how many of these, the last ones, are in that network too.
    ///   - options: further ones of the servers.
    init(
        downAfter: Int = 300, users: Bool = false, isSecure: Bool = false, in network: CutOffNetwork? = nil,
        replicas: (all: Int, inside: Int) = (2, 0), options others: [String] = []
    ) async throws {
        let security = isSecure ? try RedisNode.Security() : nil
        self.security = security
        credentials = users ? RedisCredentials(username: "app", password: "data") : nil
        sentinelCredentials = users ? RedisCredentials(username: "watcher", password: "watch") : nil
        let ports = try RedisNode.freePorts(4 + replicas.all)
        let place = network.map { RedisNode.Place(host: $0.outer) } ?? RedisNode.Place()
        let masterPlace = network.map { RedisNode.Place(host: $0.inner, network: $0) } ?? place
        // The servers themselves, and the sentinels, are `default` with a password.
        let options =
            others
            + (users ? ["--requirepass", "admin", "--masterauth", "admin", "--user", "app", "on", ">data", "~*", "&*", "+@all"] : [])
        var servers = [try await RedisNode(port: ports[0], options, security, at: masterPlace)]
        for (index, port) in ports[1...replicas.all].enumerated() {
            let options = options + ["--replicaof", masterPlace.host, "\(ports[0])"]
            let isInside = index >= replicas.all - replicas.inside
            servers.append(try await RedisNode(port: port, options, security, at: isInside ? masterPlace : place))
        }
        var configuration = """
            sentinel monitor \(Self.name) \(masterPlace.host) \(ports[0]) 2
            sentinel down-after-milliseconds \(Self.name) \(downAfter)
            sentinel failover-timeout \(Self.name) 1000
            """
        if users { configuration += "\nsentinel auth-pass \(Self.name) admin\nuser watcher on >watch &* +@all" }
        var sentinels: [RedisNode] = []
        for port in ports[(1 + replicas.all)...] {
            let place = sentinels.isEmpty ? masterPlace : place
            sentinels.append(try await RedisNode(sentinelAt: port, configuration, security, at: place))
        }
        (self.servers, self.sentinels) = (servers, sentinels)
        for sentinel in sentinels {
            let client = try sentinel.client()
            _ = try await client.run([
                "SENTINEL", "DEBUG", "publish-period", "100", "info-period", "500", "ping-period", "200", "ask-period", "100",
            ])
            let isComplete = await becomesTrue {
                let fields = (try? await client.run(["SENTINEL", "MASTER", .text(Self.name)]).elements?.map { $0.text ?? "" }) ?? []
                func value(_ name: String) -> String? { fields.firstIndex(of: name).map { fields[$0 + 1] } }
                return value("num-slaves") == "\(replicas.all)" && value("num-other-sentinels") == "2"
            }
            guard isComplete else { throw TestError("a sentinel does not know the others") }
        }
    }

    /// The sentinels, as the probe names them.
    var place: String { "sentinels:\(Self.name):" + sentinels.map { "\($0.port)" }.joined(separator: ",") }

    /// A configuration that finds the master.
    func configuration(timeout: Duration = .milliseconds(500)) -> RedisConfiguration {
        var configuration = RedisConfiguration(.sentinels(sentinels.map(\.address), master: Self.name))
        configuration.commandTimeout = timeout
        configuration.maximumBackoff = .milliseconds(100)
        configuration.credentials = credentials
        configuration.sentinelCredentials = sentinelCredentials
        configuration.tls.certificateAuthorities = security?.authority.certificate
        return configuration
    }

    /// The port of the master, as a sentinel has it.
    func masterPort(_ sentinel: RedisNode) async throws -> Int? {
        try await sentinel.client().run(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", .text(Self.name)]).elements?.last?.integer
    }

    /// The server that is the master, as soon as most sentinels have the same one.
    func master() async throws -> RedisNode {
        var found: RedisNode?
        _ = await becomesTrue {
            var ports: [Int] = []
            for sentinel in sentinels { if let port = (try? await masterPort(sentinel)) ?? nil { ports.append(port) } }
            found = servers.first { server in ports.filter { $0 == server.port }.count >= 2 }
            return found != nil
        }
        guard let found else { throw TestError("the sentinels do not agree on a master") }
        return found
    }
}

/// What callers get who increment counters all the time, with a script that may not run twice.
final class CounterLoad: Sendable {
    private static let script = RedisScript("return redis.call('INCR', KEYS[1])")

    struct Report: Sendable {
        /// Successes of each key.
        var counts: [String: Int] = [:]
        /// Errors after which a command may have been executed, of each key.
        var uncertain: [String: Int] = [:]
        /// Errors of commands that were certainly not executed.
        var refused = 0
        var firstSuccess: ContinuousClock.Instant?
        var errors: Set<String> = []
    }

    private let report = Lock(Report())
    private let tasks: [Task<Void, Never>]

    init(_ client: RedisClient, keys: [String], tasks count: Int = 8) {
        let report = report
        tasks = (0..<count).map { index in
            Task {
                var turn = index
                while !Task.isCancelled {
                    let key = keys[turn % keys.count]
                    turn += 1
                    do {
                        _ = try await client.run(Self.script, keys: [key], [])
                        report.withLock { report in
                            report.counts[key, default: 0] += 1
                            report.firstSuccess = report.firstSuccess ?? .now
                        }
                    } catch {
                        report.withLock { report in
                            switch error as? RedisError {
                            case .timedOut?, .connectionLost?: report.uncertain[key, default: 0] += 1
                            default: report.refused += 1
                            }
                            report.errors.insert("\(error)")
                        }
                        // A refusal takes no time.
                        try? await Task.sleep(for: .milliseconds(1))
                    }
                }
            }
        }
    }

    var successes: Int { report.withLock { $0.counts.values.reduce(0, +) } }
    /// The first success since the last ``mark()``.
    var firstSuccess: ContinuousClock.Instant? { report.withLock { $0.firstSuccess } }
    func mark() { report.withLock { $0.firstSuccess = nil } }

    func end() async -> Report {
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
        return report.withLock { $0 }
    }
}
#endif
