// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// The metrics of a request: one entry for each exchange, including redirects, authenticated retries and the exchanges of failed attempts.
public struct TaskMetrics: Sendable, Hashable {
    /// The metrics of the exchanges, in order, including failed ones.
    public let transactionMetrics: [TransferMetrics]
    /// The number of redirects followed in the last attempt.
    public let redirectCount: Int

    /// Creates metrics from those of exchanges.
    public init(transactionMetrics: [TransferMetrics] = [], redirectCount: Int = 0) {
        self.transactionMetrics = transactionMetrics
        self.redirectCount = redirectCount
    }

    /// The metrics of the last exchange, which brought the response or failed; `nil` if none was started.
    public var last: TransferMetrics? { transactionMetrics.last }

    /// Whether the response is a cached one, either fresh or validated with the server.
    public var isFromCache: Bool { last?.isFromCache ?? false }
}
