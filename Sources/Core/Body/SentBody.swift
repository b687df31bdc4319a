// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The source of an upload's body.
enum UploadContent: Sendable {
    case data(Data)
    case file(URL, FileSlice = FileSlice())
    case temporaryFile(TemporaryFile)
    case stream(StreamBody)
    case sequence(SequenceBody)
    case form(UploadForm)
    /// A body that could not be made, for this reason.
    case unreadable(any Error)
}

/// A body that all attempts of a request share, as it knows whether it can be sent again.
protocol SharedBody: BodySource {
    /// Whether another transfer can send the body from its first byte. Reading it rewinds nothing.
    var isRepeatable: Bool { get }
}

/// The part of a file that is sent.
struct FileSlice: Sendable {
    /// Where it begins, in bytes.
    var offset: Int64 = 0
    /// `nil` for all bytes up to the end of the file.
    var length: Int64?
    /// Whether `Content-Range` names it.
    var setsContentRange = false
}

/// The body in place of a file that can't be opened: the request has a task like every other, which fails when it is started.
final class UnreadableBody: BodySource {
    let error: any Error

    init(error: any Error) {
        self.error = error
    }

    var length: Int64? { nil }

    func prepare(onReadable: @escaping @Sendable () -> Void) {}

    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead { .failed(error) }

    func rewind() -> Bool { true }
}

/// The body that an upload sends: its progress and its source, which may be a file that was written for this upload alone.
final class SentBody: Sendable {
    let progress = ProgressReporter()
    private let content: UploadContent

    init(_ content: UploadContent) {
        self.content = content
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

    /// Restarts the count, because another attempt begins, which sends what the last one has sent: `body`. Its length stays the total.
    func reset(after body: (any BodySource)?) {
        progress.restart(total: body?.length ?? -1)
    }

    /// Whether ``finish()`` may block.
    var hasFile: Bool {
        if case .temporaryFile(let file) = content { !file.isRemoved } else { false }
    }

    /// Removes the file and stops reading sequences, because no attempt will follow. On the session's queue if there is a file.
    func finish() {
        switch content {
        case .temporaryFile(let file): file.remove()
        case .sequence(let body): body.finish()
        case .form(let form): form.finish()
        case .data, .file, .stream, .unreadable: break
        }
    }
}
