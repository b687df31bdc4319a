// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A data task's delegate that counts what is sent, too.
final class UploadTaskDelegate: DataTaskDelegate, @unchecked Sendable {  // as its superclass
    let uploadProgress = ProgressReporter()
    /// The body, where it was written for this upload alone.
    private let temporaryFile: TemporaryFile?

    init(session: Session, sessionDelegate: SessionDelegate, temporaryFile: TemporaryFile? = nil) {
        self.temporaryFile = temporaryFile
        super.init(session: session, sessionDelegate: sessionDelegate)
    }

    override var byteCounts: (received: Int64, sent: Int64) { (bodyCount, uploadProgress.count) }

    override func reset() {
        super.reset()
        uploadProgress.restart()
    }

    /// A body that is sent once more begins at nothing. Where the next exchange has none, what was sent before stays.
    override func exchangeFollows() {
        guard let body = state.withLock({ $0.task })?.currentTransfer?.body else { return }
        uploadProgress.restart(total: body.length ?? -1)
    }

    override func acceptSent(_ count: Int64) {
        let length = state.withLock { $0.task }?.currentTransfer?.body?.length
        uploadProgress.update(completed: count, total: length ?? -1)
    }

    override func taskWillEnd(_ outcome: TransferCompletion) {
        super.taskWillEnd(outcome)
        // A body of unknown length has its length when it was sent. One of which the server wanted only a part was not.
        let count = outcome.metrics.requestBodyBytes
        let length = state.withLock { $0.task }?.currentTransfer?.body?.length
        if outcome.error == nil, count > 0 { uploadProgress.update(completed: count, total: length ?? count) }
    }

    /// Removing a file may block.
    override var mustConcludeOnQueue: Bool {
        super.mustConcludeOnQueue || temporaryFile?.isRemoved == false
    }

    /// Removes the file before any handler runs: no attempt will come any more.
    override func finish() {
        temporaryFile?.remove()
        super.finish()
    }
}
