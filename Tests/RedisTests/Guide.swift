// SPDX-License-Identifier: Apache-2.0
#if Redis
// snippet: manager
import Curlew
import CurlewRedis
import CurlewResilience

func makeManager(_ authenticator: ServiceAuthenticator) throws -> SessionManager {
    let redis = try RedisClient(RedisConfiguration(.unix(path: "/run/redis/redis.sock")))
    var configuration = SessionConfiguration()
    configuration.cache = .redis(RedisCacheStorage(redis))
    configuration.cookies = .redis(redis)
    configuration.use(Resilience(rateLimiter: RateLimiter(RateLimit(500), name: "service", store: RedisRateLimitStore(redis))))
    let shared = FleetAuthenticator(authenticator, client: redis, name: "service")
    return SessionManager(
        configuration: configuration, interceptor: AuthenticationInterceptor(authenticator: shared))
}
// end

// snippet: breaker
func breaker(_ redis: RedisClient) -> CircuitBreaker {
    var breaker = CircuitBreaker(name: "service")
    breaker.shared = RedisPolicyState(redis)
    return breaker
}
// end

// snippet: tls
func configuration(authority: String, certificate: ClientCertificate) -> RedisConfiguration {
    var configuration = RedisConfiguration(.tls(host: "redis.example.org", port: 6380))
    configuration.tls.certificateAuthorityFile = authority
    configuration.tls.clientCertificate = certificate
    return configuration
}
// end

// snippet: sentinels
func fleetConfiguration(password: @escaping @Sendable () async throws -> String) -> RedisConfiguration {
    let sentinels = (1...3).map { RedisConfiguration.Address.tls(host: "sentinel\($0).example.org", port: 26_379) }
    var configuration = RedisConfiguration(.sentinels(sentinels, master: "service"))
    configuration.credentials = RedisCredentials(username: "app", password: password)
    configuration.sentinelCredentials = RedisCredentials(username: "watcher", password: "…")
    return configuration
}
// end

/// An authenticator of the program.
final class ServiceAuthenticator: AsyncAuthenticator {
    struct Token: AuthenticationCredential, Codable, Sendable {
        let text: String
        var requiresRefresh: Bool { false }
    }

    func apply(_ credential: Token, to urlRequest: inout URLRequest) {
        urlRequest.setValue("Bearer \(credential.text)", forHTTPHeaderField: "Authorization")
    }

    func credential(replacing expired: Token?, for manager: SessionManager) async throws -> Token { Token(text: "new") }

    func didRequest(_ urlRequest: URLRequest, with response: HTTPURLResponse, failDueToAuthenticationError error: any Error) -> Bool {
        response.statusCode == 401
    }

    func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: Token) -> Bool {
        urlRequest.value(forHTTPHeaderField: "Authorization") == "Bearer \(credential.text)"
    }
}
#endif
