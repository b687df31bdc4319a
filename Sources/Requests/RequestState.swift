// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding

/// What has come back, and what was made of it.
struct RequestAnswer: @unchecked Sendable {  // the objects are made once, and read from then on
    var response: HTTPURLResponse?
    var data: Data?
    /// Set in place of what the bytes say.
    var givenString: String?
    var object: Any?
    var jsonObject: Any?
    /// The JSON object that was set in place of what the bytes say.
    var givenJSON: Any?
    /// Whether a failure was made a success.
    var isMocked = false
    var error: (any Error)?
    var metrics: TaskMetrics?
    /// Whether the answer is a file, whose status was judged before it was put in its place.
    var isDownload = false

    /// The bytes as text, in the charset of the content type, else in UTF-8.
    var string: String? {
        givenString ?? data.flatMap { String(data: $0, encoding: encoding) }
    }

    var encoding: String.Encoding {
        response?.textEncodingName.flatMap { TextEncoding.named($0) } ?? .utf8
    }
}

/// The state of a request, behind its lock.
struct RequestState {
    enum Stage {
        case idle
        /// Accessories are told that it starts.
        case starting
        /// From the start until callbacks begin.
        case running
        /// Accessories are told that it is stopped; no callback begins any more.
        case stopping
        /// Callbacks run.
        case delivering
        case ended
    }

    // Set by the user.
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
    var requestPriority = RequestPriority.default

    // Of the newest start.
    var stage = Stage.idle
    /// Counts starts, so that one that was stopped before it ran knows of it.
    var starts = 0
    var run: RequestRun?
    var isStopped = false
    /// Counts stops, so that callbacks know of one in their midst.
    var stops = 0
    var answer = RequestAnswer()
    var originalRequest: URLRequest?
    var task: SessionTask?
    var identifier = 0
    var totalCount = 0
    var startTime: Date?
    var totalTime: TimeInterval = 0

    /// What a group or an `await` wants to hear of the end.
    var waiters: [@Sendable (RequestEnding) -> Void] = []
}
