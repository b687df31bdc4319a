// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading

/// The progress of a task: it has the counts of its request's, which is made later.
final class ShownProgress: Sendable {
    private let shown: Shown<Progress>
    private let turn = Lock(())

    init(_ progress: Progress) {
        shown = Shown(progress)
    }

    var value: Progress { shown.value }

    /// Shows the counts of another progress.
    func show(_ own: Progress) {
        // Read in turn, so that earlier counts do not take the place of later ones.
        turn.withLock { _ in set(own.completedUnitCount, of: own.totalUnitCount) }
    }

    func show(_ completed: Int64, of total: Int64) {
        turn.withLock { _ in set(completed, of: total) }
    }

    private func set(_ completed: Int64, of total: Int64) {
        value.totalUnitCount = total
        value.completedUnitCount = completed
    }
}

extension URLSessionTask {
    /// Has a progress show the counts of a request, from now on.
    func follow(_ request: Request, with progress: ShownProgress) {
        let update: Request.ProgressHandler = { progress.show($0) }
        let queue = request.session.queue
        switch request {
        case let upload as UploadRequest where self is URLSessionUploadTask: upload.uploadProgress(queue: queue, closure: update)
        case let data as DataRequest: data.downloadProgress(queue: queue, closure: update)
        case let download as DownloadRequest: download.downloadProgress(queue: queue, closure: update)
        default: break
        }
        if let own = ownProgress(of: request) { progress.show(own) }
    }

    /// Has the task's progress show the counts that its request has now, which the queue of that may not have reported yet.
    func updateProgress() {
        let shown = values.withLock { values in values.progress.map { ($0, values.request) } }
        guard case (let progress, let request?)? = shown, let own = ownProgress(of: request) else { return }
        progress.show(own)
    }

    private func ownProgress(of request: Request) -> Progress? {
        switch request {
        case let upload as UploadRequest where self is URLSessionUploadTask: upload.uploadProgress
        case let data as DataRequest: data.progress
        case let download as DownloadRequest: download.progress
        default: nil
        }
    }
}

extension URLSessionTask.Values {
    /// A progress with what was loaded without a network, of a task that has loaded something so.
    var localProgress: Progress {
        let progress = Progress(totalUnitCount: localCounts == nil ? -1 : response?.expectedContentLength ?? -1)
        progress.completedUnitCount = localCounts?.received ?? 0
        return progress
    }
}
