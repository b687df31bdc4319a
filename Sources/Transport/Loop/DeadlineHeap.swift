// SPDX-License-Identifier: Apache-2.0

/// An element of a ``DeadlineHeap``.
package protocol DeadlineHolder: AnyObject {
    /// The deadline by which the heap orders it. Written by the heap only.
    var deadline: Nanoseconds { get set }
    /// Its index in the heap; −1 outside. Written by the heap only.
    var heapIndex: Int { get set }
}

/// A binary heap of objects by deadline. Each object has its index, so that moving or removing one takes logarithmic time.
package struct DeadlineHeap<Element: DeadlineHolder> {
    private var elements: [Element] = []

    package init() {}

    /// The earliest deadline.
    package var earliest: Nanoseconds? { elements.first?.deadline }

    package var count: Int { elements.count }

    /// Inserts an element, or moves it if it is in the heap.
    package mutating func set(_ element: Element, to deadline: Nanoseconds) {
        element.deadline = deadline
        if element.heapIndex < 0 {
            element.heapIndex = elements.count
            elements.append(element)
        }
        guard elements.count > 1 else { return }
        siftDown(siftUp(element.heapIndex))
    }

    /// Removes an element; does nothing if it is not in the heap.
    package mutating func remove(_ element: Element) {
        let index = element.heapIndex
        guard index >= 0 else { return }
        element.heapIndex = -1
        let last = elements.removeLast()
        guard last !== element else { return }
        place(last, at: index)
        siftDown(siftUp(index))
    }

    /// Removes and returns the element with the earliest deadline if that is not after `now`.
    package mutating func popExpired(at now: Nanoseconds) -> Element? {
        guard let first = elements.first, first.deadline <= now else { return nil }
        remove(first)
        return first
    }

    private mutating func place(_ element: Element, at index: Int) {
        elements[index] = element
        element.heapIndex = index
    }

    private mutating func siftUp(_ start: Int) -> Int {
        var index = start
        let element = elements[index]
        while index > 0 {
            let parent = (index - 1) / 2
            guard element.deadline < elements[parent].deadline else { break }
            place(elements[parent], at: index)
            index = parent
        }
        place(element, at: index)
        return index
    }

    private mutating func siftDown(_ start: Int) {
        var index = start
        let element = elements[index]
        while true {
            var child = 2 * index + 1
            guard child < elements.count else { break }
            if child + 1 < elements.count, elements[child + 1].deadline < elements[child].deadline { child += 1 }
            guard elements[child].deadline < element.deadline else { break }
            place(elements[child], at: index)
            index = child
        }
        place(element, at: index)
    }
}

/// A timer: a closure with a deadline.
package final class DeadlineTimer: DeadlineHolder, @unchecked Sendable {  // the heap's fields are only used under the heap's lock
    @exclusivity(unchecked) package var deadline: Nanoseconds = 0
    @exclusivity(unchecked) package var heapIndex = -1
    package let body: @Sendable () -> Void

    package init(_ body: @escaping @Sendable () -> Void) {
        self.body = body
    }
}

/// A heap for other modules, for which ``DeadlineHeap`` would not be specialized: that makes it five times as expensive.
package struct TimerHeap {
    private var heap = DeadlineHeap<DeadlineTimer>()

    package init() {}

    package var earliest: Nanoseconds? { heap.earliest }

    package var count: Int { heap.count }

    package mutating func set(_ timer: DeadlineTimer, to deadline: Nanoseconds) { heap.set(timer, to: deadline) }

    package mutating func remove(_ timer: DeadlineTimer) { heap.remove(timer) }

    package mutating func popExpired(at now: Nanoseconds) -> DeadlineTimer? { heap.popExpired(at: now) }
}
