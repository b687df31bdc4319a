// SPDX-License-Identifier: Apache-2.0

/// The result of a call, as far as it is counted.
struct Call: Sendable {
    let isFailure: Bool
    let isSlow: Bool

    init(isFailure: Bool, isSlow: Bool) {
        self.isFailure = isFailure
        self.isSlow = isSlow
    }

    fileprivate init(bits: UInt8) {
        isFailure = bits & 1 != 0
        isSlow = bits & 2 != 0
    }

    fileprivate var bits: UInt8 { (isFailure ? 1 : 0) | (isSlow ? 2 : 0) }
}

struct CallCounts: Sendable {
    var total = 0
    var failures = 0
    var slow = 0

    mutating func add(_ call: Call) { change(call, by: 1) }

    fileprivate mutating func remove(_ call: Call) { change(call, by: -1) }

    private mutating func change(_ call: Call, by step: Int) {
        total += step
        if call.isFailure { failures += step }
        if call.isSlow { slow += step }
    }

    fileprivate static func -= (lhs: inout CallCounts, rhs: CallCounts) {
        lhs.total -= rhs.total
        lhs.failures -= rhs.failures
        lhs.slow -= rhs.slow
    }
}

/// A sliding window of calls, with their counts at hand.
struct CallWindow: Sendable {
    private static let steps = 10

    private(set) var counts = CallCounts()
    /// The most calls in a window of counts; `nil` in one of time.
    let capacity: Int?
    private var calls: [UInt8] = []
    private var next = 0
    private let step: Duration
    private var buckets: [CallCounts] = []
    private var lastStep = 0

    init(_ window: CircuitBreaker.Window) {
        switch window {
        case .count(let count):
            capacity = max(count, 1)
            step = .zero
        case .time(let duration):
            capacity = nil
            step = max(duration, .milliseconds(1)) / Self.steps
            buckets = Array(repeating: CallCounts(), count: Self.steps)
        }
    }

    mutating func add(_ call: Call, at now: Duration) {
        if let capacity { add(call, capacity) } else { addToBucket(call, at: now) }
        counts.add(call)
    }

    private mutating func add(_ call: Call, _ capacity: Int) {
        guard calls.count == capacity else { return calls.append(call.bits) }
        counts.remove(Call(bits: calls[next]))
        calls[next] = call.bits
        next = next + 1 == capacity ? 0 : next + 1
    }

    private mutating func addToBucket(_ call: Call, at now: Duration) {
        let current = Int(now / step)
        if current > lastStep {
            // All of them, at the most, have passed.
            for passed in (lastStep + 1)...(min(current, lastStep + Self.steps)) {
                counts -= buckets[passed % Self.steps]
                buckets[passed % Self.steps] = CallCounts()
            }
            lastStep = current
        }
        buckets[lastStep % Self.steps].add(call)
    }

    mutating func removeAll() {
        counts = CallCounts()
        calls.removeAll(keepingCapacity: true)
        next = 0
        for index in buckets.indices { buckets[index] = CallCounts() }
    }
}
