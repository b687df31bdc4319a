// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The source of a response's resume data, which is created only when read: that transfers ownership of the part file to the user.
enum ResumeDataSource: Sendable {
    case given(Data?)
    case kept(ResumablePart?)

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

/// The response of a download, not serialized.
public struct DefaultDownloadResponse: Sendable {
    private let context: ResponseContext
    /// The file to which the body was written; if it was moved, it is at ``destinationURL`` instead.
    ///
    /// `nil` if the file was removed: that of an incomplete body, and that of a destination known from the start if the response was refused,
    /// whenever that happened.
    public let temporaryURL: URL?
    /// The file's destination; `nil` without one, and if the file was removed, as ``temporaryURL`` is.
    ///
    /// If the file could not be moved to the destination that a closure has returned, it is still at ``temporaryURL``.
    public let destinationURL: URL?
    private let resumption: ResumeDataSource
    /// The error with which the request failed; `nil` if it succeeded.
    public let error: (any Error)?
    /// The times of the request's phases.
    public let timeline: Timeline
    /// The request's metrics, also if it failed.
    public let metrics: TaskMetrics

    /// The data for resuming a failed download; see ``DownloadRequest/resumeData``.
    public var resumeData: Data? { resumption.data }
    /// The request as sent.
    public var request: URLRequest? { context.request }
    /// The response's status and header fields; `nil` if none was received.
    public var response: HTTPURLResponse? { context.response }
    /// The response's head as received: fields in order and repeated, with reason phrase and version.
    public var responseHead: ResponseHead? { context.head }
    /// The fields that followed the body, in the order received; empty if there were none. See ``Request/responseTrailers``.
    public var responseTrailers: HTTPHeaders { context.trailers }

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

    /// Creates a response from its parts.
    public init(
        request: URLRequest?, response: HTTPURLResponse?, temporaryURL: URL?, destinationURL: URL?, resumeData: Data? = nil,
        error: (any Error)?, timeline: Timeline = Timeline(), metrics: TaskMetrics = TaskMetrics()
    ) {
        self.init(
            context: ResponseContext(request: request, response: response), temporaryURL: temporaryURL, destinationURL: destinationURL,
            resumption: .given(resumeData), error: error, timeline: timeline, metrics: metrics)
    }
}

/// The serialized response of a download.
public struct DownloadResponse<Value> {
    private let context: ResponseContext
    /// The file to which the body was written; if it was moved, it is at ``destinationURL`` instead.
    ///
    /// `nil` if the file was removed: that of an incomplete body, and that of a destination known from the start if the response was refused,
    /// whenever that happened.
    public let temporaryURL: URL?
    /// The file's destination; `nil` without one, and if the file was removed, as ``temporaryURL`` is.
    ///
    /// If the file could not be moved to the destination that a closure has returned, it is still at ``temporaryURL``.
    public let destinationURL: URL?
    private let resumption: ResumeDataSource
    /// The serialized value, or the error with which the request or the serializer failed.
    public let result: Result<Value, any Error>
    /// The times of the request's phases.
    public let timeline: Timeline
    /// The request's metrics, also if it failed.
    public let metrics: TaskMetrics

    /// The data for resuming a failed download; see ``DownloadRequest/resumeData``.
    public var resumeData: Data? { resumption.data }
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
    /// The downloaded file, at ``destinationURL`` if it was moved there, otherwise at ``temporaryURL``; `nil` if it was removed.
    public let fileURL: URL?

    init(
        context: ResponseContext, temporaryURL: URL?, destinationURL: URL?, fileURL: URL?, resumption: ResumeDataSource,
        result: Result<Value, any Error>, timeline: Timeline, metrics: TaskMetrics
    ) {
        self.fileURL = fileURL
        self.context = context
        self.temporaryURL = temporaryURL
        self.destinationURL = destinationURL
        self.resumption = resumption
        self.result = result
        self.timeline = timeline
        self.metrics = metrics
    }

    /// Creates a response from its parts.
    public init(
        request: URLRequest?, response: HTTPURLResponse?, temporaryURL: URL?, destinationURL: URL?, resumeData: Data? = nil,
        result: Result<Value, any Error>, timeline: Timeline = Timeline(), metrics: TaskMetrics = TaskMetrics()
    ) {
        self.init(
            context: ResponseContext(request: request, response: response), temporaryURL: temporaryURL, destinationURL: destinationURL,
            fileURL: destinationURL ?? temporaryURL, resumption: .given(resumeData), result: result, timeline: timeline, metrics: metrics)
    }

    private func with<T>(_ result: Result<T, any Error>) -> DownloadResponse<T> {
        DownloadResponse<T>(
            context: context, temporaryURL: temporaryURL, destinationURL: destinationURL, fileURL: fileURL, resumption: resumption,
            result: result, timeline: timeline, metrics: metrics)
    }

    /// Returns the response with its value transformed; a failure is unchanged.
    public func map<T>(_ transform: (Value) -> T) -> DownloadResponse<T> {
        with(result.map(transform))
    }

    /// Returns the response with its value transformed by a throwing closure, whose error becomes the failure.
    public func flatMap<T>(_ transform: (Value) throws -> T) -> DownloadResponse<T> {
        with(result.flatMap { value in Result { try transform(value) } })
    }

    /// Returns the response with its error transformed; a value is unchanged.
    public func mapError<E: Error>(_ transform: (any Error) -> E) -> DownloadResponse<Value> {
        with(result.mapError { transform($0) })
    }

    /// Returns the response with its error transformed by a throwing closure, whose error becomes the failure.
    public func flatMapError<E: Error>(_ transform: (any Error) throws -> E) -> DownloadResponse<Value> {
        with(result.mapError { error in do { return try transform(error) } catch { return error } })
    }
}

extension DownloadResponse: Sendable where Value: Sendable {}

// MARK: - CustomStringConvertible

extension DownloadResponse: CustomStringConvertible, CustomDebugStringConvertible {
    /// `SUCCESS` or `FAILURE` with the value or error, in a line: control characters are escaped.
    public var description: String { result.summary }

    /// The request, the status, the files, the size of the resume data, the result and the times, a line each, without credentials.
    public var debugDescription: String {
        let files =
            "[TemporaryURL]: \(temporaryURL?.path ?? "none")\n[DestinationURL]: \(destinationURL?.path ?? "none")"
            + "\n[ResumeData]: \(resumption.count.map { "\($0) bytes" } ?? "none")"
        return ResponseSummary.lines(context, body: files, result: result.summary, timeline: timeline)
    }
}
