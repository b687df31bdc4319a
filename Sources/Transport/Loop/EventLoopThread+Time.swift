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

    /// The date of an earlier monotonic time.
    func date(of time: Nanoseconds) -> Date { wallClock.date(of: time, inTurn: now) }

    /// Ends the transfers whose limits have passed, and does what is due for the others.
    func expireTimers() {
        while let stream = streamTimers.popExpired(at: now) { complete(stream, error: stream.waitExceeded) }
        while let transfer = timers.popExpired(at: now) {
            transfer.noteProgress()
            if transfer.exchange.hasOpenedHTTP1 {
                endAwaitingTickets(of: transfer)
                continue
            }
            if let limit = transfer.nextLimit, limit.time <= now {
                transfer.giveUp()
                fail(transfer, limit.failureKind, limit.message)
                continue
            }
            if case .awaited(let deadline) = transfer.exchange.expectation, deadline <= now { transfer.resumeSending() }
            transfer.endSendingIfResponseStalls()
            if let time = transfer.nextCheck { timers.set(transfer, to: time) }
        }
    }

    /// Ends the slice of decoding, now that time limits were looked at, and continues what was left for the next one.
    func continueDecoding() {
        // Nothing is left by a slice that was not begun.
        guard decodingSlice.hasBegun else { return }
        decodingSlice = DecodingSlice()
        var waiting = undecoded[...]
        undecoded = []
        while !decodingSlice.isOver, let number = waiting.popFirst() {
            transfers[number]?.changePauses { $0.decodesLater = false }
        }
        // In front of those that were interrupted again.
        undecoded.insert(contentsOf: waiting, at: 0)
    }
}
