// SPDX-License-Identifier: Apache-2.0

/// Waits until a condition that other threads establish holds; returns `false` after 30 seconds.
public func eventually(_ condition: () -> Bool) async -> Bool {
    let start = ContinuousClock.now
    while !condition() {
        guard start.duration(to: .now) < .seconds(30) else { return false }
        await Task.yield()
    }
    return true
}
