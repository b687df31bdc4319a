// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A data or upload request's response as it came.
public struct DefaultDataResponse: Sendable {
    private let context: ResponseContext
    /// The body; empty when none came, `nil` when it was streamed.
    public let data: Data?
    /// Why the request failed; `nil` when it did not.
    public let error: (any Error)?
    /// When what happened.
    public let timeline: Timeline
    /// What was measured, also of a request that failed.
    public let metrics: TaskMetrics

    /// The request as it went out.
    public var request: URLRequest? { context.request }
    /// The response's status and header fields; `nil` when none came.
    public var response: HTTPURLResponse? { context.response }
    /// The same as it came: fields in their order and with their repetitions, reason and version.
    public var responseHead: ResponseHead? { context.head }

    init(context: ResponseContext, data: Data?, error: (any Error)?, timeline: Timeline, metrics: TaskMetrics) {
        self.context = context
        self.data = data
        self.error = error
        self.timeline = timeline
        self.metrics = metrics
    }

    /// Makes a response of its parts.
    public init(
        request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?, timeline: Timeline = Timeline(),
        metrics: TaskMetrics = TaskMetrics()
    ) {
        self.init(
            context: ResponseContext(request: request, response: response), data: data, error: error, timeline: timeline, metrics: metrics)
    }
}

/// A data or upload request's response, serialized.
public struct DataResponse<Value> {
    private let context: ResponseContext
    /// The body; empty when none came, `nil` when it was streamed.
    public let data: Data?
    /// What the serializer made of it, or why the request failed.
    public let result: Result<Value, any Error>
    /// When what happened.
    public let timeline: Timeline
    /// What was measured, also of a request that failed.
    public let metrics: TaskMetrics

    /// The request as it went out.
    public var request: URLRequest? { context.request }
    /// The response's status and header fields; `nil` when none came.
    public var response: HTTPURLResponse? { context.response }
    /// The same as it came: fields in their order and with their repetitions, reason and version.
    public var responseHead: ResponseHead? { context.head }
    /// The value, if there is one.
    public var value: Value? { try? result.get() }
    /// The error, if there is one.
    public var error: (any Error)? { if case .failure(let error) = result { error } else { nil } }

    init(context: ResponseContext, data: Data?, result: Result<Value, any Error>, timeline: Timeline, metrics: TaskMetrics) {
        self.context = context
        self.data = data
        self.result = result
        self.timeline = timeline
        self.metrics = metrics
    }

    /// Makes a response of its parts.
    public init(
        request: URLRequest?, response: HTTPURLResponse?, data: Data?, result: Result<Value, any Error>, timeline: Timeline = Timeline(),
        metrics: TaskMetrics = TaskMetrics()
    ) {
        self.init(
            context: ResponseContext(request: request, response: response), data: data, result: result, timeline: timeline,
            metrics: metrics)
    }

    private func with<T>(_ result: Result<T, any Error>) -> DataResponse<T> {
        DataResponse<T>(context: context, data: data, result: result, timeline: timeline, metrics: metrics)
    }

    /// The response with its value changed; a failure stays.
    public func map<T>(_ transform: (Value) -> T) -> DataResponse<T> {
        with(result.map(transform))
    }

    /// The response with its value changed by something that may throw, which is then its failure.
    public func flatMap<T>(_ transform: (Value) throws -> T) -> DataResponse<T> {
        with(result.flatMap { value in Result { try transform(value) } })
    }

    /// The response with its error changed; a value stays.
    public func mapError<E: Error>(_ transform: (any Error) -> E) -> DataResponse<Value> {
        with(result.mapError { transform($0) })
    }

    /// The response with its error changed by something that may throw, which is then its failure.
    public func flatMapError<E: Error>(_ transform: (any Error) throws -> E) -> DataResponse<Value> {
        with(result.mapError { error in do { return try transform(error) } catch { return error } })
    }
}

extension DataResponse: Sendable where Value: Sendable {}

// MARK: - CustomStringConvertible

extension DataResponse: CustomStringConvertible, CustomDebugStringConvertible {
    /// Whether it is a success, and its value or error, in a line: control characters are escaped.
    public var description: String { result.summary }

    /// The request, the response, the result and the times, a line each. Bodies and credentials are left out.
    public var debugDescription: String {
        ResponseSummary.lines(context, body: "[Data]: \(data?.count ?? 0) bytes", result: result.summary, timeline: timeline)
    }
}

extension Result {
    /// Whether it is a success, and its value or error, with control characters escaped.
    package var summary: String {
        switch self {
        case .success(let value): Redaction.escaped("SUCCESS: \(value)")
        case .failure(let error): Redaction.escaped("FAILURE: \(error)")
        }
    }
}

/// What the responses have in common when they describe themselves.
enum ResponseSummary {
    static func lines(_ context: ResponseContext, body: String, result: String, timeline: Timeline) -> String {
        let request = context.request.map { "\($0.httpMethod ?? "GET") \(($0.url?.absoluteString ?? "").redactedURL)" } ?? "none"
        let response = context.head.map { "\($0.statusCode)" } ?? "none"
        return [
            "[Request]: \(request)", "[Response]: \(response)", body, "[Result]: \(result)", "[Timeline]: \(timeline.debugDescription)",
        ].joined(separator: "\n")
    }
}
