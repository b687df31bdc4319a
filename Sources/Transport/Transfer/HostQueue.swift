// SPDX-License-Identifier: Apache-2.0

/// Counts the transfers of each host and lets further ones wait: the more urgent first, else first come first served.
///
/// libcurl has such a limit too, but there the time in its queue counts against the transfer's own timeouts.
package struct HostQueue<Element: AnyObject> {
    private struct Host {
        var active = 0
        var waiting: [(element: Element, urgency: Int)] = []
        var head = 0
    }

    private var hosts: [UInt64: Host] = [:]
    private let limit: Int?

    package init(limit: Int?) {
        self.limit = limit.map { max(1, $0) }
    }

    /// Whether it ever lets anybody wait.
    package var hasLimit: Bool { limit != nil }

    /// Whether `element` may start now; if not, it waits until ``leave(_:)`` hands it out.
    ///
    /// - Parameter urgency: from 0, the most urgent, to 7; asked only for what has to wait.
    package mutating func enter(_ host: UInt64, _ element: Element, urgency: @autoclosure () -> Int = 3) -> Bool {
        guard let limit else { return true }
        if hosts[host, default: Host()].active < limit {
            hosts[host, default: Host()].active += 1
            return true
        }
        wait(host, element, urgency())
        return false
    }

    private mutating func wait(_ host: UInt64, _ element: Element, _ urgency: Int) {
        guard var entry = hosts.removeValue(forKey: host) else { return }
        // Mostly all are as urgent as each other.
        var place = entry.waiting.count
        while place > entry.head, entry.waiting[place - 1].urgency > urgency { place -= 1 }
        entry.waiting.insert((element, urgency), at: place)
        hosts[host] = entry
    }

    /// Frees a place at the host, and gives it to the most urgent one, of those to the one that has waited longest.
    package mutating func leave(_ host: UInt64) -> Element? {
        guard limit != nil, var entry = hosts.removeValue(forKey: host) else { return nil }
        guard entry.head < entry.waiting.count else {
            entry.active -= 1
            if entry.active > 0 { hosts[host] = entry }
            return nil
        }
        let next = entry.waiting[entry.head].element
        entry.head += 1
        if entry.head > 64, entry.head * 2 > entry.waiting.count {
            entry.waiting.removeFirst(entry.head)
            entry.head = 0
        }
        hosts[host] = entry
        return next
    }

    /// Takes an element out that waits.
    package mutating func withdraw(_ element: Element, from host: UInt64) {
        guard var entry = hosts.removeValue(forKey: host) else { return }
        if let index = entry.waiting[entry.head...].firstIndex(where: { $0.element === element }) { entry.waiting.remove(at: index) }
        hosts[host] = entry
    }
}
