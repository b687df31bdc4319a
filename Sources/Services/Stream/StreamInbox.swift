// SPDX-License-Identifier: Apache-2.0

/// What a stream has received, for each who reads it: a value that knows no stream.
///
/// All readers get the same. What comes while nobody reads, or is left over by the last reader, is the next one's, so that nothing is lost
/// between two loops over a stream.
struct StreamInbox<Element: Sendable, Failure: Error>: Sendable {
    /// How much waits for the slowest reader before no more is received.
    static var limit: Int { 16 }

    private var readers: [Int: [Element]] = [:]
    private var unread: [Element] = []
    private var lastReader = 0
    private(set) var end: Failure?

    /// Whether somebody reads, and nobody is too far behind.
    var wantsMore: Bool { !readers.isEmpty && readers.values.allSatisfy { $0.count < Self.limit } }

    /// A new reader's number.
    mutating func enter() -> Int {
        lastReader += 1
        readers[lastReader] = unread
        unread = []
        return lastReader
    }

    mutating func leave(_ reader: Int) {
        let rest = readers.removeValue(forKey: reader) ?? []
        if readers.isEmpty { unread = rest + unread }
    }

    mutating func receive(_ element: Element) {
        guard !readers.isEmpty else { return unread.append(element) }
        for reader in readers.keys { readers[reader]?.append(element) }
    }

    mutating func finish(_ end: Failure) {
        if self.end == nil { self.end = end }
    }

    /// What comes next for a reader: an element, behind the last one the end; `nil` while there is neither.
    mutating func take(_ reader: Int) -> Result<Element, Failure>? {
        guard readers[reader]?.isEmpty == false, let first = readers[reader]?.removeFirst() else { return end.map { .failure($0) } }
        return .success(first)
    }
}
