// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// What the responses of all kinds of requests have: ``DataResponse``, ``DownloadResponse``, and those without a serializer.
public protocol CompletedResponse {
    /// The request as sent.
    var request: URLRequest? { get }
    /// The response's status and header fields; `nil` if none was received.
    var response: HTTPURLResponse? { get }
    /// The response's head as received: fields in order and repeated, with reason phrase and version.
    var responseHead: ResponseHead? { get }
    /// The fields that followed the body, in the order received; empty if there were none. See ``Request/responseTrailers``.
    var responseTrailers: HTTPHeaders { get }
    /// The times of the request's phases.
    var timeline: Timeline { get }
    /// The request's metrics, also if it failed.
    var metrics: TaskMetrics { get }
}

/// What the response of a download has: ``DownloadResponse``, and ``DefaultDownloadResponse``.
public protocol DownloadedResponse: CompletedResponse {
    /// The file to which the body was written; if it was moved, it is at ``destinationURL`` instead.
    ///
    /// `nil` if the file was removed: that of an incomplete body, and that of a destination known from the start if the response was refused,
    /// whenever that happened.
    var temporaryURL: URL? { get }
    /// The file's destination; `nil` without one, and if the file was removed, as ``temporaryURL`` is.
    ///
    /// If the file could not be moved to the destination that a closure has returned, it is still at ``temporaryURL``.
    var destinationURL: URL? { get }
    /// The data for resuming a failed download; see ``DownloadRequest/resumeData``.
    var resumeData: Data? { get }
}

// MARK: - The parts that they hold

/// The parts that responses of all kinds have.
struct ResponseParts: Sendable {
    let context: ResponseContext
    let timeline: Timeline
    let metrics: TaskMetrics
}

/// A response that has its properties from these parts.
protocol HoldsResponseParts: CompletedResponse {
    var parts: ResponseParts { get }
}

extension HoldsResponseParts {
    /// The request as sent.
    public var request: URLRequest? { parts.context.request }
    /// The response's status and header fields; `nil` if none was received.
    public var response: HTTPURLResponse? { parts.context.response }
    /// The response's head as received.
    public var responseHead: ResponseHead? { parts.context.head }
    /// The fields that followed the body.
    public var responseTrailers: HTTPHeaders { parts.context.trailers }
    /// The times of the request's phases.
    public var timeline: Timeline { parts.timeline }
    /// The request's metrics, also if it failed.
    public var metrics: TaskMetrics { parts.metrics }
}

/// The file of a download, and what resumes it.
struct DownloadedFile: Sendable {
    let temporaryURL: URL?
    let destinationURL: URL?
    let resumption: ResumeDataSource
}

/// A download's response that has its properties from these parts.
protocol HoldsDownloadedFile: HoldsResponseParts, DownloadedResponse {
    var file: DownloadedFile { get }
}

extension HoldsDownloadedFile {
    /// The file to which the body was written.
    public var temporaryURL: URL? { file.temporaryURL }
    /// The file's destination.
    public var destinationURL: URL? { file.destinationURL }
    /// The data for resuming a failed download.
    public var resumeData: Data? { file.resumption.data }
}
