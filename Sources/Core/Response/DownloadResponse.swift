// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Where a response has its resume data from. Looking at the response does not take it: that makes the part file the user's.
enum ResumeDataSource: Sendable {
    case given(Data?)
    case kept(KeptPart?)

    var data: Data? {
        switch self {
        case .given(let data): data
        case .kept(let part): part?.take()
        }
    }

    var count: Int? {
        switch self {
        case .given(let data): data?.count
        case .kept(let part): part?.count
        }
    }
}

/// A download's response as it came.
public struct DefaultDownloadResponse: Sendable {
    private let context: ResponseContext
    /// Where the body was written; the file is no longer there when it went to a destination.
    public let temporaryURL: URL?
    /// Where the file went, or should have gone; `nil` without a destination.
    public let destinationURL: URL?
    private let resumption: ResumeDataSource
    /// Why the request failed; `nil` when it did not.
    public let error: (any Error)?
    /// When what happened.
    public let timeline: Timeline
    /// What was measured, also of a request that failed.
    public let metrics: TaskMetrics

    /// What is needed to go on with a failed download; see ``DownloadRequest/resumeData``.
    public var resumeData: Data? { resumption.data }
    /// The request as it went out.
    public var request: URLRequest? { context.request }
    /// The response's status and header fields; `nil` when none came.
    public var response: HTTPURLResponse? { context.response }
    /// The same as it came: fields in their order and with their repetitions, reason and version.
    public var responseHead: ResponseHead? { context.head }

    init(
        context: ResponseContext, temporaryURL: URL?, destinationURL: URL?, resumption: ResumeDataSource, error: (any Error)?,
        timeline: Timeline, metrics: TaskMetrics
    ) {
        self.context = context
        self.temporaryURL = temporaryURL
        self.destinationURL = destinationURL
        self.resumption = resumption
        self.error = error
        self.timeline = timeline
        self.metrics = metrics
    }

    /// Makes a response of its parts.
    public init(
        request: URLRequest?, response: HTTPURLResponse?, temporaryURL: URL?, destinationURL: URL?, resumeData: Data? = nil,
        error: (any Error)?, timeline: Timeline = Timeline(), metrics: TaskMetrics = TaskMetrics()
    ) {
        self.init(
            context: ResponseContext(request: request, response: response), temporaryURL: temporaryURL, destinationURL: destinationURL,
            resumption: .given(resumeData), error: error, timeline: timeline, metrics: metrics)
    }
}

/// A download's response, serialized.
public struct DownloadResponse<Value> {
    private let context: ResponseContext
    /// Where the body was written; the file is no longer there when it went to a destination.
    public let temporaryURL: URL?
    /// Where the file went, or should have gone; `nil` without a destination.
    public let destinationURL: URL?
    private let resumption: ResumeDataSource
    /// What the serializer made of it, or why the request failed.
    public let result: Result<Value, any Error>
    /// When what happened.
    public let timeline: Timeline
    /// What was measured, also of a request that failed.
    public let metrics: TaskMetrics

    /// What is needed to go on with a failed download; see ``DownloadRequest/resumeData``.
    public var resumeData: Data? { resumption.data }
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
    /// The file: at its destination, or where it was written.
    public var fileURL: URL? { destinationURL ?? temporaryURL }

    init(
        context: ResponseContext, temporaryURL: URL?, destinationURL: URL?, resumption: ResumeDataSource,
        result: Result<Value, any Error>, timeline: Timeline, metrics: TaskMetrics
    ) {
        self.context = context
        self.temporaryURL = temporaryURL
        self.destinationURL = destinationURL
        self.resumption = resumption
        self.result = result
        self.timeline = timeline
        self.metrics = metrics
    }

    /// Makes a response of its parts.
    public init(
        request: URLRequest?, response: HTTPURLResponse?, temporaryURL: URL?, destinationURL: URL?, resumeData: Data? = nil,
        result: Result<Value, any Error>, timeline: Timeline = Timeline(), metrics: TaskMetrics = TaskMetrics()
    ) {
        self.init(
            context: ResponseContext(request: request, response: response), temporaryURL: temporaryURL, destinationURL: destinationURL,
            resumption: .given(resumeData), result: result, timeline: timeline, metrics: metrics)
    }

    private func with<T>(_ result: Result<T, any Error>) -> DownloadResponse<T> {
        DownloadResponse<T>(
            context: context, temporaryURL: temporaryURL, destinationURL: destinationURL, resumption: resumption, result: result,
            timeline: timeline, metrics: metrics)
    }

    /// The response with its value changed; a failure stays.
    public func map<T>(_ transform: (Value) -> T) -> DownloadResponse<T> {
        with(result.map(transform))
    }

    /// The response with its value changed by something that may throw, which is then its failure.
    public func flatMap<T>(_ transform: (Value) throws -> T) -> DownloadResponse<T> {
        with(result.flatMap { value in Result { try transform(value) } })
    }

    /// The response with its error changed; a value stays.
    public func mapError<E: Error>(_ transform: (any Error) -> E) -> DownloadResponse<Value> {
        with(result.mapError { transform($0) })
    }

    /// The response with its error changed by something that may throw, which is then its failure.
    public func flatMapError<E: Error>(_ transform: (any Error) throws -> E) -> DownloadResponse<Value> {
        with(result.mapError { error in do { return try transform(error) } catch { return error } })
    }
}

extension DownloadResponse: Sendable where Value: Sendable {}

// MARK: - CustomStringConvertible

extension DownloadResponse: CustomStringConvertible, CustomDebugStringConvertible {
    /// Whether it is a success, and its value or error, in a line: control characters are escaped.
    public var description: String { result.summary }

    /// The request, the response, the files, the size of the resume data, the result and the times, a line each. Credentials are left out.
    public var debugDescription: String {
        let files =
            "[TemporaryURL]: \(temporaryURL?.path ?? "none")\n[DestinationURL]: \(destinationURL?.path ?? "none")"
            + "\n[ResumeData]: \(resumption.count.map { "\($0) bytes" } ?? "none")"
        return ResponseSummary.lines(context, body: files, result: result.summary, timeline: timeline)
    }
}
