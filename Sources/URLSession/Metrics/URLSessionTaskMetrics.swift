// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading

/// What was measured of a task, from its creation to its completion, also of one that has failed.
///
/// Holds the measurements, and makes the objects of the exchanges when they are first read. Thread-safe.
open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {  // what changes is behind a lock
    /// Where a response came from.
    public enum ResourceFetchType: Int, Sendable {
        /// Unknown: no response was received, or the URL was loaded without a network.
        case unknown = 0
        /// A server.
        case networkLoad = 1
        /// A server that has sent it without being asked. Does not occur: libcurl's support for it is not used.
        case serverPush = 2
        /// The session's cache, without asking a server.
        case localCache = 3
    }

    /// How a host's name was looked up.
    public enum DomainResolutionProtocol: Int, Sendable {
        /// By the system's resolver, which does not report how; or it was not looked up.
        case unknown = 0
        /// DNS over UDP. Does not occur.
        case udp = 1
        /// DNS over TCP. Does not occur.
        case tcp = 2
        /// DNS over TLS (RFC 7858). Does not occur.
        case tls = 3
        /// DNS over HTTPS (RFC 8484).
        case https = 4
    }

    /// What the objects of the exchanges are made of.
    private struct Source {
        let metrics: TaskMetrics
        let records: [ExchangeRecord]
        let request: URLRequest?
        let response: URLResponse?
    }

    /// The time from the task's creation to its completion.
    public let taskInterval: DateInterval
    /// The number of redirects that were followed.
    public let redirectCount: Int
    private let source: Source
    private let made = Lock<[URLSessionTaskTransactionMetrics]?>(nil)

    init(_ task: URLSessionTask) {
        let creation = task.values.withLock { $0.creation }
        let (metrics, records) = task.measured
        // The clock may have been set back.
        taskInterval = DateInterval(start: creation, end: max(creation, Date()))
        redirectCount = metrics.redirectCount
        source = Source(
            metrics: metrics, records: records, request: task.currentRequest ?? task.originalRequest, response: task.response)
        super.init()
    }

    /// The exchanges in order: those that were answered by a redirect or a challenge, and the last one. Empty if none was begun. Those of a
    /// WebSocket are its handshakes, without the messages after them.
    open var transactionMetrics: [URLSessionTaskTransactionMetrics] {
        made.withLock { made in
            if let made { return made }
            let transactions = makeTransactions()
            made = transactions
            return transactions
        }
    }

    private func makeTransactions() -> [URLSessionTaskTransactionMetrics] {
        let all = source.metrics.transactionMetrics
        return all.enumerated().map { index, metrics in
            let isLast = index == all.count - 1
            return URLSessionTaskTransactionMetrics(
                metrics, index < source.records.count ? source.records[index] : nil, request: source.request,
                response: isLast ? source.response : nil)
        }
    }

    /// The interval, the redirects and the exchanges, without secrets.
    open override var description: String {
        let exchanges = transactionMetrics.map { "\n  \($0)" }.joined()
        return "\(taskInterval.duration) s, redirects: \(redirectCount)\(exchanges)"
    }
}
