// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewHTTP
import CurlewRedis
import CurlewResilience
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct GuideTests {
    @Test("every block of the article is compiled, and everything compiled for it is in it") func sameCode() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/Redis/CurlewRedis.docc/CurlewRedis.md")
        #expect(try DocumentedCode.differences(page: page, sources: here.appendingPathComponent("Guide.swift")) == [])
    }

    @Test("a manager is made while its server is away, and its requests go to their hosts") func managerWithoutServer() async throws {
        let host = try LoopbackServer { request, _ in .ok(request.header("Authorization") ?? "") }
        let manager = try makeManager(ServiceAuthenticator())
        #expect(try await manager.request(host.url("/")).validate().serializingString().value == "Bearer new")
        manager.invalidateAndCancel()
    }

    @Test("the breaker of the article has a name, and a state to share") func sharedBreaker() throws {
        let redis = try RedisClient(RedisConfiguration(.unix(path: "/nonexistent/redis.sock")))
        let breaker = breaker(redis)
        #expect(breaker.name == "service" && breaker.shared is RedisPolicyState)
        redis.close()
    }

    @Test("the configuration of the article has the authority and the certificate") func secureConfiguration() {
        let configuration = configuration(authority: "/nonexistent/ca.pem", certificate: .pem(Data(), key: Data()))
        #expect(configuration.address == .tls(host: "redis.example.org", port: 6380))
        #expect(configuration.tls.certificateAuthorityFile == "/nonexistent/ca.pem")
        #expect(configuration.tls.clientCertificate != nil)
    }

    @Test("the configuration of the article with sentinels can be used") func sentinels() throws {
        let configuration = fleetConfiguration { "password" }
        #expect(
            configuration.address.description
                == "service of sentinel1.example.org:26379, sentinel2.example.org:26379, sentinel3.example.org:26379")
        try RedisClient(configuration).close()
    }
}
#endif
