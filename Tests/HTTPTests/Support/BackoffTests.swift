// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@Suite struct BackoffTests {
    @Test("delays grow by the factor up to the limit") func growth() {
        #expect((0...4).map { Backoff(first: 0.5, limit: 5).delay(after: $0) } == [0.5, 1, 2, 4, 5])
        #expect((0...3).map { Backoff(first: 1, factor: 3, limit: 10).delay(after: $0) } == [1, 3, 9, 10])
        #expect((0...2).map { Backoff(first: 2, factor: 1, limit: 10).delay(after: $0) } == [2, 2, 2])
        #expect(Backoff(first: 8, limit: 5).delay(after: 0) == 5)
    }

    @Test("the jitter is a fraction of the delay", arguments: [(0.5, 2.0), (1, 4), (0, 0), (-1, 0), (7, 4), (.infinity, 4), (.nan, 0)])
    func jitter(_ jitter: Double, _ delay: Double) {
        #expect(Backoff(first: 1, limit: 60).delay(after: 2, jitter: jitter) == delay)
    }

    @Test("delays stay within the limit for any number of failures", arguments: [0, 0.1, 1e18, .infinity, .nan] as [Double])
    func extremes(_ first: Double) {
        for failures in [0, 1, 63, 64, 2000, .max] as [UInt] {
            for factor in [1, 2, 1e300, .infinity, .nan] {
                #expect((0...60).contains(Backoff(first: first, factor: factor, limit: 60).delay(after: failures)))
            }
        }
        #expect(Backoff(first: 0, limit: 60).delay(after: UInt.max) == 0)
        #expect(Backoff(first: first, limit: -1).delay(after: 1) == 0)
    }
}
