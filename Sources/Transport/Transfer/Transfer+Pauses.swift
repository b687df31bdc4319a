// SPDX-License-Identifier: Apache-2.0
import CCurlew

// Pausing and resuming either direction of a transfer.

extension Transfer {
    /// The reasons why a transfer is paused.
    struct Pauses {
        /// The user suspended the task.
        var isSuspended = false
        /// The observer paused the transfer.
        var isHeld = false
        /// Receiving is paused in libcurl.
        var receivingStopped = false
        /// Receiving is stopped until a later slice of decoding. Not a pause: time limits apply.
        var decodesLater = false
        /// Sending is paused in libcurl.
        var sendingStopped = false
        /// Sending is stopped until receiving continues, because libcurl receives as long as it sends.
        var isHeldBack = false

        /// Whether the transfer is paused from this side, in either direction.
        var isPaused: Bool { isSuspended || isHeld || receivingStopped && !decodesLater || sendingStopped }
    }

    /// Changes why the transfer is paused, and resumes the directions that have no reason left.
    ///
    /// - Parameter sendingIsPossible: whether the request's body has bytes available again.
    func changePauses(sendingIsPossible: Bool = false, _ change: (inout Pauses) -> Void) {
        loop.assertIsCurrent()
        let wasSuspended = exchange.pauses.isSuspended
        let wasPaused = exchange.pauses.isPaused
        change(&exchange.pauses)
        // Time spent paused doesn't count towards the idle timeout.
        if wasPaused, !exchange.pauses.isPaused { restartIdleTime() }
        var mask: Int32 = 0
        var resumes = false
        if exchange.pauses.receivingStopped {
            if exchange.pauses.isSuspended || exchange.pauses.isHeld || exchange.pauses.decodesLater {
                mask |= CURLPAUSE_RECV
            } else {
                resumes = true
            }
        }
        if exchange.pauses.sendingStopped {
            let isPossible = exchange.pauses.isHeldBack ? mask & CURLPAUSE_RECV == 0 : sendingIsPossible || wasSuspended
            if exchange.pauses.isSuspended || !isPossible { mask |= CURLPAUSE_SEND } else { resumes = true }
        }
        guard resumes else { return loop.armTimer(self) }
        // Set before the call, because it may run the callbacks, which may pause again.
        if mask & CURLPAUSE_RECV == 0 { exchange.pauses.receivingStopped = false }
        if mask & CURLPAUSE_SEND == 0 {
            exchange.pauses.sendingStopped = false
            exchange.pauses.isHeldBack = false
        }
        if wasPaused { restartIdleTime() }
        let code = curl_easy_pause(handle.raw, mask)
        guard code == CURLE_OK else { return loop.completed(self, code) }
        loop.armTimer(self)
    }

    // MARK: Receiving while sending

    /// How much libcurl may receive for a paused observer while it sends, in bytes.
    private static let largestReadAhead: Int64 = 1 << 20

    /// Whether libcurl has kept so much of the response for the observer, which is paused, that it must not go on sending either.
    var mustHoldBack: Bool {
        guard exchange.pauses.receivingStopped, CurlInfo.current.receivesWhilePaused else { return false }
        return handle.receivedBytes - state.bodyBytes > Self.largestReadAhead
    }

    /// Stops sending until receiving continues.
    func holdBack() -> Int {
        exchange.pauses.isHeldBack = true
        return stopSending()
    }

    func stopSending() -> Int {
        exchange.pauses.sendingStopped = true
        return Int(CURL_READFUNC_PAUSE)
    }
}
