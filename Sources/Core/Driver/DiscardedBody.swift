// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// A body that is received only to be dropped, so that its connection can be reused. Receiving a long one takes longer than connecting again.
struct DiscardedBody {
    /// The largest size, in bytes.
    static let limit = 256 * 1024
    /// How long it is received: a server may send a few bytes now and then, without end.
    static let timeout = Duration.seconds(2)

    private var count: Int64 = 0
    // No `ContinuousClock.Instant`, whose size is known at run time only, and that of the whole state with it.
    private let start: Nanoseconds

    /// Whether the rest is not received.
    private(set) var isCutOff: Bool

    /// - Parameter announced: the announced length; `nil` if it is unknown.
    init(announced: Int64?, at time: Nanoseconds = MonotonicTime.now()) {
        start = time
        isCutOff = (announced ?? 0) > Self.limit
    }

    /// Counts a piece.
    mutating func receive(_ size: Int, at time: Nanoseconds = MonotonicTime.now()) {
        count += Int64(size)
        isCutOff = isCutOff || count > Self.limit || time &- start > Self.timeout.nanoseconds
    }
}
