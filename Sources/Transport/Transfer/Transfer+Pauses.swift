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
        /// libcurl was told to pause receiving.
        var receivingStopped = false
        /// libcurl was told to pause sending.
        var sendingStopped = false

        /// Whether the transfer is paused from this side, in either direction.
        var isPaused: Bool { isSuspended || isHeld || receivingStopped || sendingStopped }
    }

    /// Changes why the transfer is paused, and resumes the directions that have no reason left.
    ///
    /// - Parameter sendingIsPossible: whether the request's body has bytes available again.
    func changePauses(sendingIsPossible: Bool = false, _ change: (inout Pauses) -> Void) {
        let wasSuspended = pauses.isSuspended
        let wasPaused = pauses.isPaused
        change(&pauses)
        // Time spent paused doesn't count towards the idle timeout.
        if wasPaused, !pauses.isPaused { restartIdleTime() }
        var mask: Int32 = 0
        var resumes = false
        if pauses.receivingStopped {
            if pauses.isSuspended || pauses.isHeld { mask |= CURLPAUSE_RECV } else { resumes = true }
        }
        if pauses.sendingStopped {
            if pauses.isSuspended || !(sendingIsPossible || wasSuspended) { mask |= CURLPAUSE_SEND } else { resumes = true }
        }
        guard resumes else { return loop.armTimer(self) }
        // Set before the call, because it may run the callbacks, which may pause again.
        if mask & CURLPAUSE_RECV == 0 { pauses.receivingStopped = false }
        if mask & CURLPAUSE_SEND == 0 { pauses.sendingStopped = false }
        restartIdleTime()
        let code = curl_easy_pause(handle.raw, mask)
        guard code == CURLE_OK else { return loop.completed(self, code) }
        loop.armTimer(self)
    }
}
