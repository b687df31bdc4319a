// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// How long a response asks to wait before the next attempt (RFC 9110, section 10.2.3).
package struct RetryAfter: Equatable {
    /// In seconds; 0 for a date that has passed, infinite for a number that nobody could wait for.
    package let delay: TimeInterval

    /// `nil` when the response does not say, or not in one of the two forms.
    ///
    /// A date counts from the response's own `Date`, so that the clocks of both sides need not agree; from `now` without one.
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
