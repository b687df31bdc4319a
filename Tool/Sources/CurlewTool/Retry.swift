// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Which failures `--retry` repeats, and when.
enum Retry {
    private static let longestDelay = 3600.0

    /// The methods that may be repeated (RFC 9110, section 9.2.2), and the bodies that can be.
    private static func isRepeatable(_ plan: RequestPlan) -> Bool {
        if case .stream = plan.body { return false }
        return plan.body != .standardInput && RetryPolicy.defaultRetryableHTTPMethods.contains(plan.method)
    }

    static func isTransient(_ response: HTTPURLResponse, _ plan: RequestPlan) -> Bool {
        isRepeatable(plan) && RetryPolicy.defaultRetryableHTTPStatusCodes.contains(response.statusCode)
    }

    static func isTransient(_ error: any Error, _ plan: RequestPlan) -> Bool {
        guard case CurlewError.transferFailed(let failure) = error else { return false }
        return isRepeatable(plan) && RetryPolicy.defaultRetryableFailureKinds.contains(failure.kind)
    }

    /// What `Retry-After` says (RFC 9110, section 10.2.3), or an exponential backoff with jitter. `nil` if the server asks for more than an
    /// hour.
    static func delay(attempt: UInt, response: HTTPURLResponse?, now: Date = Date()) -> Duration? {
        if let text = response?.value(forHTTPHeaderField: "Retry-After")?.trimmingCharacters(in: .whitespaces) {
            if let seconds = Double(text), seconds >= 0 { return seconds <= longestDelay ? .seconds(seconds) : nil }
            let format = DateFormatter()
            format.locale = Locale(identifier: "en_US_POSIX")
            format.timeZone = TimeZone(secondsFromGMT: 0)
            format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
            if let date = format.date(from: text) {
                let seconds = max(date.timeIntervalSince(now), 0)
                return seconds <= longestDelay ? .seconds(seconds) : nil
            }
        }
        return .seconds(min(0.5 * Double(1 << min(attempt, 7)), 60) * .random(in: 0.5...1))
    }

    static func text(_ delay: Duration) -> String {
        let tenths = Int((delay / .milliseconds(100)).rounded())
        return "\(tenths / 10).\(tenths % 10) s"
    }
}
