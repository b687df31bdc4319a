// SPDX-License-Identifier: Apache-2.0
import Foundation

/// How much of what they repeat the tests do: `CURLEW_TEST_SHORT=1` is for runs under a sanitizer, which are ten times slower,
/// `CURLEW_TEST_LONG=1` for runs of about an hour.
package enum TestLength: Sendable {
    case short, normal, long

    package static let current: Self = {
        let environment = ProcessInfo.processInfo.environment
        if environment["CURLEW_TEST_SHORT"] == "1" { return .short }
        return environment["CURLEW_TEST_LONG"] == "1" ? .long : .normal
    }()

    package static var isShort: Bool { current == .short }
    package static var isLong: Bool { current == .long }

    /// The value of this run; without one of a length, that of the normal one.
    package static func value<Value>(_ normal: Value, short: Value? = nil, long: Value? = nil) -> Value {
        switch current {
        case .short: short ?? normal
        case .normal: normal
        case .long: long ?? normal
        }
    }
}
