// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// When a request was started, received its first byte, completed and was serialized.
///
/// After a retry the times are those of the last attempt.
public struct Timeline: Sendable, Hashable {
    /// When the request was started.
    public let requestStartDate: Date
    /// When the first byte was received or sent; the time of completion if there was none.
    public let initialResponseDate: Date
    /// When the transfer completed.
    public let requestCompletedDate: Date
    /// When the response was serialized.
    public let serializationCompletedDate: Date

    /// Creates a timeline without any times: all are Foundation's reference date.
    public init() {
        self.init(requestStartTime: 0, initialResponseTime: 0, requestCompletedTime: 0, serializationCompletedTime: 0)
    }

    /// Creates a timeline.
    public init(
        requestStartDate: Date, initialResponseDate: Date, requestCompletedDate: Date, serializationCompletedDate: Date
    ) {
        self.requestStartDate = requestStartDate
        self.initialResponseDate = initialResponseDate
        self.requestCompletedDate = requestCompletedDate
        self.serializationCompletedDate = serializationCompletedDate
    }

    init(
        requestStartTime: CFAbsoluteTime, initialResponseTime: CFAbsoluteTime, requestCompletedTime: CFAbsoluteTime,
        serializationCompletedTime: CFAbsoluteTime
    ) {
        requestStartDate = Date(timeIntervalSinceReferenceDate: requestStartTime)
        initialResponseDate = Date(timeIntervalSinceReferenceDate: initialResponseTime)
        requestCompletedDate = Date(timeIntervalSinceReferenceDate: requestCompletedTime)
        serializationCompletedDate = Date(timeIntervalSinceReferenceDate: serializationCompletedTime)
    }

    /// From the start to the first byte.
    public var latency: Duration { Self.duration(latencySeconds) }
    /// From the start to the end of the transfer.
    public var requestDuration: Duration { Self.duration(requestSeconds) }
    /// From the end of the transfer to the end of the serialization, including the time in the handler's queue.
    public var serializationDuration: Duration { Self.duration(serializationSeconds) }
    /// From the start to the end of the serialization.
    public var totalDuration: Duration { Self.duration(totalSeconds) }

    private var latencySeconds: TimeInterval { initialResponseDate.timeIntervalSince(requestStartDate) }
    private var requestSeconds: TimeInterval { requestCompletedDate.timeIntervalSince(requestStartDate) }
    private var serializationSeconds: TimeInterval { serializationCompletedDate.timeIntervalSince(requestCompletedDate) }
    private var totalSeconds: TimeInterval { serializationCompletedDate.timeIntervalSince(requestStartDate) }

    /// Clamped, because `Duration` traps on more seconds than it can represent, which arbitrary dates can be apart.
    private static func duration(_ seconds: TimeInterval) -> Duration {
        .seconds(min(max(-1e18, seconds), 1e18))
    }
}

// MARK: - CustomStringConvertible

extension Timeline: LineConvertible, CustomDebugStringConvertible {
    private static func text(_ seconds: TimeInterval) -> String {
        String(format: "%.3f", seconds)
    }

    private var durations: [String] {
        [
            "\"Latency\": \(Self.text(latencySeconds)) secs",
            "\"Request Duration\": \(Self.text(requestSeconds)) secs",
            "\"Serialization Duration\": \(Self.text(serializationSeconds)) secs",
            "\"Total Duration\": \(Self.text(totalSeconds)) secs",
        ]
    }

    /// The durations, on one line.
    package var line: String {
        "Timeline: { \(durations.joined(separator: ", ")) }"
    }

    /// The times, in seconds since Foundation's reference date, and the durations, on one line.
    public var debugDescription: String {
        let times = [
            "\"Request Start Time\": \(Self.text(requestStartDate.timeIntervalSinceReferenceDate))",
            "\"Initial Response Time\": \(Self.text(initialResponseDate.timeIntervalSinceReferenceDate))",
            "\"Request Completed Time\": \(Self.text(requestCompletedDate.timeIntervalSinceReferenceDate))",
            "\"Serialization Completed Time\": \(Self.text(serializationCompletedDate.timeIntervalSinceReferenceDate))",
        ]
        return "Timeline: { \((times + durations).joined(separator: ", ")) }"
    }
}
