// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The delay before the next attempt that a response asks for in `Retry-After` (RFC 9110, section 10.2.3).
///
/// A date is relative to the response's own `Date`, so that the clocks need not agree; without one to `now`.
public struct RetryAfter: Sendable, Hashable {
    /// The delay in seconds, as the server gives it; 0 for a date in the past, infinity for a number out of range.
    public let delay: TimeInterval

    /// Reads the field of a response; `nil` without a valid one.
    ///
    /// - Parameter now: counts for a date if the response has no `Date`; the current time by default.
    public init?(_ response: HTTPURLResponse, now: Date = Date()) {
        self.init(now) { response.value(forHTTPHeaderField: $0) }
    }

    /// Reads the field of a response's head; `nil` without a valid one.
    ///
    /// - Parameter now: counts for a date if the response has no `Date`; the current time by default.
    public init?(_ head: ResponseHead, now: Date = Date()) {
        self.init(now) { head.value(for: $0) }
    }

    private init?(_ now: Date, _ value: (String) -> String?) {
        guard let text = value("Retry-After")?.trimmingCharacters(in: .whitespaces) else { return nil }
        if text.isAllDigits {
            delay = TimeInterval(text) ?? .infinity
        } else if let date = HTTPDate.date(from: text) {
            delay = max(date.timeIntervalSince(value("Date").flatMap { HTTPDate.date(from: $0) } ?? now), 0)
        } else {
            return nil
        }
    }

    /// Returns the delay; `nil` if it is longer than the limit.
    package func delay(upTo limit: Duration) -> Duration? { delay <= limit.seconds ? .seconds(delay) : nil }
}
