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
public struct DefaultDownloadResponse: HoldsDownloadedFile, Sendable {
    let parts: ResponseParts
    let file: DownloadedFile
    /// The error with which the request failed; `nil` if it succeeded.
    public let error: (any Error)?

    init(
        context: ResponseContext, temporaryURL: URL?, destinationURL: URL?, resumption: ResumeDataSource, error: (any Error)?,
        timeline: Timeline, metrics: TaskMetrics
    ) {
        parts = ResponseParts(context: context, timeline: timeline, metrics: metrics)
        file = DownloadedFile(temporaryURL: temporaryURL, destinationURL: destinationURL, resumption: resumption)
        self.error = error
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
public struct DownloadResponse<Value>: HoldsDownloadedFile {
    let parts: ResponseParts
    let file: DownloadedFile
    /// The serialized value, or the error with which the request or the serializer failed.
    public let result: Result<Value, any Error>

    /// The value of a success, else `nil`.
    public var value: Value? { try? result.get() }
    /// The error of a failure, else `nil`.
    public var error: (any Error)? { if case .failure(let error) = result { error } else { nil } }
    /// The downloaded file, at ``DownloadedResponse/destinationURL`` if it was moved there, otherwise at
    /// ``DownloadedResponse/temporaryURL``; `nil` if it was removed.
    public let fileURL: URL?

    init(
        context: ResponseContext, temporaryURL: URL?, destinationURL: URL?, fileURL: URL?, resumption: ResumeDataSource,
        result: Result<Value, any Error>, timeline: Timeline, metrics: TaskMetrics
    ) {
        self.fileURL = fileURL
        parts = ResponseParts(context: context, timeline: timeline, metrics: metrics)
        file = DownloadedFile(temporaryURL: temporaryURL, destinationURL: destinationURL, resumption: resumption)
        self.result = result
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
            context: parts.context, temporaryURL: temporaryURL, destinationURL: destinationURL, fileURL: fileURL,
            resumption: file.resumption, result: result, timeline: timeline, metrics: metrics)
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

extension DownloadResponse: SummarizedResponse {
    /// `SUCCESS` or `FAILURE` with the value or error, in a line: control characters are escaped.
    package var line: String { result.summary }

    var bodySummary: String {
        "[TemporaryURL]: \(temporaryURL?.path ?? "none")\n[DestinationURL]: \(destinationURL?.path ?? "none")"
            + "\n[ResumeData]: \(file.resumption.count.map { "\($0) bytes" } ?? "none")"
    }
}
