// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

// MARK: - State

extension BaseRequest {
    /// The task of the newest attempt; `nil` before the start.
    public var requestTask: SessionTask? { state.withLock { $0.task } }
    /// The identifier of the first attempt's task, unchanged by retries. 0 before the start.
    public var requestIdentifier: Int { state.withLock { $0.identifier } }
    /// The request currently being sent: after a redirect it differs from ``originalRequest``.
    public var currentRequest: URLRequest? { requestTask?.currentRequest ?? originalRequest }
    /// The request with which the newest attempt began; `nil` before the start.
    public var originalRequest: URLRequest? { state.withLock { $0.originalRequest } }
    /// The status code of the response; 0 without one.
    public var responseStatusCode: Int { response?.statusCode ?? 0 }
    /// The header fields of the response, found by any spelling of their names (RFC 9110, section 5.1), sorted by name; `nil` without a
    /// response.
    public var responseHeaders: HTTPHeaders? {
        response.map { response in
            HTTPHeaders(
                response.allHeaderFields.map { HTTPHeader(name: "\($0.base)", value: "\($1)") }.sorted { $0.name < $1.name })
        }
    }
    /// The server's time of the response, by its clock: the header field `Date` (RFC 9110, section 6.6.1).
    public var responseServerTime: Date? {
        response?.value(forHTTPHeaderField: "Date").flatMap { HTTPDate.date(from: $0) }
    }

    /// Whether the request has finished successfully.
    public var isFinished: Bool { state.withLock { $0.isComplete && !$0.isStopped && $0.result.error == nil } }
    /// Whether the request has finished with an error.
    public var isFailed: Bool { state.withLock { $0.isComplete && !$0.isStopped && $0.result.error != nil } }
    /// Whether the request was stopped; reset when it is started again.
    public var isCancelled: Bool { state.withLock { $0.isStopped } }
    /// Whether the request is in flight, including the time between two attempts.
    public var isExecuting: Bool { state.withLock { $0.run != nil && $0.isInFlight } }

    /// The number of attempts; 1 for a request that was not retried.
    public var requestTotalCount: Int { state.withLock { $0.totalCount } }
    /// The time in seconds since the first attempt began, retry delays included; updated at the end of each attempt.
    public var requestTotalTime: TimeInterval { state.withLock { $0.totalTime } }
    /// The time of the newest start.
    public var requestStartTime: Date? { state.withLock { $0.startTime } }
    /// The metrics of the newest attempt.
    public var metrics: TaskMetrics? { state.withLock { $0.result.metrics } }
    /// The method as it is sent.
    public var requestMethodString: String { requestMethod().rawValue }

    var isInFlight: Bool { state.withLock { $0.isInFlight } }
    /// The bytes received from the network, regardless of a cached response; `nil` for a mocked response.
    var networkData: Data? { state.withLock { $0.result.isMocked ? nil : $0.result.data } }
}

extension RequestState {
    /// Whether the newest start has neither begun its callbacks nor been stopped completely.
    var isInFlight: Bool { stage == .starting || stage == .running || stage == .stopping }
    /// Whether a claimed start has not been run yet.
    func isPending(_ start: RequestStart) -> Bool { stage == .starting && starts == start.number }
    /// Whether the newest start has finished or is running its callbacks.
    var isComplete: Bool { stage == .delivering || stage == .ended }
}

// MARK: - Descriptions

extension BaseRequest: CustomStringConvertible, CustomReflectable {
    /// URL, method and argument, redacted (``/CurlewHTTP/Redaction``); control characters are escaped.
    public var description: String {
        let url = (currentRequest?.url?.absoluteString ?? requestUrl()).redactedURL
        let argument = requestArgument().map { "\(Redaction.current.object($0))" } ?? "nil"
        return Redaction.escaped("<\(type(of: self))>{ URL: \(url) } { method: \(requestMethodString) } { arguments: \(argument) }")
    }

    /// No children beyond the description, in subclasses as well: reflection would expose secrets.
    public var customMirror: Mirror { .redacted(self) }
}
