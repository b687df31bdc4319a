// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewCache
import CurlewHTTP
import CurlewResilience
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTesting
import CurlewTransport
import Testing

@testable import CurlewRedis

/// What TLS to the server adds; the tests of the client run over TLS too.
@Suite(.enabled(if: RedisServer.isInstalled), .timeLimit(.minutes(2))) struct SecureRedisTests {
    /// Why a client can't be used, or `nil`.
    private func reason(_ configuration: RedisConfiguration) async throws -> RedisError.Reason? {
        let client = try RedisClient(configuration)
        do {
            try await client.ping()
            return nil
        } catch {
            // Swift 6.2.3 does not compile patterns in place of this.
            switch error {
            case .unavailable(let address, let reason) where address == configuration.address: return reason
            case .connectionLost(_, let reason): return reason
            default: throw error
            }
        }
    }

    @Test("a certificate that is not trusted, for another host or without a pinned key is an error that says so, and no password is sent")
    func untrusted() async throws {
        let server = try await RedisServer("--requirepass", "secret", isSecure: true)
        var configuration = server.configuration()
        configuration.password = "secret"
        // Under a sanitizer a handshake may take a second.
        configuration.connectTimeout = .seconds(20)
        configuration.commandTimeout = .seconds(25)
        #expect(try await reason(configuration) == nil)
        let (port, _) = try #require(server.secure)
        let changes: [(inout RedisConfiguration) -> Void] = [
            { $0.tls.certificateAuthorities = nil },
            { $0.tls.certificateAuthorities = (try? CertificateAuthority())?.certificate },
            { $0.tls.publicKeyHashes = [Data(count: 32)] },
            // The certificate is for localhost, 127.0.0.1 and ::1.
            { $0.address = .tls(host: "127.0.0.2", port: port) },
        ]
        var local = configuration
        local.address = .unix(path: server.socket)
        let client = try RedisClient(local)
        let before = try await authentications(client)
        for change in changes {
            var changed = configuration
            change(&changed)
            let reason = try await reason(changed)
            guard case .connectionFailed(let message)? = reason else { return #expect(Bool(false), "\(String(describing: reason))") }
            #expect(["certificate", "public key"].contains { message.contains($0) }, "\(message)")
        }
        #expect(try await authentications(client) == before)
    }

    @Test("nothing is sent to a server whose certificate has only a common name", .enabled(if: TLSAuthority.isAvailable))
    func commonName() async throws {
        let certificates = try await TLSAuthority.shared()
        let server = try await TLSServer(certificates, "localhost")
        var configuration = RedisConfiguration(.tls(host: "localhost", port: server.port))
        configuration.tls.certificateAuthorityFile = certificates.path("root.pem")
        configuration.password = "secret"
        configuration.connectTimeout = .seconds(20)
        configuration.commandTimeout = .seconds(25)
        let reason = try await reason(configuration)
        guard case .connectionFailed(let message)? = reason else { return #expect(Bool(false), "\(String(describing: reason))") }
        #expect(message.contains("no subject alternative name"))
        #expect(await server.nextConnection()?.bytes == 0)
    }

    private func authentications(_ client: RedisClient) async throws -> Substring? {
        try await client.run(["INFO", "commandstats"]).text?.split(whereSeparator: \.isNewline).first { $0.hasPrefix("cmdstat_auth:") }
    }

    @Test("a server that requires a client's certificate gets it, and refuses a client without one") func clients() async throws {
        let server = try await RedisServer("--tls-auth-clients", "yes", isSecure: true)
        var configuration = server.configuration()
        let refusal = try await reason(configuration)
        guard case .connectionFailed(let message)? = refusal else { return #expect(Bool(false), "\(String(describing: refusal))") }
        #expect(!message.isEmpty)
        let identity = try #require(server.secure).authority.issue("Numenius", usage: .client)
        configuration.tls.clientCertificate = .pem(Data(identity.chain.utf8), key: Data(identity.key.utf8))
        #expect(try await reason(configuration) == nil)
    }

    @Test("a server without TLS, one that is not there, and a name that is unknown are errors that say so") func others() async throws {
        let plain = try FakeServer(response: "-ERR\r\n", isTCP: true)
        var configuration = RedisConfiguration(.tls(host: "localhost", port: plain.port))
        configuration.commandTimeout = .seconds(5)
        configuration.connectTimeout = .seconds(10)
        let wrong = try await reason(configuration)
        guard case .connectionFailed? = wrong else { return #expect(Bool(false), "\(String(describing: wrong))") }
        plain.end()
        let absent = try await reason(configuration)
        guard case .connectionFailed? = absent else { return #expect(Bool(false), "\(String(describing: absent))") }
        // A label of a name has at most 63 bytes: no server is asked.
        configuration.address = .tls(host: String(repeating: "x", count: 64))
        let unknown = try await reason(configuration)
        guard case .unresolvable? = unknown else { return #expect(Bool(false), "\(String(describing: unknown))") }
    }

    @Test("a server that accepts and stays silent ends an attempt after the connect timeout") func silent() async throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let port = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                _ = bind(listener, address, length)
                getsockname(listener, address, &length)
                return listen(listener, 16)
            }
        }
        #expect(port == 0)
        var configuration = RedisConfiguration(.tls(host: "127.0.0.1", port: Int(UInt16(bigEndian: address.sin_port))))
        configuration.commandTimeout = .seconds(20)
        configuration.connectTimeout = .milliseconds(50)
        #expect(try await reason(configuration) == .silent)
    }

    @Test("what was received is read before the end, in order, and receiving pauses until then") func order() throws {
        let streams = SecureStreams(RedisConfiguration(.tls(host: "127.0.0.1", port: 1))) {}
        defer { streams.shutDown() }
        let stream = streams.open("127.0.0.1", 1)
        let piece = (0..<(700 << 10)).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let actions = (0..<2).map { _ in piece.withUnsafeBytes { stream.stream(1, didReceive: $0) } }
        #expect(actions == [.proceed, .pause])
        stream.streamDidEndReceiving(1)
        var received: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let progress = buffer.withUnsafeMutableBytes { stream.read(into: $0) }
            guard case .count(let count) = progress else {
                // The connection may have failed first: nothing listens on the port.
                guard case .failed = progress else { return #expect(Bool(false), "\(progress)") }
                break
            }
            received += buffer[..<count]
        }
        #expect(received == piece + piece)
    }

    @Test("stores work over TLS: a limit, and a cache that two clients share") func stores() async throws {
        let server = try await RedisServer(isSecure: true)
        let (first, second) = (try server.client(), try server.client())
        let limit = RateLimit(10, per: .seconds(100), burst: 5)
        guard case .granted(5, _) = try await RedisRateLimitStore(first).acquire(8, of: "a", limit: limit) else {
            return #expect(Bool(false))
        }
        guard case .wait = try await RedisRateLimitStore(second).acquire(1, of: "a", limit: limit) else { return #expect(Bool(false)) }
        let host = try LoopbackServer { _, _ in
            var response = ServerResponse.ok("text")
            response.headers.append(ServerField("Cache-Control", "max-age=60"))
            return response
        }
        defer { host.stop() }
        for client in [first, second] {
            let cache = ResponseCache.redis(RedisCacheStorage(client))
            let manager = CurlewSessionTestSupport.makeManager { $0.cache = cache }
            #expect(try await manager.request(host.url("/")).validate().serializingString().value == "text")
        }
        #expect(host.requests.count == 1)
    }
}
#endif
