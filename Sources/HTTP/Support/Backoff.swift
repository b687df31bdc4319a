// SPDX-License-Identifier: Apache-2.0

/// Delays that grow with each failure in a row, up to a limit (exponential backoff). All in seconds.
package struct Backoff: Sendable {
    /// The delay after the first failure.
    package var first: TimeInterval
    /// The factor from one delay to the next.
    package var factor = 2.0
    /// The maximum delay.
    package var limit: TimeInterval

    package init(first: TimeInterval, factor: Double = 2, limit: TimeInterval) {
        self.first = first
        self.factor = factor
        self.limit = limit
    }

    /// Returns the delay after so many failures before the last one.
    ///
    /// - Parameter jitter: the fraction of the delay that is waited, 0 to 1, so that those that failed together do not retry together.
    package func delay(after failures: some BinaryInteger, jitter: Double = 1) -> TimeInterval {
        // Zero times infinity would not be a number, for which `minimum` and `maximum` return the other operand.
        let growth = Double.minimum(pow(factor, Double(failures)), 1e18)
        return Double.maximum(Double.minimum(first * growth, limit), 0) * Double.minimum(Double.maximum(jitter, 0), 1)
    }
}
