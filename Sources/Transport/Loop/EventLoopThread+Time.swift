// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP
import Foundation

// What is due at a time.

extension EventLoopThread {
    /// Schedules a check of a transfer at its next time limit.
    ///
    /// A limit that moved later or was removed is not rescheduled: the transfer is checked too early and put back.
    func armTimer(_ transfer: Transfer) {
        guard let time = transfer.nextCheck else { return }
        if transfer.heapIndex < 0 || time < transfer.deadline { timers.set(transfer, to: time) }
    }

    /// Schedules a transfer's body to be read again in another turn, because libcurl must not be called from its callbacks.
    func resumeSendingLater(_ transfer: Transfer) {
        mailbox.post(.resumeSending(transfer.number))
    }

    /// Schedules the decoding of a transfer's body to be continued in another turn.
    func resumeDecodingLater(_ transfer: Transfer) {
        mailbox.post(.resumeDecoding(transfer.number))
    }

    /// The date of an earlier monotonic time.
    func date(of time: Nanoseconds) -> Date { wallClock.date(of: time, inTurn: now) }

    /// Ends the transfers whose limits have passed, and does what is due for the others.
    func expireTimers() {
        while let stream = streamTimers.popExpired(at: now) { complete(stream, error: stream.waitExceeded) }
        while let transfer = timers.popExpired(at: now) {
            transfer.noteProgress()
            if transfer.hasOpenedHTTP1 {
                endAwaitingTickets(of: transfer)
                continue
            }
            if let limit = transfer.nextLimit, limit.time <= now {
                fail(transfer, limit.failureKind, limit.message)
                continue
            }
            if case .awaited(let deadline) = transfer.expectation, deadline <= now { transfer.resumeSending() }
            transfer.endSendingIfResponseStalls()
            if let time = transfer.nextCheck { timers.set(transfer, to: time) }
        }
    }
}
