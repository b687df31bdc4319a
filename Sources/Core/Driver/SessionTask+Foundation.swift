// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

// What programs know of the tasks of Foundation's sessions.

extension SessionTask {
    /// Why the task has failed; `nil` while it has not completed, and if its transfer has succeeded. What validators and serializers reject,
    /// and the file that can't be moved to its destination, are errors of the request: ``TaskDelegate/error``.
    public var error: (any Error)? {
        guard let outcome = values.withLock({ $0.outcome }), let error = outcome.error else { return nil }
        return outcome.transform?(error) ?? error
    }

    /// A text for the program's own use; `nil` by default. A retry has another task, without it.
    public var taskDescription: String? {
        get { values.withLock { $0.description } }
        set { values.withLock { $0.description = newValue } }
    }

    /// The progress of sending the body of an upload, or of receiving the body of a response, in bytes; the total is −1 while it is unknown.
    ///
    /// While the task runs, the object of its request: ``UploadRequest/uploadProgress``, ``DataRequest/progress`` or
    /// ``DownloadRequest/progress``. Afterwards one with the final counts, and for a raw stream an empty one.
    public var progress: Progress {
        let (driver, outcome) = values.withLock { ($0.driver, $0.outcome) }
        let received = (driver?.body as? DataReceiver)?.downloadProgress ?? (driver?.body as? FileReceiver)?.downloadProgress
        if let running = driver?.sentBody?.progress ?? received { return running.progress }
        let isUpload = outcome?.isUpload == true
        let completed = isUpload ? countOfBytesSent : countOfBytesReceived
        let expected = isUpload ? countOfBytesExpectedToSend : countOfBytesExpectedToReceive
        let progress = Progress(totalUnitCount: outcome != nil && outcome?.error == nil ? completed : expected)
        progress.completedUnitCount = completed
        return progress
    }
}

// MARK: - Hashable

extension SessionTask: Hashable {
    /// Whether both are the same task.
    public static func == (lhs: SessionTask, rhs: SessionTask) -> Bool { lhs === rhs }

    /// Hashes the task's identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
