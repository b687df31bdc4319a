// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The delay before the next attempt that a response asks for in `Retry-After` (RFC 9110, section 10.2.3).
package struct RetryAfter: Equatable {
    /// The delay in seconds; 0 for a date in the past, infinity for a number out of range.
    package let delay: TimeInterval

    /// `nil` without a valid `Retry-After`.
    ///
    /// A date is relative to the response's own `Date`, so that the clocks need not agree; to `now` without one.
    package init?(_ head: ResponseHead, now: Date = Date()) {
        guard let value = head.value(for: "Retry-After")?.trimmingCharacters(in: .whitespaces), !value.isEmpty else {
            return nil
        }
        if value.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
            delay = TimeInterval(value) ?? .infinity
        } else if let date = HTTPDate.date(from: value) {
            let sent = head.value(for: "Date").flatMap { HTTPDate.date(from: $0) } ?? now
            delay = max(date.timeIntervalSince(sent), 0)
        } else {
            return nil
        }
    }
}
