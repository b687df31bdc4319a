// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// The result of a start: the response, and what was made of it.
struct RequestResult: @unchecked Sendable {  // the objects are only read once they are set
    var response: HTTPURLResponse?
    var data: Data?
    /// Set by the caller to replace the text of the bytes.
    var givenString: String?
    var object: Any?
    var jsonObject: Any?
    /// The JSON object set by the caller to replace that of the bytes.
    var givenJSON: Any?
    /// Whether a failure was turned into a success.
    var isMocked = false
    var error: (any Error)?
    var metrics: TaskMetrics?
    /// Whether the body is a file, whose status was validated before it was moved into place.
    var isDownload = false

    /// The bytes as text, in their encoding.
    var string: String? {
        givenString ?? data.flatMap { encoded($0).text }
    }

    /// UTF-8 unless a byte order mark, the charset or an XML declaration names another one that is known.
    var encoding: String.Encoding { encoded(data ?? Data()).encoding }

    private func encoded(_ body: Data) -> EncodedText {
        EncodedText(body, contentType: response?.value(forHTTPHeaderField: "Content-Type"))
    }
}

/// The state of a request, behind its lock.
struct RequestState {
    enum Stage {
        case idle
        /// Accessories are being notified of the start.
        case starting
        /// From the start until the callbacks begin.
        case running
        /// Accessories are being notified of the stop; no further callback begins.
        case stopping
        /// Callbacks are running.
        case delivering
        case ended
    }

    // Set by the caller.
    var agent = RequestAgent.shared
    var tag = 0
    var userInfo: [String: any Sendable]?
    weak var delegate: (any RequestDelegate)?
    var successCompletionBlock: BaseRequest.CompletionBlock?
    var failureCompletionBlock: BaseRequest.CompletionBlock?
    var accessories: [any RequestAccessory]?
    var constructingBodyBlock: BaseRequest.ConstructingBlock?
    var uploadProgressBlock: BaseRequest.ProgressBlock?
    var resumableDownloadPath: String?
    var resumableDownloadProgressBlock: BaseRequest.ProgressBlock?
    var requestPriority = BaseRequest.Priority.default
    var requestOptions: RequestOptions?

    // State of the newest start.
    var stage = Stage.idle
    /// Counts starts, so that a start that was stopped before it ran can be recognized.
    var starts = 0
    var options: StartOptions?
    /// Of a start that accessories were notified of, until they are notified of its end.
    var events: RunEvents?
    var run: RequestRun?
    var isStopped = false
    var result = RequestResult()
    var originalRequest: URLRequest?
    var task: SessionTask?
    var identifier = 0
    var totalCount = 0
    var startTime: Date?
    var totalTime: TimeInterval = 0

    /// Called at the end of the newest start, for groups and for `await`.
    var waiters: [@Sendable (RequestEnding) -> Void] = []
}
