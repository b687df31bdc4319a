// SPDX-License-Identifier: Apache-2.0
@_exported import CurlewTesting
@_exported import Foundation

/// A thread-safe list.
public final class Log<Element: Sendable>: @unchecked Sendable {  // every access to the list is inside the lock
    private let lock = NSLock()
    private var list: [Element] = []

    /// Creates an empty list.
    public init() {}

    /// The elements so far.
    public var elements: [Element] { lock.withLock { list } }

    /// The number of elements so far.
    public var count: Int { lock.withLock { list.count } }

    /// Adds an element.
    public func append(_ element: Element) { lock.withLock { list.append(element) } }
}
