// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Nanoseconds of the monotonic clock, which is never set.
package typealias Nanoseconds = UInt64

/// The clock of the event loop.
package enum MonotonicTime {
    /// The time now.
    package static func now() -> Nanoseconds {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Nanoseconds(time.tv_sec) * 1_000_000_000 + Nanoseconds(time.tv_nsec)
    }
}

/// Converts monotonic times to dates. Reads the clock once a turn of the loop.
struct WallClock {
    private var turn: Nanoseconds = 0
    private var time: Nanoseconds = 0
    private var date = Date()

    /// The date of an earlier monotonic time, assuming the wall clock wasn't set since.
    ///
    /// - Parameter now: the time at which the turn began, which identifies it.
    mutating func date(of earlier: Nanoseconds, inTurn now: Nanoseconds) -> Date {
        if turn != now { (turn, time, date) = (now, MonotonicTime.now(), Date()) }
        return date - TimeInterval(time - min(earlier, time)) / 1_000_000_000
    }
}

extension Duration {
    /// The duration in nanoseconds, clamped to 0 and a hundred years, so that adding it to a time doesn't overflow.
    package var nanoseconds: Nanoseconds {
        guard self > .zero else { return 0 }
        let longest: Nanoseconds = 3_155_760_000_000_000_000
        if #available(macOS 15.0, iOS 18.0, watchOS 11.0, tvOS 18.0, visionOS 2.0, *) {
            return Nanoseconds(min(attoseconds / 1_000_000_000, Int128(longest)))
        }
        let (seconds, attoseconds) = components
        guard seconds < 3_155_760_000 else { return longest }
        return Nanoseconds(seconds) * 1_000_000_000 + Nanoseconds(attoseconds / 1_000_000_000)
    }

    /// The duration in milliseconds, rounded up, at least 1: libcurl takes 0 for "no limit".
    package var atLeastOneMillisecond: Int {
        Int(min(max(1, (nanoseconds + 999_999) / 1_000_000), Nanoseconds(Int32.max)))
    }
}
