// SPDX-License-Identifier: Apache-2.0

// Names that a release had. Files of this name in other modules have theirs.

extension RateLimiter {
    /// The name in 0.9 of ``maximumHold``.
    @available(*, deprecated, renamed: "maximumHold")
    public var longestHold: Duration {
        get { maximumHold }
        set { maximumHold = newValue }
    }
}

extension SharedPolicyState {
    /// The name in 0.9 of ``publish(_:)``.
    @available(*, deprecated, renamed: "publish(_:)")
    public func tell(_ change: SharedChange) { publish(change) }
}
