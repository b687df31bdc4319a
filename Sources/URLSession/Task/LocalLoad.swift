// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading
import Dispatch

/// Loads a URL without a network: `data:` (RFC 2397) and `file:`. The delegate is called as for a response of a server.
///
/// On a queue of its own, piece by piece: each is read when the one before it was taken. A task that is suspended continues when it is
/// resumed, and one that is cancelled ends at the next piece.
final class LocalLoad: @unchecked Sendable {  // what changes is used on its queue only
    /// Where the content goes.
    private enum Target {
        case memory(Data)
        case delegate(URLSessionDataTask)
        /// For a delegate that wants the body in one piece.
        case collected(URLSessionDataTask, Data)
        case file(Descriptor, path: String)
        /// For a body that is read as it is loaded.
        case reader
    }

    /// The size of a piece.
    private static let pieceSize = 256 * 1024

    private let request: URLRequest
    private let queue = DispatchQueue(label: "curlew.urlsession.local", target: .global())
    private let start = ContinuousClock.now
    private var metrics = TransferMetrics()
    /// The task, or the download that has taken its place.
    private var task: URLSessionTask
    private var source: LocalSource?
    private var target = Target.memory(Data())
    private var received: Int64 = 0

    init(_ task: URLSessionTask, _ request: URLRequest) {
        self.task = task
        self.request = request
    }

    deinit {
        // Of a task that was cancelled.
        if case .file(_, let path) = target { unlink(path) }
    }

    /// Whether a URL is loaded without a network.
    static func loads(_ url: URL?) -> Bool {
        switch url?.scheme?.lowercased() {
        case "data", "file": true
        default: false
        }
    }

    /// Loads it, and ends the task.
    func begin() { queue.async { self.proceed { try self.open() } } }

    /// Does the next step, unless the task has ended; if it is suspended, when it is resumed.
    private func proceed(_ step: @escaping @Sendable () throws -> Void) {
        let isWanted = task.values.withLock { values -> Bool in
            // One that is being cancelled ends by that, also if that takes longer than the rest.
            guard !values.hasEnded, values.state != .canceling else { return false }
            guard values.state == .suspended else { return true }
            values.resumption = { self.queue.async { self.proceed(step) } }
            return false
        }
        guard isWanted else { return }
        do {
            try step()
        } catch let failure as LocalFailure {
            end(Outcome(error: URLError.of(failure.code, task)))
        } catch {
            end(Outcome(error: URLError.of(error, task)))
        }
    }

    // MARK: The response

    private func open() throws {
        guard let url = request.url else { throw LocalFailure(code: .badURL) }
        let source = try LocalSource(url)
        self.source = source
        if task is URLSessionDownloadTask {
            try writeToFile()
        } else if case .streamed = task.work {
            target = .reader
            task.values.withLock { $0.response = source.response }
            return task.hand(over: .local(self))
        } else if case .delegate = task.completion, let task = task as? URLSessionDataTask {
            target = task.prefersIncrementalDelivery ? .delegate(task) : .collected(task, Data())
            let response = Shown(source.response)
            return task.decide(about: response.value) { disposition in
                self.queue.async { self.proceed { try self.decided(disposition, task) } }
            }
        }
        task.values.withLock { $0.response = source.response }
        try read()
    }

    private func decided(_ disposition: URLSession.ResponseDisposition, _ task: URLSessionDataTask) throws {
        switch disposition {
        case .allow: try read()
        case .cancel: task.cancel()
        case .becomeStream: throw LocalFailure(code: .unsupportedURL)
        case .becomeDownload:
            try writeToFile()
            guard let download = task.becomeDownload(ending: true) else { return }
            self.task = download
            proceed { try self.read() }
        }
    }

    private func writeToFile() throws {
        let directory = task.session.curlew.session.configuration.temporaryDirectory.path
        guard let (file, path) = PrivateFile.create(in: directory, named: "CurlewDownload_", ".tmp") else {
            throw FileError.writing(directory, errno)
        }
        target = .file(file, path: path)
    }

    // MARK: The content

    /// Loads the next piece for the reader of the body.
    func readNext() { queue.async { self.proceed { try self.read() } } }

    private func read() throws {
        guard let source else { return }
        let piece = try source.read(atMost: Self.pieceSize)
        received += Int64(piece.count)
        note(expected: source.response.expectedContentLength)
        guard !piece.isEmpty else { return complete() }
        switch target {
        case .memory(var data):
            target = .memory(Data())
            data += piece
            target = .memory(data)
        case .collected(let task, var data):
            target = .memory(Data())
            data += piece
            target = .collected(task, data)
        case .file(let file, let path):
            do throws(SystemError) { try file.write(piece) } catch { throw FileError.writing(path, error.code) }
            if case .delegate = task.completion, let download = task as? URLSessionDownloadTask {
                download.wrote(Int64(piece.count), received, source.response.expectedContentLength)
            }
        case .delegate(let task):
            return task.session.queue.schedule {
                // A cancellation is the last call.
                guard task.error == nil else { return }
                task.give(piece)
                self.readNext()
            }
        case .reader: return task.hand(over: piece)
        }
        // Not at once: a cancellation or suspension counts from the next piece on.
        readNext()
    }

    private func note(expected: Int64) {
        let (received, task) = (received, task)
        let progress = task.values.withLock { values in
            values.localCounts = (0, received)
            return values.progress
        }
        progress?.show(received, of: expected)
    }

    // MARK: The end

    private func complete() {
        var outcome = Outcome(response: source?.response)
        switch target {
        case .memory(let data): outcome.data = data
        case .delegate, .reader: break
        case .collected(let task, let data):
            if !data.isEmpty { task.session.queue.schedule { if task.error == nil { task.give(data) } } }
        case .file(let file, let path):
            target = .memory(Data())
            // Some file systems report failed writes on close.
            do throws(SystemError) { try file.close() } catch {
                unlink(path)
                return end(Outcome(error: URLError.of(FileError.writing(path, error.code), task)))
            }
            outcome.file = URL(fileURLWithPath: path)
        }
        end(outcome)
    }

    private func end(_ outcome: Outcome) {
        metrics.responseBodyBytes = received
        metrics.total = start.duration(to: .now)
        let measured = TaskMetrics(transactionMetrics: [metrics])
        task.values.withLock { $0.metrics = measured }
        task.end(outcome)
        // It may have been cancelled meanwhile.
        if let file = outcome.file, task.error != nil { unlink(file.path) }
    }
}
