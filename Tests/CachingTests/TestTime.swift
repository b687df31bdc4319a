// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Foundation

/// A clock that advances by a second with each reading.
final class TestTime: Sendable {
    private let seconds = Lock(1_000_000)

    let next: @Sendable () -> timespec

    init() {
        next = { [seconds] in
            seconds.withLock { seconds in
                seconds += 1
                return timespec(tv_sec: seconds, tv_nsec: 0)
            }
        }
    }
}
