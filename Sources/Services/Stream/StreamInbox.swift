// SPDX-License-Identifier: Apache-2.0

/// The received messages of a stream, queued for each of its readers. A value type, without a reference to the stream.
///
/// All readers receive the same messages. Those that arrive without a reader, or are left by the last one, go to the next reader, so that
/// no message is lost between two loops over a stream. The slowest reader sets the pace, because a message dropped for it would be a gap
/// that it could not detect.
struct StreamInbox<Element: Sendable, Failure: Error>: Sendable {
    /// The maximum number of messages queued for the slowest reader before reading is suspended.
    static var limit: Int { 16 }

    private var readers: [Int: [Element]] = [:]
    private var unread: [Element] = []
    private var lastReader = 0
    private(set) var end: Failure?

    /// Whether there are readers, and none has reached the limit.
    var hasDemand: Bool { !readers.isEmpty && readers.values.allSatisfy { $0.count < Self.limit } }

    /// Adds a reader and returns its identifier.
    mutating func addReader() -> Int {
        lastReader += 1
        readers[lastReader] = unread
        unread = []
        return lastReader
    }

    mutating func removeReader(_ reader: Int) {
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

    /// Removes and returns the next element for a reader, or the end after its last element; `nil` if there is neither.
    mutating func take(_ reader: Int) -> Result<Element, Failure>? {
        guard readers[reader]?.isEmpty == false, let first = readers[reader]?.removeFirst() else { return end.map { .failure($0) } }
        return .success(first)
    }
}
