// SPDX-License-Identifier: Apache-2.0
import Dispatch

// What is done with a response and its body, on the operation's queue.

extension URLConnectionOperation {
    // MARK: Head

    /// Handles the head of a response; returns `false` if its body is not needed.
    func received(_ response: HTTPURLResponse, of attempt: ConnectionAttempt) -> Bool {
        guard isCurrent(attempt), let head = attempt.head else { return false }
        forgetResponse(of: attempt)
        do {
            guard try prepare(for: head, of: attempt) else { return false }
        } catch {
            fail(error)
            return false
        }
        let known = RangeResumption(request, head) ?? RangeResumption(request, head.withoutTag)
        storage.withLock { storage in
            // The complete body counts as a 200 with the fields of the first response (RFC 9110, section 15.3.7.3).
            if !attempt.isAppending || storage.response == nil {
                if attempt.errorSink != nil { attempt.replacedResponse = storage.response }
                storage.response = response
            }
            if let known { storage.resumption = known }
        }
        connection(didReceive: response)
        return isCurrent(attempt)
    }

    /// Forgets the response before another one to the same request, which is retried where the body was lost before its first byte.
    private func forgetResponse(of attempt: ConnectionAttempt) {
        (attempt.errorSink, attempt.isAppending, attempt.bytesToSkip) = (nil, false, 0)
        if let replaced = attempt.replacedResponse.take() { storage.withLock { $0.response = replaced } }
    }

    /// Decides where the body of a response goes; returns `false` if it is not needed.
    private func prepare(for head: ResponseHead, of attempt: ConnectionAttempt) throws -> Bool {
        attempt.expectedLength = head.value(for: "Content-Encoding") == nil ? head.expectedBodyLength ?? -1 : -1
        guard let resumption = attempt.resumption else {
            try acceptWholeBody(head, of: attempt)
            return true
        }
        switch decision(on: head, to: resumption, of: attempt) {
        case .append(let total):
            attempt.expectedLength = total
            attempt.isAppending = true
        case .startOver, .setAside: try acceptWholeBody(head, of: attempt)
        case .complete:
            detach(attempt)
            succeed()
            return false
        case .askForWhole:
            detach(attempt)
            storage.withLock { $0.resumption = nil }
            connect(requestsWholeBody: true)
            return false
        }
        return true
    }

    /// Classifies the response to a request for the rest. If a date was sent because there was no strong entity tag, a changed weak tag
    /// means that the rest belongs to another version.
    private func decision(
        on head: ResponseHead, to resumption: RangeResumption, of attempt: ConnectionAttempt
    ) -> RangeResumption.Answer {
        let decision = resumption.answer(head, offset: attempt.offset)
        guard case .append = decision, let tag = head.value(for: "ETag"),
            let known = response?.value(forHTTPHeaderField: "ETag")
        else { return decision }
        return tag.matchesWeakly(known) ? decision : .askForWhole
    }

    /// Accepts a whole body, which replaces the bytes received before. The body of an error response is kept apart instead.
    private func acceptWholeBody(_ head: ResponseHead, of attempt: ConnectionAttempt) throws {
        let sink = sink
        let isError = !(200..<300).contains(head.statusCode)
        if isError, sink is FileSink || sink.count > 0 {
            attempt.errorSink = MemorySink(limit: settings.session.configuration.maximumBodySize)
            return
        }
        // The bytes received before are of a version that is no longer current.
        defer { storage.withLock { $0.resumption = nil } }
        guard sink is FileSink || sink.count > 0 else { return }
        if !sink.canRestart, let version = storage.withLock({ $0.resumption })?.validator, version.hasBytePrefix("\""),
            version == head.value(for: "ETag")
        {
            // Identical byte for byte, as the strong tag is the same (RFC 9110, section 8.8.1), so the bytes received before remain valid.
            attempt.bytesToSkip = sink.count
        } else {
            try sink.restart()
            storage.withLock { $0.totalBytesRead = 0 }
        }
    }

    // MARK: Body

    /// Writes a piece of the body; returns when there is space for the next.
    func receive(_ piece: Data, of attempt: ConnectionAttempt) async throws {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { self.write(piece, of: attempt) { continuation.resume(with: $0) } }
        }
    }

    private func write(_ piece: Data, of attempt: ConnectionAttempt, done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        guard isCurrent(attempt) else { return done(.failure(CurlewError.cancelled)) }
        let skipped = min(attempt.bytesToSkip, Int64(piece.count))
        attempt.bytesToSkip -= skipped
        let remaining = piece.dropFirst(Int(skipped))
        writeRemaining(remaining, of: attempt) { result in
            if case .success = result, !remaining.isEmpty { self.connection(didReceive: remaining) }
            done(result)
        }
    }

    private func writeRemaining(_ data: Data, of attempt: ConnectionAttempt, done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        var remaining = data
        do {
            while !remaining.isEmpty {
                guard isCurrent(attempt) else { return done(.failure(CurlewError.cancelled)) }
                let sink: any BodySink = attempt.errorSink ?? sink
                let count = try sink.write(remaining)
                if attempt.errorSink == nil { storage.withLock { $0.totalBytesRead = sink.count } }
                remaining = remaining.dropFirst(count)
                guard count == 0 else { continue }
                // The stream has no space, and no way to report when it has, so it is polled.
                return queue.asyncAfter(deadline: .now() + .milliseconds(5)) { [remaining] in
                    self.writeRemaining(remaining, of: attempt, done: done)
                }
            }
            done(.success(()))
        } catch {
            fail(error)
            done(.failure(error))
        }
    }

    /// Calls a progress closure on the session's callback queue.
    func report(_ progress: ProgressBlock?, _ bytes: Int64, _ total: Int64, _ expected: Int64) {
        if let progress { settings.session.configuration.callbackQueue.async { progress(bytes, total, expected) } }
    }
}

extension ResponseHead {
    /// The head without its entity tag, so that `Last-Modified` becomes the validator if it is a strong one (RFC 9110, section 8.8.2.2).
    ///
    /// Used for weak tags, which `If-Range` can't carry. Section 13.1.5 allows the date only if there is no tag at all; but then downloads
    /// from servers whose tags are all weak could not be resumed, and a changed weak tag is detected in the response.
    fileprivate var withoutTag: ResponseHead {
        ResponseHead(statusCode: statusCode, headers: HTTPHeaders(headers.filter { !$0.isNamed("ETag") }))
    }
}
