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
    private(set) var time = Nanoseconds.max
    private(set) var kind = TransferFailure.Kind.totalTimeout
    private(set) var duration: Nanoseconds = 0

    mutating func consider(_ limit: Nanoseconds?, since start: Nanoseconds, _ kind: @autoclosure () -> TransferFailure.Kind) {
        guard let limit, start &+ limit < time else { return }
        time = start &+ limit
        self.kind = kind()
        duration = limit
    }

    /// What did not come in time.
    var message: String {
        let awaited =
            switch kind {
            case .queueTimeout: "free connection to the host"
            case .firstByteTimeout: "first byte of a response"
            case .idleTimeout: "further byte"
            default: "complete response"
            }
        return "No \(awaited) within \(Duration.nanoseconds(Int64(duration)))"
    }
}

extension Transfer {
    /// The next time limit of this transfer; `nil` for none. The connect timeout is libcurl's.
    var nextLimit: NextLimit? {
        var next = NextLimit()
        next.consider(limits.total, since: mailedAt, .totalTimeout)
        if isWaitingForConnection { next.consider(limits.queue, since: mailedAt, .queueTimeout) }
        if state.phase >= .sending, !pauses.isPaused {
            next.consider(limits.idle, since: lastActivity, .idleTimeout)
            if let requestSentAt { next.consider(limits.firstByte, since: requestSentAt, .firstByteTimeout) }
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
