// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The response of a data or upload request, not serialized.
public struct DefaultDataResponse: Sendable {
    private let context: ResponseContext
    /// The body; empty if there was none, `nil` if it was streamed.
    public let data: Data?
    /// The error with which the request failed; `nil` if it succeeded.
    public let error: (any Error)?
    /// The times of the request's phases.
    public let timeline: Timeline
    /// The request's metrics, also if it failed.
    public let metrics: TaskMetrics

    /// The request as sent.
    public var request: URLRequest? { context.request }
    /// The response's status and header fields; `nil` if none was received.
    public var response: HTTPURLResponse? { context.response }
    /// The response's head as received: fields in order and repeated, with reason phrase and version.
    public var responseHead: ResponseHead? { context.head }
    /// The fields that followed the body, in the order received; empty if there were none. See ``Request/responseTrailers``.
    public var responseTrailers: HTTPHeaders { context.trailers }

    init(context: ResponseContext, data: Data?, error: (any Error)?, timeline: Timeline, metrics: TaskMetrics) {
        self.context = context
        self.data = data
        self.error = error
        self.timeline = timeline
        self.metrics = metrics
    }

    /// Creates a response from its parts.
    public init(
        request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?, timeline: Timeline = Timeline(),
        metrics: TaskMetrics = TaskMetrics()
    ) {
        self.init(
            context: ResponseContext(request: request, response: response), data: data, error: error, timeline: timeline, metrics: metrics)
    }
}

/// The serialized response of a data or upload request.
public struct DataResponse<Value> {
    private let context: ResponseContext
    /// The body; empty if there was none, `nil` if it was streamed.
    public let data: Data?
    /// The serialized value, or the error with which the request or the serializer failed.
    public let result: Result<Value, any Error>
    /// The times of the request's phases.
    public let timeline: Timeline
    /// The request's metrics, also if it failed.
    public let metrics: TaskMetrics

    /// The request as sent.
    public var request: URLRequest? { context.request }
    /// The response's status and header fields; `nil` if none was received.
    public var response: HTTPURLResponse? { context.response }
    /// The response's head as received: fields in order and repeated, with reason phrase and version.
    public var responseHead: ResponseHead? { context.head }
    /// The fields that followed the body, in the order received; empty if there were none. See ``Request/responseTrailers``.
    public var responseTrailers: HTTPHeaders { context.trailers }
    /// The value of a success, else `nil`.
    public var value: Value? { try? result.get() }
    /// The error of a failure, else `nil`.
    public var error: (any Error)? { if case .failure(let error) = result { error } else { nil } }

    init(context: ResponseContext, data: Data?, result: Result<Value, any Error>, timeline: Timeline, metrics: TaskMetrics) {
        self.context = context
        self.data = data
        self.result = result
        self.timeline = timeline
        self.metrics = metrics
    }

    /// Creates a response from its parts.
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

    /// Returns the response with its value transformed; a failure is unchanged.
    public func map<T>(_ transform: (Value) -> T) -> DataResponse<T> {
        with(result.map(transform))
    }

    /// Returns the response with its value transformed by a throwing closure, whose error becomes the failure.
    public func flatMap<T>(_ transform: (Value) throws -> T) -> DataResponse<T> {
        with(result.flatMap { value in Result { try transform(value) } })
    }

    /// Returns the response with its error transformed; a value is unchanged.
    public func mapError<E: Error>(_ transform: (any Error) -> E) -> DataResponse<Value> {
        with(result.mapError { transform($0) })
    }

    /// Returns the response with its error transformed by a throwing closure, whose error becomes the failure.
    public func flatMapError<E: Error>(_ transform: (any Error) throws -> E) -> DataResponse<Value> {
        with(result.mapError { error in do { return try transform(error) } catch { return error } })
    }
}

extension DataResponse: Sendable where Value: Sendable {}

// MARK: - CustomStringConvertible

extension DataResponse: CustomStringConvertible, CustomDebugStringConvertible {
    /// `SUCCESS` or `FAILURE` with the value or error, in a line: control characters are escaped.
    public var description: String { result.summary }

    /// The request, the status, the body's size, the result and the times, a line each, without bodies and credentials.
    public var debugDescription: String {
        ResponseSummary.lines(context, body: "[Data]: \(data?.count ?? 0) bytes", result: result.summary, timeline: timeline)
    }
}

extension Result {
    /// `SUCCESS` or `FAILURE` with the value or error, with control characters escaped.
    package var summary: String {
        switch self {
        case .success(let value): Redaction.escaped("SUCCESS: \(value)")
        case .failure(let error): Redaction.escaped("FAILURE: \(error)")
        }
    }
}

/// The debug description that data and download responses share.
enum ResponseSummary {
    static func lines(_ context: ResponseContext, body: String, result: String, timeline: Timeline) -> String {
        let request = context.request.map { "\($0.httpMethod ?? "GET") \(($0.url?.absoluteString ?? "").redactedURL)" } ?? "none"
        let response = context.head.map { "\($0.statusCode)" } ?? "none"
        return [
            "[Request]: \(request)", "[Response]: \(response)", body, "[Result]: \(result)", "[Timeline]: \(timeline.debugDescription)",
        ].joined(separator: "\n")
    }
}
