// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// One run of a segmented download: it ends with a complete part file, an error, or a reason to start over.
///
/// A coordinator decides which segments begin, and what becomes of those that have ended; each segment is a task of its own, which receives
/// one response.
final class SegmentedTransfer: Sendable {
    /// How the file is asked for.
    struct Mode: Sendable {
        /// The index of the URL that is asked first.
        let first: Int
        /// Whether one response is to bring the whole.
        let asksForWhole: Bool
        /// Whether what an earlier download has left is continued.
        let resumes: Bool
        /// The number of failures in a row before this run.
        var failures = 0
    }

    /// Why the file has to be received from the start.
    struct Restart: Error {
        let failure: any Error
        var asksForWhole = false
        var first: Int?
        /// How long to wait before, after a failure.
        var delay: Duration?
        /// The number of failures in a row.
        var failures = 0
    }

    /// Why nothing is received: the file with the suggested name is what the server has.
    struct Unchanged: Error {
        let result: SegmentedDownload.Result
    }

    /// What has been received.
    struct Summary: Sendable {
        let length: Int64
        let received: Int64
        let resumed: Int64
        /// The digests that the server has named for the whole.
        let digests: [String: Data]
        let mark: Mark?
        /// Where the file is to be, if a response has named it.
        let destination: URL?
    }

    /// By what the finished file is recognized later.
    struct Mark: Sendable {
        let url: URL
        let head: ResponseHead
        let source: String
        let sender: String?
    }

    /// How a segment has ended.
    enum Ending: Sendable {
        case finished
        /// A request has failed; another attempt may succeed.
        case failed(any Error, retryAfter: Duration?)
        /// The server will not send this.
        case refused(any Error)
        /// The server has sent the whole in place of the range.
        case ignoredRange(any Error)
        /// The server has something that may be of another version.
        case foreign(any Error)
        case restart(Restart)
        /// A file can't be written, or the download was cancelled.
        case fatal(any Error)
    }

    enum Event: Sendable {
        /// The version and the length of the file are known, from the first response.
        case known
        case ended(Int, source: Int, Ending)
        case tick
    }

    /// What is known about a server.
    struct Source: Sendable {
        let url: URL
        var isRefusing = false
        /// Whether its file can't be mixed with what was received.
        var isForeign = false
        var notBefore: ContinuousClock.Instant?
        /// What to send to it in `If-Range`.
        var validator: String?
        var active = 0
    }

    struct State: Sendable {
        var plan: SegmentPlan
        var sources: [Source]
        var version: EntityVersion?
        /// The index of the URL from which the version is.
        var owner: Int?
        /// The receipt of the earlier download that is continued; `nil` if none is.
        var resumed: SegmentReceipt?
        var digests: [String: Data] = [:]
        var mark: Mark?
        var received: Int64 = 0
        var requests: [Int: DataRequest] = [:]
        /// What receives, so that bytes in memory are written although a server pauses.
        var receivers: [Int: SegmentReceiver] = [:]
        /// Whether the file arrives in one response, which can't be continued.
        var isWhole = false
        /// Where the file is to be, once a response has named it.
        var destination: URL?

        /// The index of a URL by its name.
        func owner(of source: String) -> Int? { sources.firstIndex { SegmentedTransfer.name(of: $0.url) == source } }
    }

    let manager: SessionManager
    let options: SegmentedDownload.Options
    let file: SegmentFile
    let mode: Mode
    /// The session's cookies for the first URL, as they were before the download.
    let cookies: String?
    private let firstURL: String?
    let state: Lock<State>
    private let progress: (@Sendable (SegmentedDownload.Progress) -> Void)?
    private let events: AsyncStream<Event>
    let continuation: AsyncStream<Event>.Continuation

    init(
        _ manager: SessionManager, _ urls: [URL], _ options: SegmentedDownload.Options, _ file: SegmentFile, _ mode: Mode,
        _ cookies: String?, _ progress: (@Sendable (SegmentedDownload.Progress) -> Void)?
    ) {
        self.manager = manager
        self.options = options
        self.file = file
        self.mode = mode
        self.cookies = cookies
        firstURL = urls.first?.absoluteString
        self.progress = progress
        state = Lock(State(plan: SegmentPlan(minimum: options.minimumSegmentSize), sources: urls.map { Source(url: $0) }))
        (events, continuation) = AsyncStream.makeStream()
    }

    var received: Int64 { state.withLock { $0.received } }
    private var connectionLimit: Int { max(options.segments, 1) }

    // MARK: The coordinator

    /// Receives what is missing.
    ///
    /// - Throws: ``Restart`` if it has to be received from the start.
    func run() async throws -> Summary {
        // Receivers retain this object.
        defer { state.withLock { $0.receivers = [:] } }
        let resumed = mode.resumes ? try resume() : 0
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask { [continuation] in
                while true {
                    try await Task.sleep(for: .milliseconds(100))
                    continuation.yield(.tick)
                }
            }
            try await coordinate(&group)
        }
        report()
        return state.withLock { state in
            Summary(
                length: state.plan.total ?? 0, received: state.received, resumed: resumed, digests: state.digests, mark: state.mark,
                destination: state.destination)
        }
    }

    /// Continues what an earlier download has left. Returns the number of bytes.
    private func resume() throws -> Int64 {
        // What another server has sent is not continued, unless the digest of the whole is known: anybody can repeat a validator.
        guard let (source, version, receipt, found) = try file.resume(),
            options.sha256 != nil || state.withLock({ $0.owner(of: source) }) != nil
        else { return 0 }
        var written = found
        // A process may have ended between the last byte and the file's name. The server is asked for one byte: it may have another version.
        if found.count == version.total, version.total > 0 {
            written = ByteRanges()
            written.insert(0..<version.total - 1)
        }
        return state.withLock { state in
            state.plan = SegmentPlan(minimum: options.minimumSegmentSize, total: version.total, received: written)
            state.version = version
            state.resumed = receipt
            state.digests = version.digests.compactMapValues { Data(base64Encoded: $0) }
            state.owner = state.owner(of: source)
            if let owner = state.owner { state.sources[owner].validator = version.validator }
            return written.count
        }
    }

    /// A name for a URL that reveals no secrets in it.
    static func name(of url: URL) -> String { SHA256.digest(of: url.absoluteString.utf8).hexDigits }

    private func coordinate(_ group: inout ThrowingTaskGroup<Void, any Error>) async throws {
        var limit = mode.asksForWhole ? 1 : connectionLimit
        var failures = Failures(inRow: mode.failures)
        begin(&group, limit)
        // A file without bytes, left by a process that ended before it had its name.
        if state.withLock({ $0.plan.isComplete }) { return }
        for await event in events {
            if case .ended(let id, let source, let ending) = event {
                let progressed = end(id, source)
                // What a response that can't be continued has brought is lost.
                if progressed, !state.withLock({ $0.isWhole }) { failures.inRow = 0 }
                if case .finished = ending { limit = min(limit + 1, mode.asksForWhole ? 1 : connectionLimit) }
                try settle(ending, source, &limit, &failures)
                if state.withLock({ $0.plan.isComplete }) { return }
            } else if case .tick = event {
                report()
                for receiver in state.withLock({ Array($0.receivers.values) }) { receiver.flushStale() }
                if state.withLock({ $0.requests.count }) < limit { releaseStalled() }
            }
            begin(&group, limit)
            if let error = failures.last, state.withLock({ $0.requests.isEmpty && !$0.sources.contains { $0.isUsable } }) {
                throw finalFailure(error)
            }
        }
        throw CancellationError()
    }

    private struct Failures {
        var inRow = 0
        var ignoredRanges = 0
        var last: (any Error)?
    }

    /// Begins segments while there are connections and something to receive.
    private func begin(_ group: inout ThrowingTaskGroup<Void, any Error>, _ limit: Int) {
        while let (segment, source, request) = makeRequest(limit) {
            let receiver = SegmentReceiver(self, segment, source, request)
            state.withLock { $0.receivers[segment.id] = receiver }
            group.addTask {
                let ending = await receiver.run()
                self.continuation.yield(.ended(segment.id, source: source, ending))
            }
        }
    }

    private func makeRequest(_ limit: Int) -> (SegmentPlan.Segment, source: Int, DataRequest)? {
        let made = state.withLock { state -> (SegmentPlan.Segment, Int, URL, HTTPHeaders)? in
            guard state.requests.count < limit, let source = choose(state), let segment = state.plan.next(connections: connectionLimit)
            else { return nil }
            state.sources[source].active += 1
            return (segment, source, state.sources[source].url, headers(for: segment, state.sources[source], first: state.sources[0]))
        }
        guard let (segment, source, url, headers) = made else { return nil }
        var requestOptions = RequestOptions()
        // A mirror is another party than the first source.
        if source > 0 { requestOptions.certificateURL = firstURL }
        let request = manager.streamRequest(url, headers: headers, options: requestOptions).validate(statusCode: [200, 206])
        state.withLock { $0.requests[segment.id] = request }
        return (segment, source, request)
    }

    /// The usable server with the fewest connections: the preferred one as long as nothing is known.
    private func choose(_ state: State) -> Int? {
        let now = ContinuousClock.now
        let order = (0..<state.sources.count).map { ($0 + mode.first) % state.sources.count }
        let usable = order.filter { state.sources[$0].isUsable && state.sources[$0].notBefore.map { $0 <= now } ?? true }
        guard state.version != nil else { return usable.first }
        return usable.min { state.sources[$0].active < state.sources[$1].active }
    }

    private func headers(for segment: SegmentPlan.Segment, _ source: Source, first: Source) -> HTTPHeaders {
        var headers = options.headers.forWhole
        if !options.sendsCredentialsToMirrors, HTTPOrigin(source.url) != HTTPOrigin(first.url) {
            manager.session.configuration.redirects.removeCredentials(from: &headers)
        }
        guard !mode.asksForWhole else { return headers }
        headers.update(name: "Range", value: "bytes=\(segment.start)-\(segment.end == .max ? "" : "\(segment.end - 1)")")
        if let validator = source.validator { headers.update(name: "If-Range", value: validator) }
        return headers
    }

    /// Ends a segment. Returns whether it has received anything.
    private func end(_ id: Int, _ source: Int) -> Bool {
        state.withLock { state in
            let received = state.plan.active[id]?.received ?? 0
            state.plan.end(id)
            state.requests[id] = nil
            state.receivers[id] = nil
            state.sources[source].active -= 1
            return received > 0
        }
    }

    private func releaseStalled() {
        let requests = state.withLock { state in
            state.plan.releaseStalled(options.stallTimeout).compactMap { state.requests[$0] }
        }
        for request in requests { request.cancel() }
    }

    private func report() {
        guard let progress else { return }
        let current = state.withLock { state in
            let completed = state.plan.missing.map { missing in (state.plan.total ?? 0) - missing } ?? state.received
            return SegmentedDownload.Progress(
                completed: completed, total: state.isWhole && state.plan.active.values.contains { $0.end == .max } ? nil : state.plan.total,
                connections: state.requests.count)
        }
        progress(current)
    }

    // MARK: Failures

    private func settle(_ ending: Ending, _ source: Int, _ limit: inout Int, _ failures: inout Failures) throws {
        let others = state.withLock { $0.requests.count }
        switch ending {
        case .finished: return
        case .fatal(let error): throw error
        case .restart(let restart): throw restart
        case .foreign(let error):
            failures.last = error
            state.withLock { $0.sources[source].isForeign = true }
        case .ignoredRange(let error):
            failures.last = error
            failures.ignoredRanges += 1
            guard failures.ignoredRanges < 3, others > 0 else { throw Restart(failure: error, asksForWhole: true) }
            limit = others
        case .refused(let error) where others == 0 && state.withLock({ $0.received == 0 || $0.owner != source }):
            failures.last = error
            state.withLock { $0.sources[source].isRefusing = true }
        case .refused(let error):
            // A server that has enough of connections may say so with any status.
            try settle(.failed(error, retryAfter: nil), source, &limit, &failures)
        case .failed(let error, let delay):
            failures.last = error
            let isWhole = state.withLock { $0.isWhole }
            guard others == 0 || isWhole else { return limit = others }
            failures.inRow += 1
            let wait = wait(after: error, failures.inRow, source, asked: delay)
            if isWhole {
                guard let wait else { throw error }
                throw Restart(failure: error, asksForWhole: true, delay: wait, failures: failures.inRow)
            }
            state.withLock { state in
                if let wait { state.sources[source].notBefore = .now + wait } else { state.sources[source].isRefusing = true }
            }
        }
    }

    /// Returns how long to wait before a server is asked again; `nil` if it is not.
    private func wait(after error: any Error, _ failures: Int, _ source: Int, asked: Duration?) -> Duration? {
        guard failures <= max(options.retryLimit, 0), Deadline.current?.hasPassed != true else { return nil }
        let delay = asked ?? .seconds(Backoff(first: 0.5, limit: 30).delay(after: failures - 1))
        let isWaited = delay <= Self.longestDelay && Deadline.current.map { delay < $0.remaining } ?? true
        let hasOther = state.withLock { state in
            state.sources.indices.contains { $0 != source && state.sources[$0].isUsable && state.sources[$0].notBefore ?? .now <= .now }
        }
        if !hasOther {
            options.onWait?(RetryWait(error: error, failures: failures, delay: delay, isWaited: isWaited))
        }
        return isWaited ? delay : nil
    }

    private static let longestDelay = Duration.seconds(3600)

    /// What the download fails with: or a restart with a server whose file could not be mixed with what was received.
    private func finalFailure(_ error: any Error) -> any Error {
        let other = state.withLock { state in state.sources.firstIndex { $0.isForeign && !$0.isRefusing } }
        return other.map { Restart(failure: error, first: $0) } ?? error
    }
}

extension SegmentedTransfer.Source {
    var isUsable: Bool { !isRefusing && !isForeign }
}
