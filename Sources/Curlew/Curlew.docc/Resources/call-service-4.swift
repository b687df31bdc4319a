import Curlew
import CurlewResilience
import Foundation

struct Price: Codable, Sendable, Equatable {
    let article: String
    let cents: Int
}

struct Prices: Sendable {
    let url: String
    let manager: SessionManager

    func price(of article: String) async throws -> Price {
        let options = RequestOptions(deadline: .milliseconds(800), name: "GET /prices/{article}")
        return try await manager.request("\(url)/prices/\(article)", options: options)
            .validate().serializingDecodable(Price.self).value
    }
}

extension Prices {
    /// The settings of this peer: short timeouts inside one data center, and bodies of a size that can be held.
    static var configuration: SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.headers = [.userAgent("shop/1.0")]
        configuration.connectTimeout = .milliseconds(300)
        configuration.idleTimeout = .seconds(2)
        configuration.maximumConnectionsPerHost = 32
        configuration.maximumBodySize = 1 << 20
        configuration.use(
            Resilience(
                breaker: CircuitBreaker(minimumCalls: 20, openDuration: .seconds(10)),
                rateLimiter: RateLimiter(RateLimit(200, burst: 20)), retryBudget: RetryBudget()))
        return configuration
    }

    init(url: String) {
        self.init(url: url, manager: SessionManager(configuration: Self.configuration, interceptor: RetryPolicy()))
    }
}

/// What the shop answers while prices can't be had.
struct PricesUnavailable: Error {
    let retryAfter: Duration
}

extension Prices {
    /// The prices of a page: all at once, within the time that its visitor still has.
    func prices(of articles: [String], within time: Duration) async throws -> [Price] {
        do {
            return try await withDeadline(time) {
                try await withThrowingTaskGroup(of: Price.self) { group in
                    for article in articles { group.addTask { try await price(of: article) } }
                    return try await group.reduce(into: []) { $0.append($1) }.sorted { $0.article < $1.article }
                }
            }
        } catch CurlewError.transferFailed(let failure) where failure.kind == .circuitOpen {
            throw PricesUnavailable(retryAfter: failure.retryAfter ?? .seconds(10))
        }
    }

    /// For the end of the process: requests in flight may finish.
    func shutdown() async { await manager.shutdown(gracePeriod: .seconds(10)) }
}
