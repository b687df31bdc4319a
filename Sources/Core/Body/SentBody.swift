// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// The body that an upload sends: its progress and, if it was written for this upload alone, its file.
final class SentBody: Sendable {
    let progress = ProgressReporter()
    private let temporaryFile: TemporaryFile?

    init(temporaryFile: TemporaryFile? = nil) {
        self.temporaryFile = temporaryFile
    }

    var count: Int64 { progress.count }

    /// Reports the number of bytes sent of the current exchange's body.
    func sent(_ count: Int64, of body: (any BodySource)?) {
        progress.update(completed: count, total: body?.length ?? -1)
    }

    /// Restarts the count for a follow-up that sends a body again; keeps it for one without a body.
    func followUp(with body: (any BodySource)?) {
        if let body { progress.restart(total: body.length ?? -1) }
    }

    /// Sets the final count, as the last exchange has completed. A body of unknown length has its length once it was sent.
    func complete(_ outcome: TransferCompletion, of body: (any BodySource)?) {
        let count = outcome.metrics.requestBodyBytes
        if outcome.error == nil, count > 0 { progress.update(completed: count, total: body?.length ?? count) }
    }

    /// Restarts the count, because another attempt begins.
    func reset() {
        progress.restart()
    }

    /// Whether ``removeFile()`` may block.
    var hasFile: Bool { temporaryFile?.isRemoved == false }

    /// Removes the file, because no attempt will follow. On the session's queue if there is one.
    func removeFile() {
        temporaryFile?.remove()
    }
}
