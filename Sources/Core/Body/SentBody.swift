// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// The body that an upload sends: its progress, and its file where it was written for this upload alone.
final class SentBody: Sendable {
    let progress = ProgressReporter()
    private let temporaryFile: TemporaryFile?

    init(temporaryFile: TemporaryFile? = nil) {
        self.temporaryFile = temporaryFile
    }

    var count: Int64 { progress.count }

    /// So many bytes of the current exchange's body have been sent.
    func sent(_ count: Int64, of body: (any BodySource)?) {
        progress.update(completed: count, total: body?.length ?? -1)
    }

    /// Another exchange of the same task follows. A body that is sent again starts from zero; where that exchange has none, the count stays.
    func followUp(with body: (any BodySource)?) {
        if let body { progress.restart(total: body.length ?? -1) }
    }

    /// The last exchange has completed. A body of unknown length has its length once it was sent.
    func complete(_ outcome: TransferCompletion, of body: (any BodySource)?) {
        let count = outcome.metrics.requestBodyBytes
        if outcome.error == nil, count > 0 { progress.update(completed: count, total: body?.length ?? count) }
    }

    /// Another attempt begins.
    func reset() {
        progress.restart()
    }

    /// Whether ``removeFile()`` may block.
    var hasFile: Bool { temporaryFile?.isRemoved == false }

    /// Removes the file: no attempt will follow. On the session's queue if there is one.
    func removeFile() {
        temporaryFile?.remove()
    }
}
