// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import Testing

@testable import CurlewCore

@Suite struct InterceptionTests {
    private final class Both: RequestInterceptor, Sendable {}
    private struct Value: RequestInterceptor, Equatable {
        let name: String
    }

    @Test("an adapter that also retries uses both halves") func adapter() {
        var interception = Interception()
        interception.adapter = Both()
        #expect(interception.effectiveRetrier is Both)
        #expect(interception.interceptor is Both)
    }

    @Test("a retrier that also adapts uses both halves") func retrier() {
        var interception = Interception()
        interception.retrier = Value(name: "a")
        #expect((interception.effectiveAdapter as? Value)?.name == "a")
    }

    @Test("the same object or value as adapter and retrier counts once") func same() {
        var interception = Interception()
        let both = Both()
        interception.adapter = both
        interception.retrier = both
        #expect(interception.effectiveAdapter as? Both === both)
        #expect(interception.effectiveRetrier as? Both === both)
        let value = Value(name: "a name that is too long to be stored in place")
        interception.set(value)
        #expect(interception.effectiveAdapter is Value)
        #expect(interception.effectiveRetrier is Value)
    }

    @Test("two different ones count both, each in its role first") func different() throws {
        var interception = Interception()
        interception.adapter = Value(name: "adapter")
        interception.retrier = Value(name: "retrier")
        let adapters = try #require(interception.effectiveAdapter as? Interceptor).adapters.compactMap { ($0 as? Value)?.name }
        #expect(adapters == ["adapter", "retrier"])
        let retriers = try #require(interception.effectiveRetrier as? Interceptor).retriers.compactMap { ($0 as? Value)?.name }
        #expect(retriers == ["retrier", "adapter"])
        interception.set(nil)
        #expect(interception.effectiveAdapter == nil && interception.effectiveRetrier == nil && interception.interceptor == nil)
    }
}
