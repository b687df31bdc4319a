// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// What was measured of a request: one entry for each exchange it took, redirects and retries included.
public struct TaskMetrics: Sendable, Hashable {
    /// The exchanges in the order in which they happened, failed ones too.
    public let transactionMetrics: [TransferMetrics]
    /// The number of redirects followed in the last attempt.
    public let redirectCount: Int

    /// Makes metrics of exchanges.
    public init(transactionMetrics: [TransferMetrics] = [], redirectCount: Int = 0) {
        self.transactionMetrics = transactionMetrics
        self.redirectCount = redirectCount
    }

    /// The exchange that gave the response, or failed.
    public var last: TransferMetrics? { transactionMetrics.last }

    /// Whether the response was taken from the session's cache, without the host or confirmed by it.
    public var isFromCache: Bool { last?.isFromCache ?? false }
}
