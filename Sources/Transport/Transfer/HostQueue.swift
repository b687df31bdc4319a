// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Counts the transfers of each host and queues those beyond the limit: by urgency, then first come first served.
///
/// libcurl has such a limit as well, but time in its queue counts towards the transfer's own timeouts.
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

    /// Whether there is a limit, so that transfers may have to wait.
    package var hasLimit: Bool { limit != nil }

    /// Returns whether `element` may start now; otherwise it is queued until ``leave(_:)`` returns it.
    ///
    /// - Parameter urgency: from 0, the most urgent, to 7; evaluated only if the element is queued.
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
        // Searched from the end, because most have the same urgency.
        var place = entry.waiting.count
        while place > entry.head, entry.waiting[place - 1].urgency > urgency { place -= 1 }
        entry.waiting.insert((element, urgency), at: place)
        hosts[host] = entry
    }

    /// Releases a slot of the host, and gives it to the most urgent queued element, among equals to the one that has waited longest.
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

    /// Removes a queued element.
    package mutating func withdraw(_ element: Element, from host: UInt64) {
        guard var entry = hosts.removeValue(forKey: host) else { return }
        if let index = entry.waiting[entry.head...].firstIndex(where: { $0.element === element }) { entry.waiting.remove(at: index) }
        hosts[host] = entry
    }
}

extension Transfer {
    /// The key for the transfers of one session among those of several on a loop; that of the host alone for group 0.
    static func hostKey(of url: String, group: Int) -> UInt64 {
        let key = hostKey(of: url)
        return group == 0 ? key : (key ^ UInt64(truncatingIfNeeded: group)) &* 1_099_511_628_211
    }

    /// The key of the connection limit: a hash of scheme, host and port, equal for all spellings of them. Two hosts with equal hashes merely
    /// share a limit.
    static func hostKey(of url: String) -> UInt64 {
        var url = url
        return url.withUTF8 { bytes in
            var hash: UInt64 = 14_695_981_039_346_656_037
            func add(_ bytes: some Sequence<UInt8>) {
                for byte in bytes { hash = (hash ^ UInt64(byte.asciiLowercased)) &* 1_099_511_628_211 }
            }
            guard let (scheme, host, port) = HTTPOrigin.parts(of: UnsafeRawBufferPointer(bytes)[...]) else { return hash }
            add(scheme.utf8)
            // Nearly all hosts, for which no string is made.
            if URLHost.isPlain(host) { add(host) } else { add(URLHost.comparable(host).utf8) }
            return (hash ^ UInt64(port)) &* 1_099_511_628_211
        }
    }
}
