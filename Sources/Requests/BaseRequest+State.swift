// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

// MARK: - What it is and was

extension BaseRequest {
    /// The task of the newest attempt; `nil` before the start.
    public var requestTask: SessionTask? { state.withLock { $0.task } }
    /// The number of the first attempt's task: the same through all retries. 0 before the start.
    public var requestIdentifier: Int { state.withLock { $0.identifier } }
    /// What is being sent: after a redirect something else than ``originalRequest``.
    public var currentRequest: URLRequest? { requestTask?.currentRequest ?? originalRequest }
    /// What the newest attempt has sent at first; `nil` before the start.
    public var originalRequest: URLRequest? { state.withLock { $0.originalRequest } }
    /// The status of the answer; 0 without one.
    public var responseStatusCode: Int { response?.statusCode ?? 0 }
    /// The header fields of the response, found by any spelling of their names (RFC 9110, section 5.1), sorted by name; `nil` without a
    /// response.
    public var responseHeaders: HTTPHeaders? {
        response.map { response in
            HTTPHeaders(
                response.allHeaderFields.map { HTTPHeader(name: "\($0.base)", value: "\($1)") }.sorted { $0.name < $1.name })
        }
    }
    /// When the server has answered, by its clock: the header field `Date` (RFC 9110, section 6.6.1).
    public var responseServerTime: Date? {
        response?.value(forHTTPHeaderField: "Date").flatMap { HTTPDate.date(from: $0) }
    }

    /// Whether it is over and has succeeded.
    public var isFinished: Bool { state.withLock { $0.isOver && !$0.isStopped && $0.answer.error == nil } }
    /// Whether it is over and has failed.
    public var isFailed: Bool { state.withLock { $0.isOver && !$0.isStopped && $0.answer.error != nil } }
    /// Whether it was stopped; until it is started again.
    public var isCancelled: Bool { state.withLock { $0.isStopped } }
    /// Whether it is on its way, also between two attempts.
    public var isExecuting: Bool { state.withLock { $0.run != nil && $0.isUnderWay } }

    /// How many attempts were made; 1 for a request that was not tried again.
    public var requestTotalCount: Int { state.withLock { $0.totalCount } }
    /// How long it took from the first attempt on, waits included, in seconds; counted at the end of each attempt.
    public var requestTotalTime: TimeInterval { state.withLock { $0.totalTime } }
    /// When it was started.
    public var requestStartTime: Date? { state.withLock { $0.startTime } }
    /// What was measured of the newest attempt.
    public var metrics: TaskMetrics? { state.withLock { $0.answer.metrics } }
    /// The method as it is sent.
    public var requestMethodString: String { requestMethod().rawValue }

    var isUnderWay: Bool { state.withLock { $0.isUnderWay } }
    /// The bytes that the network has brought, whatever a cache says; `nil` for a mocked response.
    var networkData: Data? { state.withLock { $0.answer.isMocked ? nil : $0.answer.data } }
}

extension RequestState {
    /// Whether it was started, and neither its callbacks have begun nor its stop is over.
    var isUnderWay: Bool { stage == .starting || stage == .running || stage == .stopping }
    /// Whether a start that was claimed is still to be run.
    func holds(_ start: Int) -> Bool { stage == .starting && starts == start }
    /// Whether the newest start has come to its end, or its callbacks run.
    var isOver: Bool { stage == .delivering || stage == .ended }
}

// MARK: - Descriptions

extension BaseRequest: CustomStringConvertible, CustomReflectable {
    /// URL, method and argument, redacted (``/CurlewHTTP/Redaction``); control characters are escaped.
    public var description: String {
        let url = (currentRequest?.url?.absoluteString ?? requestUrl()).redactedURL
        let argument = requestArgument().map { "\(Redaction.current.object($0))" } ?? "nil"
        return Redaction.escaped("<\(type(of: self))>{ URL: \(url) } { method: \(requestMethodString) } { arguments: \(argument) }")
    }

    /// Nothing beyond the description, in subclasses neither.
    public var customMirror: Mirror { .redacted(self) }
}
