// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// The time limits of a request, in nanoseconds.
///
/// They become deadlines of the event loop (``DeadlineHeap``, from which `EventLoopThread+Time` fails the transfer) rather than options of
/// libcurl, so that each fails with its own error, and pauses and queueing count as documented. Only the connect timeout is libcurl's.
struct TimeLimits: Equatable {
    let total: Nanoseconds?
    let queue: Nanoseconds?
    let idle: Nanoseconds?
    let firstByte: Nanoseconds?
}

extension TimeLimits {
    init(_ options: TransferOptions) {
        self.init(
            total: options.totalTimeout?.nanoseconds, queue: options.queueTimeout?.nanoseconds, idle: options.idleTimeout?.nanoseconds,
            firstByte: options.firstByteTimeout?.nanoseconds)
    }
}

/// A deadline at which a transfer fails unless it makes progress before.
struct NextLimit {
    /// The kind of limit.
    enum Limit {
        case total
        case queue
        case connect
        case decision
        case idle
        case firstByte
    }

    private(set) var time = Nanoseconds.max
    private(set) var limit = Limit.total
    private(set) var duration: Nanoseconds = 0

    mutating func consider(_ duration: Nanoseconds?, since start: Nanoseconds, _ limit: Limit) {
        guard let duration, start &+ duration < time else { return }
        time = start &+ duration
        self.limit = limit
        self.duration = duration
    }

    var failureKind: TransferFailure.Kind {
        switch limit {
        case .total: .totalTimeout
        case .queue: .queueTimeout
        case .connect, .decision: .connectTimeout
        case .idle: .idleTimeout
        case .firstByte: .firstByteTimeout
        }
    }

    /// The message for the expired limit.
    var message: String {
        let awaited =
            switch limit {
            case .total: "complete response"
            case .queue: "free connection to the host"
            case .connect: "address from the session's resolver"
            case .decision: "decision on the connection's certificates"
            case .idle: "further byte"
            case .firstByte: "first byte of a response"
            }
        return "No \(awaited) within \(Duration.nanoseconds(Int64(duration)))"
    }
}

extension Transfer {
    /// When the loop has to check this transfer; `nil` for never.
    var nextCheck: Nanoseconds? {
        var next = nextLimit?.time
        if case .awaited(let deadline) = exchange.expectation { next = min(next ?? .max, deadline) }
        if let deadline = run.responseDeadline, !exchange.pauses.isPaused { next = min(next ?? .max, deadline) }
        return next
    }

    /// The next deadline of this transfer; `nil` for none. The connect timeout is libcurl's.
    var nextLimit: NextLimit? {
        guard isInUse else { return nil }
        var next = NextLimit()
        next.consider(limits.total, since: postedAt, .total)
        if isWaitingForConnection { next.consider(limits.queue, since: postedAt, .queue) }
        if isResolving, let resolution {
            next.consider(Nanoseconds(request.connectTimeoutMilliseconds) * 1_000_000, since: resolution.startedAt, .connect)
        }
        if let askedAt = exchange.askedAt {
            next.consider(Nanoseconds(request.connectTimeoutMilliseconds) * 1_000_000, since: askedAt, .decision)
        }
        if state.phase >= .sending, !exchange.pauses.isPaused {
            next.consider(limits.idle, since: lastActivity, .idle)
            if let sentAt = exchange.requestSentAt { next.consider(limits.firstByte, since: sentAt, .firstByte) }
        }
        return next.time == .max ? nil : next
    }

    /// Whether it is in the loop's queue, or in libcurl's, which is inferred: no name was resolved and no connection is used.
    private var isWaitingForConnection: Bool {
        state.phase == .queued || (!exchange.isQueuedByLoop && state.phase == .resolving && !isResolving)
    }

    /// Restarts the idle timeout.
    func restartIdleTime() {
        lastActivity = loop.now
        if exchange.requestSentAt != nil { exchange.requestSentAt = loop.now }
    }

    /// Records libcurl's unreported progress since the last call: connections set up, and body bytes sent. libcurl reads those in larger
    /// pieces than a slow network sends.
    func noteProgress() {
        guard multi != nil else { return }
        noteSetUpPhase()
        guard request.body != nil else { return }
        let count = Int64(ccurlew_get_offset(handle.raw, CURLINFO_SIZE_UPLOAD_T))
        guard count > exchange.bodyBytesUploaded else { return }
        exchange.bodyBytesUploaded = count
        lastActivity = loop.now
    }
}
