// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// One run of an upload: from its start, or from where it was paused, to its end.
struct UploadRun {
    /// What outlives a run, if the upload is paused.
    struct Tally: Sendable {
        /// The most bytes that the server was known to have.
        var best: Int64 = 0
        /// The number of bytes that the server had at the start; `nil` before that is known.
        var resumed: Int64?
        /// How often the upload was begun again because the server had lost it.
        var restarts = 0
    }

    private static let mostRestarts = 1
    /// What the server rejects until a request that it has not seen the end of is over, or until it is asked again.
    private static let retryableStatusCodes: Set<Int> = [409, 423, 460]

    private let client: UploadClient
    private let file: UploadedFile
    private let store: UploadStore
    private var dialect: any UploadDialect
    private let tally: Lock<Tally>
    /// Receives what each response says about the upload.
    private let onReply: @Sendable (UploadState) -> Void

    /// The upload's URL; `nil` before the server has named it.
    private(set) var upload: URL?
    /// The record of an earlier run, as long as the server has not been asked about it.
    private var record: UploadRecord?
    private var offset: Int64?
    /// The offset of an append whose response does not say what the server has, until the server is asked.
    private var unconfirmed: Int64?
    private var hasDiscovered = false
    private var failures = 0

    init(
        _ client: UploadClient, _ file: UploadedFile, _ store: UploadStore, _ dialect: any UploadDialect, _ tally: Lock<Tally>,
        onReply: @escaping @Sendable (UploadState) -> Void
    ) {
        (self.client, self.file, self.store, self.dialect, self.tally) = (client, file, store, dialect, tally)
        self.onReply = onReply
    }

    // MARK: The record

    private func makeRecord(_ upload: URL, _ sender: String?) -> UploadRecord {
        UploadRecord(
            dialect: type(of: dialect).name, upload: upload.absoluteString,
            endpoint: UploadRecord.digest(client.endpoint.absoluteString), metadata: UploadRecord.digest(dialect.metadata),
            source: UploadRecord.source(of: file.url, client.options), file: file.identity, responder: client.responder, sender: sender)
    }

    /// Takes over the upload of a record, if that is one of the same file to the same server.
    mutating func resume(_ record: UploadRecord) {
        guard let url = URL(string: record.upload), let upload = try? client.uploadURL(record.upload, from: url),
            file.identity.isSame(as: record.file)
        else { return }
        let own = makeRecord(upload, record.sender)
        guard own.dialect == record.dialect, own.endpoint == record.endpoint, own.metadata == record.metadata,
            own.responder == record.responder
        else { return }
        (self.record, self.upload) = (record, upload)
    }

    private mutating func forget() {
        store.forget()
        (upload, record, offset, unconfirmed) = (nil, nil, nil, nil)
        tally.withLock { ($0.best, $0.resumed) = (0, nil) }
    }

    // MARK: The course

    /// Uploads what is missing.
    mutating func run() async throws -> UploadState {
        while true {
            do {
                guard let end = try await step() else { continue }
                try file.check()
                store.forget()
                return end
            } catch {
                // The server has what it has received of a failed request.
                offset = nil
                try await recover(from: error)
            }
        }
    }

    /// Sends one request. Returns its result if the upload is complete.
    private mutating func step() async throws -> UploadState? {
        try Task.checkCancellation()
        try file.check()
        guard let upload else { return try await begin() }
        guard let offset else { return try await ask(upload) }
        let slice = UploadClient.Slice(offset: offset, length: dialect.chunk(of: file.length - offset))
        let state = try await dialect.append(slice, to: upload, client, file)
        if state.offset == nil { unconfirmed = offset }
        return try note(state, after: offset)
    }

    private mutating func begin() async throws -> UploadState? {
        if !hasDiscovered {
            try await dialect.discover(client)
            hasDiscovered = true
        }
        tally.withLock { $0.resumed = $0.resumed ?? 0 }
        let named = Lock<URL?>(nil)
        defer { upload = named.withLock { $0 } }
        let (run, store) = (self, store)
        let state = try await dialect.create(client, file) { url, sender in
            try store.write(run.makeRecord(url, sender))
            named.withLock { $0 = url }
        }
        return try note(state, after: -1)
    }

    private mutating func ask(_ upload: URL) async throws -> UploadState? {
        let state: UploadState
        do {
            state = try await dialect.state(of: upload, client, file)
        } catch let error as ResumableUploadError where record != nil && error.kind == .invalidResponse {
            // A record of something else.
            forget()
            return nil
        }
        if let record, try await record.sender != client.sender(by: state.reply) {
            forget()
            return nil
        }
        record = nil
        defer { unconfirmed = nil }
        return try note(state, after: unconfirmed ?? -1)
    }

    /// Notes the offset that a response reports; it has to be a new one after an append.
    private mutating func note(_ state: UploadState, after last: Int64) throws -> UploadState? {
        offset = state.offset
        onReply(state)
        guard let found = state.offset else { return state.isComplete ? state : nil }
        let isProgress = tally.withLock { tally in
            if tally.resumed == nil { tally.resumed = found }
            defer { tally.best = max(tally.best, found) }
            return found > tally.best
        }
        if isProgress { failures = 0 }
        guard state.isComplete || found > last else {
            throw NoProgress(error: .invalidResponse(state.reply.url, "the server accepts no bytes"))
        }
        return state.isComplete ? state : nil
    }

    /// A response that accepts an append, and none of its bytes.
    private struct NoProgress: Error {
        let error: ResumableUploadError
    }

    // MARK: Failures

    /// Waits before another attempt, or forgets an upload that the server has lost.
    ///
    /// - Throws: what the upload fails with, if there is no other attempt.
    private mutating func recover(from error: any Error) async throws {
        try Task.checkCancellation()
        if error is DraftDialect.RequestTooLong { return }
        if let refusal = error as? UploadClient.Refusal, refusal.status == 413, !dialect.isFinal(refusal.head),
            try await dialect.shrink(after: refusal, upload, client, file)
        {
            return
        }
        if let refusal = error as? UploadClient.Refusal, let upload, refusal.url == upload, [404, 410].contains(refusal.status) {
            let restarts = tally.withLock { tally in
                tally.restarts += 1
                return tally.restarts
            }
            forget()
            guard restarts <= Self.mostRestarts, dialect.mayBeginAgain(after: error) else { throw final(error) }
            return
        }
        guard isTransient(error), upload != nil || !hasDiscovered || dialect.mayBeginAgain(after: error) else { throw givingUp(error) }
        failures += 1
        let policy = client.options.retryPolicy
        guard failures <= policy.retryLimit, Deadline.current?.hasPassed != true else { throw givingUp(error) }
        let seconds = delay(after: error, policy)
        let duration = Duration.seconds(min(seconds, Double(Int32.max)))
        let isWaited = seconds <= policy.maximumDelay && Deadline.current.map { duration < $0.remaining } ?? true
        client.options.onWait?(RetryWait(error: final(error), failures: failures, delay: duration, isWaited: isWaited))
        guard isWaited else { throw givingUp(error) }
        try await Task.sleep(for: duration)
    }

    /// Returns the error of the upload. One that has other bytes than the file is not continued by the next upload.
    private mutating func givingUp(_ error: any Error) -> any Error {
        let hasOtherBytes = (error as? ResumableUploadError)?.kind == .checksumMismatch
        if hasOtherBytes || (error as? UploadClient.Refusal)?.isDigestMismatch == true { forget() }
        return final(error)
    }

    private func isTransient(_ error: any Error) -> Bool {
        let policy = client.options.retryPolicy
        switch error {
        case is NoProgress: return true
        case let refusal as UploadClient.Refusal where dialect.isFinal(refusal.head): return false
        case let refusal as UploadClient.Refusal:
            return policy.retryableHTTPStatusCodes.contains(refusal.status)
                || refusal.url == upload && Self.retryableStatusCodes.contains(refusal.status) || refusal.isDigestMismatch
        case CurlewError.transferFailed(let failure):
            return policy.retryableFailureKinds.contains(failure.kind)
                || Deadline.current != nil && [.circuitOpen, .rateLimited].contains(failure.kind)
        default: return false
        }
    }

    /// Returns how long to wait after an error, in seconds.
    private func delay(after error: any Error, _ policy: RetryPolicy) -> TimeInterval {
        let backoff = Backoff(
            first: policy.exponentialBackoffScale, factor: Double(policy.exponentialBackoffBase), limit: policy.maximumDelay)
        var delay = backoff.delay(after: failures - 1, jitter: .random(in: 0.5...1))
        if let refusal = error as? UploadClient.Refusal {
            // Another offset is known as soon as the server is asked.
            if refusal.status == 409, failures == 1 { delay = 0 }
            if let asked = RetryAfter(refusal.head)?.delay { delay = asked.seconds }
        } else if case CurlewError.transferFailed(let failure) = error, let asked = failure.retryAfter {
            delay = asked.seconds
        }
        return delay
    }

    private func final(_ error: any Error) -> any Error {
        switch error {
        case let refusal as UploadClient.Refusal:
            // Only an upload that there was can be gone.
            let isOfUpload = refusal.url != client.endpoint
            let status = refusal.isDigestMismatch ? 460 : refusal.status
            let error = ResumableUploadError(refusing: refusal.url, status, refusal.error)
            guard !isOfUpload, !refusal.isDigestMismatch, [.gone, .offsetConflict, .locked, .checksumMismatch].contains(error.kind)
            else { return error }
            return ResumableUploadError(
                kind: .refused, subject: error.subject, message: "the server refused the request with status \(refusal.status)",
                underlyingError: refusal.error)
        case let error as NoProgress: return error.error
        default: return error
        }
    }

    // MARK: The removal

    /// Removes the upload of a record from the server.
    ///
    /// - Throws: ``ResumableUploadError/Kind/otherCredentials`` for that of another user.
    func remove() async throws {
        guard let upload, let record else { return }
        do {
            let state = try await dialect.state(of: upload, client, file)
            guard try await client.sender(by: state.reply) == record.sender else {
                throw ResumableUploadError(
                    kind: .otherCredentials, subject: upload.absoluteString.redactedURL,
                    message: "the upload was begun with other credentials, with which alone it is removed")
            }
            try await dialect.remove(upload, client)
        } catch let refusal as UploadClient.Refusal where [404, 410].contains(refusal.status) {
            // It is gone already.
        } catch {
            throw final(error)
        }
        store.forget()
    }
}
