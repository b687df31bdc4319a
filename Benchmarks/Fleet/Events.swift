// SPDX-License-Identifier: Apache-2.0

/// Numbers that are the same on each run with the same seed (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    /// 0 to 1.
    mutating func unit() -> Double { Double(next() >> 11) / 9_007_199_254_740_992 }
}

/// What happens at a time. Those of one time happen in the order in which they were added.
struct Event {
    enum Kind {
        /// A client makes a request.
        case request
        /// A client retries a request.
        case attempt(Int)
        /// A client's attempt ends.
        case end(Int)
        /// The second attempt of a request may be sent.
        case hedge(Int)
    }

    /// In nanoseconds.
    let time: Int64
    let order: Int
    let client: Int
    let kind: Kind

    static func < (lhs: Event, rhs: Event) -> Bool { lhs.time != rhs.time ? lhs.time < rhs.time : lhs.order < rhs.order }
}

/// The events to come: a binary heap.
struct EventQueue {
    private var heap: [Event] = []
    private var lastOrder = 0

    mutating func add(_ kind: Event.Kind, of client: Int, at time: Int64) {
        lastOrder += 1
        heap.append(Event(time: time, order: lastOrder, client: client, kind: kind))
        var index = heap.count - 1
        while index > 0, heap[index] < heap[(index - 1) / 2] {
            heap.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    mutating func popFirst() -> Event? {
        guard let first = heap.first, let last = heap.popLast() else { return nil }
        guard !heap.isEmpty else { return first }
        heap[0] = last
        var index = 0
        while case let left = 2 * index + 1, left < heap.count {
            let child = left + 1 < heap.count && heap[left + 1] < heap[left] ? left + 1 : left
            guard heap[child] < heap[index] else { break }
            heap.swapAt(index, child)
            index = child
        }
        return first
    }
}
