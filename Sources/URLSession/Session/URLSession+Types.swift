// SPDX-License-Identifier: Apache-2.0
import CurlewURLLoading

extension URLSession {
    /// The handler of a data or upload task: body, response and error. On the delegate queue.
    typealias DataHandler = @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    /// The handler of a download task: the file, which is removed when the handler returns, response and error. On the delegate queue.
    typealias FileHandler = @Sendable (URL?, URLResponse?, (any Error)?) -> Void

    /// How a challenge is answered.
    public typealias AuthChallengeDisposition = CurlewURLLoading.URLSession.AuthChallengeDisposition

    /// What becomes of a response.
    public enum ResponseDisposition: Int, Sendable {
        /// The task is cancelled.
        case cancel = 0
        /// The body is received.
        case allow = 1
        /// The body is written to a file: a download task takes the place of the data task.
        case becomeDownload = 2
        /// Not supported: the task fails with `URLError.unsupportedURL`.
        case becomeStream = 3
    }

    /// What becomes of a task with an ``URLSessionTask/earliestBeginDate`` when that has come.
    public enum DelayedRequestDisposition: Int, Sendable {
        /// It begins.
        case continueLoading = 0
        /// It begins with another request.
        case useNewRequest = 1
        /// It is cancelled.
        case cancel = 2
    }
}
