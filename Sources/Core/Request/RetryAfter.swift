// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The delay before the next attempt that a response asks for in `Retry-After` (RFC 9110, section 10.2.3).
///
/// A date is relative to the response's own `Date`, so that the clocks need not agree; without one to `now`.
public struct RetryAfter: Sendable, Hashable {
    /// The delay that the server asks for; zero for a date in the past, and at most 2,147,483,647 seconds, about 68 years.
    public let delay: Duration

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
            delay = .seconds(min(Int64(text) ?? .max, Self.longest))
        } else if let date = HTTPDate.date(from: text) {
            let time = date.timeIntervalSince(value("Date").flatMap { HTTPDate.date(from: $0) } ?? now)
            delay = .seconds(min(max(time, 0), TimeInterval(Self.longest)))
        } else {
            return nil
        }
    }

    /// The longest delay in seconds: longer than any limit of interest, and small enough to be added to a time.
    private static let longest = Int64(Int32.max)

    /// Returns the delay; `nil` if it is longer than the limit.
    package func delay(upTo limit: Duration) -> Duration? { delay <= limit ? delay : nil }
}
