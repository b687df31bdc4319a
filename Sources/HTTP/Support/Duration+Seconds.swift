// SPDX-License-Identifier: Apache-2.0

extension Duration {
    /// The duration in seconds.
    package var seconds: TimeInterval {
        let (seconds, attoseconds) = components
        return TimeInterval(seconds) + TimeInterval(attoseconds) / 1e18
    }
}
