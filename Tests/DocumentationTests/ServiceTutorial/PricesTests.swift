// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewResilience
import CurlewTesting
import Testing

// As Prices.swift.

private func makePrices(_ mock: MockTransport) -> Prices {
    let manager = SessionManager(mock: mock, interceptor: RetryPolicy()) { configuration in
        let clock = configuration.virtualClock
        configuration = Prices.configuration
        configuration.virtualClock = clock
    }
    return Prices(url: "https://prices.example.org", manager: manager)
}

@Test func `a busy service is asked again`() async throws {
    let mock = MockTransport(clock: VirtualClock(.automatic))
    mock.stub(.get, "/prices/cup", respond: .status(503), .json(Price(article: "cup", cents: 990)))
    let prices = try await makePrices(mock).prices(of: ["cup"], within: .seconds(2))
    #expect(prices == [Price(article: "cup", cents: 990)])
    #expect(mock.requests.count == 2)
}

@Test func `a service that is down is left alone`() async throws {
    let mock = MockTransport(clock: VirtualClock(.automatic))
    mock.stub(.get, "/prices/{article}", respond: .failure(.connectionLost))
    let prices = makePrices(mock)
    for _ in 1...20 { _ = try? await prices.price(of: "cup") }
    let asked = mock.requests.count
    await #expect(throws: PricesUnavailable.self) { try await prices.prices(of: ["cup"], within: .seconds(1)) }
    #expect(mock.requests.count == asked)
}
