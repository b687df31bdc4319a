// SPDX-License-Identifier: Apache-2.0
// snippet: manager
import Curlew
import CurlewResilience

func makeManager() -> SessionManager {
    var configuration = SessionConfiguration()
    configuration.cache = .memory()
    configuration.use(
        Resilience(
            coalescing: Coalescing(), staleIfError: .seconds(3_600), breaker: CircuitBreaker(),
            rateLimiter: RateLimiter(RateLimit(500, burst: 50)), retryBudget: RetryBudget(), hedging: Hedging()))
    return SessionManager(configuration: configuration, interceptor: RetryPolicy())
}
// end

// snippet: refusals
func load(_ url: String, with manager: SessionManager) async throws -> Data? {
    do {
        return try await manager.request(url).validate().serializingData().value
    } catch CurlewError.transferFailed(let failure) where failure.kind == .circuitOpen {
        print("The service is down; the next trial is in \(failure.retryAfter ?? .zero).")
        return nil
    }
}
// end
