// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The response of a data or upload request, not serialized.
public struct DefaultDataResponse: HoldsResponseParts, Sendable {
    let parts: ResponseParts
    /// The body; empty if there was none, `nil` if it was streamed.
    public let data: Data?
    /// The error with which the request failed; `nil` if it succeeded.
    public let error: (any Error)?

    init(context: ResponseContext, data: Data?, error: (any Error)?, timeline: Timeline, metrics: TaskMetrics) {
        parts = ResponseParts(context: context, timeline: timeline, metrics: metrics)
        self.data = data
        self.error = error
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
public struct DataResponse<Value>: HoldsResponseParts {
    let parts: ResponseParts
    /// The body; empty if there was none, `nil` if it was streamed.
    public let data: Data?
    /// The serialized value, or the error with which the request or the serializer failed.
    public let result: Result<Value, any Error>

    /// The value of a success, else `nil`.
    public var value: Value? { try? result.get() }
    /// The error of a failure, else `nil`.
    public var error: (any Error)? { if case .failure(let error) = result { error } else { nil } }

    init(context: ResponseContext, data: Data?, result: Result<Value, any Error>, timeline: Timeline, metrics: TaskMetrics) {
        parts = ResponseParts(context: context, timeline: timeline, metrics: metrics)
        self.data = data
        self.result = result
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
        DataResponse<T>(context: parts.context, data: data, result: result, timeline: timeline, metrics: metrics)
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

extension DataResponse: SummarizedResponse {
    /// `SUCCESS` or `FAILURE` with the value or error, in a line: control characters are escaped.
    package var line: String { result.summary }

    var bodySummary: String { "[Data]: \(data?.count ?? 0) bytes" }
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

/// A serialized response, which describes itself in several lines too.
protocol SummarizedResponse: HoldsResponseParts, LineConvertible, CustomDebugStringConvertible {
    /// The lines about the body.
    var bodySummary: String { get }
}

extension SummarizedResponse {
    /// The request, the status, the body's size or its files, the result and the times, a line each, without bodies and credentials.
    public var debugDescription: String {
        let request = request.map { "\($0.httpMethod ?? "GET") \(($0.url?.absoluteString ?? "").redactedURL)" } ?? "none"
        let status = responseHead.map { "\($0.statusCode)" } ?? "none"
        return [
            "[Request]: \(request)", "[Response]: \(status)", bodySummary, "[Result]: \(line)", "[Timeline]: \(timeline.debugDescription)",
        ].joined(separator: "\n")
    }
}
