// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// When a request began, was answered, completed and was serialized.
///
/// After a retry the times are those of the last attempt.
public struct Timeline: Sendable, Hashable {
    /// When the request was started.
    public let requestStartTime: CFAbsoluteTime
    /// When the first byte was received or sent; the completion time if there was none.
    public let initialResponseTime: CFAbsoluteTime
    /// When the transfer was over.
    public let requestCompletedTime: CFAbsoluteTime
    /// When the response was serialized.
    public let serializationCompletedTime: CFAbsoluteTime
    /// Seconds from the start to the first byte.
    public let latency: TimeInterval
    /// Seconds from the start to the end of the transfer.
    public let requestDuration: TimeInterval
    /// Seconds from the end of the transfer to the end of the serialization; time spent waiting for the handler's queue included.
    public let serializationDuration: TimeInterval
    /// Seconds from the start to the end of the serialization.
    public let totalDuration: TimeInterval

    /// Makes a timeline of its times; the durations are their differences.
    public init(
        requestStartTime: CFAbsoluteTime = 0.0, initialResponseTime: CFAbsoluteTime = 0.0, requestCompletedTime: CFAbsoluteTime = 0.0,
        serializationCompletedTime: CFAbsoluteTime = 0.0
    ) {
        self.requestStartTime = requestStartTime
        self.initialResponseTime = initialResponseTime
        self.requestCompletedTime = requestCompletedTime
        self.serializationCompletedTime = serializationCompletedTime
        latency = initialResponseTime - requestStartTime
        requestDuration = requestCompletedTime - requestStartTime
        serializationDuration = serializationCompletedTime - requestCompletedTime
        totalDuration = serializationCompletedTime - requestStartTime
    }

    private static func seconds(_ value: Double) -> String {
        String(format: "%.3f", value)
    }

    private var durations: [String] {
        [
            "\"Latency\": \(Self.seconds(latency)) secs",
            "\"Request Duration\": \(Self.seconds(requestDuration)) secs",
            "\"Serialization Duration\": \(Self.seconds(serializationDuration)) secs",
            "\"Total Duration\": \(Self.seconds(totalDuration)) secs",
        ]
    }
}

// MARK: - CustomStringConvertible

extension Timeline: CustomStringConvertible, CustomDebugStringConvertible {
    /// The durations in a line.
    public var description: String {
        "Timeline: { \(durations.joined(separator: ", ")) }"
    }

    /// The times and the durations in a line.
    public var debugDescription: String {
        let times = [
            "\"Request Start Time\": \(Self.seconds(requestStartTime))",
            "\"Initial Response Time\": \(Self.seconds(initialResponseTime))",
            "\"Request Completed Time\": \(Self.seconds(requestCompletedTime))",
            "\"Serialization Completed Time\": \(Self.seconds(serializationCompletedTime))",
        ]
        return "Timeline: { \((times + durations).joined(separator: ", ")) }"
    }
}
