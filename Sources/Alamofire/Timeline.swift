// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding

// The times and durations of a timeline in seconds. The durations replace those of the same names in Core, whose type is `Duration`.

extension Timeline {
    /// When the request was started.
    public var requestStartTime: CFAbsoluteTime { requestStartDate.timeIntervalSinceReferenceDate }
    /// When the first byte was received or sent; the time of completion if there was none.
    public var initialResponseTime: CFAbsoluteTime { initialResponseDate.timeIntervalSinceReferenceDate }
    /// When the transfer completed.
    public var requestCompletedTime: CFAbsoluteTime { requestCompletedDate.timeIntervalSinceReferenceDate }
    /// When the response was serialized.
    public var serializationCompletedTime: CFAbsoluteTime { serializationCompletedDate.timeIntervalSinceReferenceDate }

    /// Seconds from the start to the first byte.
    public var latency: TimeInterval { initialResponseTime - requestStartTime }
    /// Seconds from the start to the end of the transfer.
    public var requestDuration: TimeInterval { requestCompletedTime - requestStartTime }
    /// Seconds from the end of the transfer to the end of the serialization, including the time in the handler's queue.
    public var serializationDuration: TimeInterval { serializationCompletedTime - requestCompletedTime }
    /// Seconds from the start to the end of the serialization.
    public var totalDuration: TimeInterval { serializationCompletedTime - requestStartTime }

    /// Creates a timeline from its times.
    public init(
        requestStartTime: CFAbsoluteTime = 0.0, initialResponseTime: CFAbsoluteTime = 0.0, requestCompletedTime: CFAbsoluteTime = 0.0,
        serializationCompletedTime: CFAbsoluteTime = 0.0
    ) {
        self.init(
            requestStartDate: Date(timeIntervalSinceReferenceDate: requestStartTime),
            initialResponseDate: Date(timeIntervalSinceReferenceDate: initialResponseTime),
            requestCompletedDate: Date(timeIntervalSinceReferenceDate: requestCompletedTime),
            serializationCompletedDate: Date(timeIntervalSinceReferenceDate: serializationCompletedTime))
    }
}
