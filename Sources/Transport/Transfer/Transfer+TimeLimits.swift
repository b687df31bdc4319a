// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// The time limits of a request, as the loop counts.
struct TimeLimits {
    let total: Nanoseconds?
    let queue: Nanoseconds?
    let idle: Nanoseconds?
    let firstByte: Nanoseconds?

    init(_ options: TransferOptions) {
        total = options.totalTimeout?.nanoseconds
        queue = options.queueTimeout?.nanoseconds
        idle = options.idleTimeout?.nanoseconds
        firstByte = options.firstByteTimeout?.nanoseconds
    }
}

/// A moment at which a transfer fails unless something has happened until then.
struct NextLimit {
    /// What is limited.
    enum Limit {
        case total
        case queue
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
        case .idle: .idleTimeout
        case .firstByte: .firstByteTimeout
        }
    }

    /// What did not come in time.
    var message: String {
        let awaited =
            switch limit {
            case .total: "complete response"
            case .queue: "free connection to the host"
            case .idle: "further byte"
            case .firstByte: "first byte of a response"
            }
        return "No \(awaited) within \(Duration.nanoseconds(Int64(duration)))"
    }
}

extension Transfer {
    /// When the loop has to look at this transfer; `nil` for never.
    var nextLook: Nanoseconds? {
        var next = nextLimit?.time
        if case .awaited(let deadline) = expectation { next = min(next ?? .max, deadline) }
        if let responseDeadline, !pauses.isPaused { next = min(next ?? .max, responseDeadline) }
        return next
    }

    /// The next time limit of this transfer; `nil` for none. The connect timeout is libcurl's.
    var nextLimit: NextLimit? {
        guard isInUse else { return nil }
        var next = NextLimit()
        next.consider(limits.total, since: mailedAt, .total)
        if isWaitingForConnection { next.consider(limits.queue, since: mailedAt, .queue) }
        if state.phase >= .sending, !pauses.isPaused {
            next.consider(limits.idle, since: lastActivity, .idle)
            if let requestSentAt { next.consider(limits.firstByte, since: requestSentAt, .firstByte) }
        }
        return next.time == .max ? nil : next
    }

    /// Whether it waits in our queue, or in libcurl's, which does not tell: no name was looked up and no connection is used.
    private var isWaitingForConnection: Bool {
        state.phase == .queued || (!isQueuedByUs && state.phase == .resolving)
    }

    /// Begins to wait for the next byte anew.
    func restartIdleTime() {
        lastActivity = loop.now
        if requestSentAt != nil { requestSentAt = loop.now }
    }

    /// Notes what libcurl has done since this was last asked, and tells nobody of: connections set up, and body bytes that left. It takes
    /// those in larger pieces than a slow network does.
    func noteProgress() {
        guard multi != nil else { return }
        noteSetUpPhase()
        guard request.body != nil else { return }
        let count = Int64(ccurlew_get_offset(handle.raw, CURLINFO_SIZE_UPLOAD_T))
        guard count > bodyBytesSeenOff else { return }
        bodyBytesSeenOff = count
        lastActivity = loop.now
    }
}
