// SPDX-License-Identifier: Apache-2.0

/// What a ``DeadlineHeap`` orders.
package protocol DeadlineHolder: AnyObject {
    /// When to look at it again. Only the heap writes it.
    var deadline: Nanoseconds { get set }
    /// Its place in the heap; −1 outside. Only the heap writes it.
    var heapIndex: Int { get set }
}

/// A binary heap of objects by deadline, each of which knows its place, so that any of them can be moved or removed in logarithmic time.
package struct DeadlineHeap<Element: DeadlineHolder> {
    private var elements: [Element] = []

    package init() {}

    /// The earliest deadline.
    package var earliest: Nanoseconds? { elements.first?.deadline }

    package var count: Int { elements.count }

    /// Puts an element in, or moves it when it is in already.
    package mutating func set(_ element: Element, to deadline: Nanoseconds) {
        element.deadline = deadline
        if element.heapIndex < 0 {
            element.heapIndex = elements.count
            elements.append(element)
        }
        guard elements.count > 1 else { return }
        siftDown(siftUp(element.heapIndex))
    }

    /// Takes an element out; does nothing when it is not in.
    package mutating func remove(_ element: Element) {
        let index = element.heapIndex
        guard index >= 0 else { return }
        element.heapIndex = -1
        let last = elements.removeLast()
        guard last !== element else { return }
        place(last, at: index)
        siftDown(siftUp(index))
    }

    /// Takes out the element with the earliest deadline if that is not after `now`.
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
