// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Receives the response of one segment into the part file.
final class SegmentReceiver: @unchecked Sendable {  // used by one task
    private typealias Ending = SegmentedTransfer.Ending

    private static let bufferSize = 256 << 10
    private static let flushInterval = Duration.milliseconds(200)

    private let transfer: SegmentedTransfer
    private let segment: SegmentPlan.Segment
    private let source: Int
    private let request: DataRequest
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bufferSize, alignment: 4096)
    private var buffered = 0
    /// Guards the buffer and what is about it, as a pause of the server is noticed by the coordinator.
    private let bufferLock = Lock(())
    private var flushError: (any Error)?
    /// Where the first buffered byte belongs.
    private var position: Int64
    private var lastFlush = ContinuousClock.now
    /// The first byte after the response's range; `nil` as long as it is unknown.
    private var expectedEnd: Int64?
    /// The digest of the response's content (RFC 9530, section 2), with the bytes that are not recorded before it is verified.
    private var check: DigestCheck?

    init(_ transfer: SegmentedTransfer, _ segment: SegmentPlan.Segment, _ source: Int, _ request: DataRequest) {
        self.transfer = transfer
        self.segment = segment
        self.source = source
        self.request = request
        position = segment.start
    }

    deinit {
        buffer.deallocate()
    }

    private var url: String { request.sourceURL.redactedURL }

    func run() async -> SegmentedTransfer.Ending {
        do {
            let body = request.bodyStream()
            let head = try await body.head()
            if let ending = try await accept(head, body) { return ending }
            try await receive(body)
            try flush()
            return end()
        } catch {
            let failure = keep(after: error)
            return failure ?? classify(error)
        }
    }

    // MARK: The head

    /// Judges the head; returns how the segment ends because of it, or `nil` to receive the body.
    private func accept(_ head: ResponseHead, _ body: BodyStream) async throws -> SegmentedTransfer.Ending? {
        if head.statusCode == 200 || head.statusCode == 206 { try await takeName(head) }
        switch head.statusCode {
        case 200: return try acceptWhole(head)
        case 206: return try acceptPart(head)
        case 416 where segment.start == 0 || transfer.state.withLock({ $0.version != nil }):
            // Either the file is empty, or shorter than it was.
            return .restart(.init(failure: invalid("status 416 for a range of the file"), asksForWhole: true))
        default:
            // Throws what the validation of the status says.
            for try await _ in body {}
            return .refused(invalid("status \(head.statusCode) in place of a range"))
        }
    }

    /// Gives the file the name that the first response suggests, if it is to have that.
    ///
    /// - Throws: ``SegmentedTransfer/Unchanged`` if there is this file already, `CocoaError` if there is another one.
    private func takeName(_ head: ResponseHead) async throws {
        guard transfer.options.takesSuggestedName else { return }
        let urls = transfer.state.withLock { state in (first: state.sources[0].url, own: state.sources[source].url) }
        let name = SuggestedFileName.name(
            contentDisposition: head.value(for: "Content-Disposition"), url: request.response?.url ?? urls.own)
        let file = transfer.file.destination.deletingLastPathComponent().appendingPathComponent(name)
        let isFirst = transfer.state.withLock { state in
            defer { state.destination = state.destination ?? file }
            return state.destination == nil
        }
        guard isFirst else { return }
        let responder = transfer.manager.responder(to: urls.first, nil)
        let unchanged = try await SegmentedDownload.unchangedFile(at: file, of: urls.first, by: responder, transfer.options) {
            $0.isRepeated(
                by: head, length: head.wholeLength(isDecoded: transfer.manager.decodesContent), from: request.sourceURL,
                for: receipt.sender)
        }
        if let unchanged { throw SegmentedTransfer.Unchanged(result: unchanged) }
    }

    /// Whether the bytes that arrive are others than those that the head is about.
    private func isDecoded(_ head: ResponseHead) -> Bool { head.isCoded && transfer.manager.decodesContent }

    private func invalid(_ reason: String) -> SegmentedDownloadError { .invalidResponse(url: url, reason: reason) }

    private func acceptWhole(_ head: ResponseHead) throws -> SegmentedTransfer.Ending? {
        let length = isDecoded(head) ? nil : head.expectedBodyLength
        if let (version, isOwn) = transfer.state.withLock({ state in state.version.map { ($0, state.owner == source) } }) {
            let error = invalid("a whole response to the request of a range")
            switch version.match(head, total: length, isOwn: isOwn, condition: nil) {
            case .same: return .ignoredRange(error)
            case .different where isOwn: return .restart(.init(failure: SegmentedDownloadError.changing(url: url)))
            case .unknown where isOwn: return .restart(.init(failure: error, asksForWhole: true))
            case .different, .unknown: return .foreign(error)
            }
        }
        // The first response, to the request of a range from the start: its body is the file.
        try transfer.file.begin(nil, from: "")
        let headers = head.headers
        let digests =
            isDecoded(head) ? [:] : (headers.contentDigest?.named ?? [:]).merging(headers.reprDigest?.named ?? [:]) { $1 }
        transfer.state.withLock { state in
            state.isWhole = true
            state.plan.makeWhole(segment.id, length: length)
            state.owner = source
            state.digests = digests
            state.mark = mark(head, state)
        }
        expectedEnd = length
        return nil
    }

    private func mark(_ head: ResponseHead, _ state: SegmentedTransfer.State) -> SegmentedTransfer.Mark? {
        guard let first = state.sources.first, source == 0, !isDecoded(head) else { return nil }
        return SegmentedTransfer.Mark(url: first.url, head: head, source: request.sourceURL, sender: receipt.sender)
    }

    /// The credentials that the response was sent for, and its place.
    private var receipt: SegmentReceipt {
        SegmentReceipt(sender: request.sender(cookies: transfer.cookies), place: FinishedDownload.place(of: request.sourceURL))
    }

    /// Whether what an earlier download has left may be continued by the first response to this one: to another user only if it has the same
    /// digest of the whole, or the same strong entity tag at the same place. A date may be that of another user's file as well.
    private func isContinued(_ version: EntityVersion, by head: ResponseHead) -> Bool {
        guard let resumed = transfer.state.withLock({ $0.resumed }), transfer.options.sha256 == nil else { return true }
        let (receipt, other) = (receipt, EntityVersion(head, total: version.total))
        return resumed.sender == receipt.sender || other.digests.contains { version.digests[$0.key] == $0.value }
            || version.tag != nil && other.tag?.hasSameBytes(as: version.tag ?? "") == true && resumed.place == receipt.place
    }

    private func acceptPart(_ head: ResponseHead) throws -> SegmentedTransfer.Ending? {
        guard !transfer.mode.asksForWhole else { return .refused(invalid("status 206 for a request without a range")) }
        guard !isDecoded(head), let (range, total) = head.byteRange, range.lowerBound == segment.start,
            head.expectedBodyLength.map({ $0 == Int64(range.count) }) ?? true
        else { return .restart(.init(failure: invalid("a partial response that is not of the requested range"), asksForWhole: true)) }
        expectedEnd = range.upperBound
        let known = transfer.state.withLock { state in
            state.version.map { ($0, state.owner == nil || state.owner == source, state.sources[source].validator) }
        }
        if let (version, isOwn, condition) = known {
            switch version.match(head, total: total, isOwn: isOwn, condition: condition) {
            case .same where !isContinued(version, by: head):
                return .restart(.init(failure: invalid("a partial response that may be to another user")))
            case .same: break
            // The digest of the complete file decides.
            case .unknown where transfer.options.sha256 != nil && total == version.total: break
            case .different where isOwn: return .restart(.init(failure: SegmentedDownloadError.changing(url: url)))
            case .unknown where isOwn:
                return .restart(.init(failure: invalid("a partial response without a validator"), asksForWhole: true))
            case .different, .unknown: return .foreign(invalid("a file that may be another one"))
            }
            learn(head, version)
        } else if let ending = try begin(head, range, total) {
            return ending
        }
        verifyContent(head)
        return nil
    }

    /// Takes the version of the first response.
    private func begin(_ head: ResponseHead, _ range: Range<Int64>, _ total: Int64?) throws -> SegmentedTransfer.Ending? {
        let error = invalid("a partial response without the length of the whole")
        guard let total else { return .restart(.init(failure: error, asksForWhole: true)) }
        let version = EntityVersion(head, total: total)
        guard version.isReliable || transfer.options.sha256 != nil || range.upperBound == total else {
            return .restart(.init(failure: invalid("a partial response without a validator"), asksForWhole: true))
        }
        let name = SegmentedTransfer.name(of: transfer.state.withLock { $0.sources[source].url })
        try transfer.file.begin(version, from: name, receipt)
        transfer.state.withLock { state in
            state.version = version
            state.owner = source
            state.digests = version.digests.compactMapValues { Data(base64Encoded: $0) }
            state.plan.setTotal(total)
        }
        learn(head, version)
        transfer.continuation.yield(.known)
        return nil
    }

    /// Remembers what identifies the file at this server.
    private func learn(_ head: ResponseHead, _ version: EntityVersion) {
        transfer.state.withLock { state in
            if state.sources[source].validator == nil {
                state.sources[source].validator = EntityVersion(head, total: version.total).validator
            }
            if state.owner == nil { state.owner = source }
            state.resumed = nil
            if state.mark == nil { state.mark = mark(head, state) }
        }
    }

    /// Verifies the content by its digest, unless another connection has taken a part of it before the response came.
    private func verifyContent(_ head: ResponseHead) {
        guard transfer.options.verifiesDigests, let digest = head.headers.contentDigest else { return }
        let isWhole = transfer.state.withLock { state in
            guard let end = state.plan.active[segment.id]?.end, end >= expectedEnd ?? .max else { return false }
            state.plan.fix(segment.id)
            return true
        }
        if isWhole { check = DigestCheck(digest.named) }
    }

    // MARK: The body

    private func receive(_ body: BodyStream) async throws {
        for try await piece in body {
            if try await take(piece) { continue }
            // The rest is another segment's.
            request.cancel()
            return
        }
        try checkLength()
    }

    /// Takes a piece; returns `false` once the segment is at its end before the response is.
    private func take(_ piece: Data) async throws -> Bool {
        let slice = transfer.options.rateLimit?.pieceSize ?? piece.count
        var rest = piece[...]
        while !rest.isEmpty {
            let part = rest.prefix(slice)
            rest = rest.dropFirst(part.count)
            if let expectedEnd, next + Int64(part.count) > expectedEnd { throw tooLong }
            let taken = transfer.state.withLock { state in
                state.received += Int64(part.count)
                return state.plan.receive(part.count, segment.id)
            }
            try part.prefix(taken).withUnsafeBytes { try store($0) }
            guard taken == part.count else { return false }
            if let limit = transfer.options.rateLimit { try await limit.take(part.count) }
        }
        // Where another connection has taken the rest, the segment ends before its response.
        return transfer.state.withLock { state in
            guard let segment = state.plan.active[segment.id] else { return false }
            return segment.remaining > 0 || segment.end >= expectedEnd ?? .max
        }
    }

    private var tooLong: SegmentedTransfer.Restart {
        SegmentedTransfer.Restart(failure: invalid("a body that is longer than its Content-Range"), asksForWhole: true)
    }

    private func checkLength() throws {
        guard let expectedEnd else { return transfer.state.withLock { $0.plan.finishWhole(segment.id) } }
        guard next == expectedEnd else {
            throw SegmentedTransfer.Restart(failure: invalid("a body that is shorter than its Content-Range"), asksForWhole: true)
        }
    }

    private func store(_ bytes: UnsafeRawBufferPointer) throws {
        check?.update(bytes)
        try bufferLock.withLock { _ in
            if let flushError { throw flushError }
            try append(bytes)
        }
    }

    private func append(_ bytes: UnsafeRawBufferPointer) throws {
        var rest = bytes
        while !rest.isEmpty {
            let count = min(rest.count, buffer.count - buffered)
            UnsafeMutableRawBufferPointer(rebasing: buffer[buffered...]).copyMemory(from: UnsafeRawBufferPointer(rebasing: rest[..<count]))
            buffered += count
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            if buffered == buffer.count { try write() }
        }
        if buffered > 0, lastFlush + Self.flushInterval < .now { try write() }
    }

    /// Writes bytes that have been in memory for a while. An error is thrown with the next bytes, or at the end.
    func flushStale() {
        bufferLock.withLock { _ in
            guard buffered > 0, flushError == nil, lastFlush + Self.flushInterval < .now else { return }
            do { try write() } catch { flushError = error }
        }
    }

    private func flush() throws {
        try bufferLock.withLock { _ in
            if let flushError { throw flushError }
            try write()
        }
    }

    /// Where the next byte belongs.
    private var next: Int64 { bufferLock.withLock { _ in position + Int64(buffered) } }

    private func write() throws {
        lastFlush = .now
        guard buffered > 0 else { return }
        let range = position..<(position + Int64(buffered))
        try transfer.file.write(UnsafeRawBufferPointer(rebasing: buffer[..<buffered]), at: position)
        position = range.upperBound
        buffered = 0
        if check == nil { try transfer.file.record(range) }
    }

    // MARK: The end

    private func end() -> SegmentedTransfer.Ending {
        guard check != nil else { return .finished }
        if let mismatch = check?.mismatch() {
            discardSegment()
            return .failed(
                SegmentedDownloadError.digestMismatch(
                    algorithm: mismatch.algorithm, expected: mismatch.expected, actual: mismatch.actual), retryAfter: nil)
        }
        do {
            try transfer.file.record(segment.start..<position)
            return .finished
        } catch {
            return .fatal(error)
        }
    }

    private func discardSegment() {
        transfer.state.withLock { $0.plan.discard(segment.id) }
    }

    /// Keeps what was received before a failure; returns how the segment ends if that fails.
    private func keep(after error: any Error) -> SegmentedTransfer.Ending? {
        guard check == nil else {
            discardSegment()
            return nil
        }
        do {
            try flush()
            return nil
        } catch let failure {
            return .fatal(error is CocoaError ? error : failure)
        }
    }

    private func classify(_ error: any Error) -> SegmentedTransfer.Ending {
        if let restart = error as? SegmentedTransfer.Restart { return .restart(restart) }
        // Another connection has taken what was left.
        if case CurlewError.cancelled = error, hasNothingLeft { return .finished }
        guard let error = error as? CurlewError else { return .fatal(error) }
        switch error {
        case .transferFailed(let failure) where Self.permanent.contains(failure.kind): return .refused(error)
        case .transferFailed(let failure): return .failed(error, retryAfter: failure.retryAfter)
        case .responseValidationFailed(.unacceptableStatusCode(let code), _):
            guard Self.transientStatuses.contains(code) else { return .refused(error) }
            return .failed(error, retryAfter: retryAfter)
        case .redirectFailed: return .refused(error)
        default: return .fatal(error)
        }
    }

    private var hasNothingLeft: Bool {
        transfer.state.withLock { state in state.plan.active[segment.id].map { $0.remaining <= 0 } ?? true }
    }

    private var retryAfter: Duration? {
        request.responseHead.flatMap { RetryAfter($0)?.delay }
    }

    private static let transientStatuses = RetryPolicy.defaultRetryableHTTPStatusCodes.union([425])
    private static let permanent: Set<TransferFailure.Kind> = [
        .invalidURL, .unsupportedScheme, .serverCertificate, .clientCertificate, .configuration, .addressNotAllowed, .cellularNotAllowed,
    ]
}
