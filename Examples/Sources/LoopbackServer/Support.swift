// SPDX-License-Identifier: Apache-2.0
@_exported import CurlewTesting
import Foundation

/// A new, empty directory, removed with its contents when the last reference is released.
public final class TemporaryDirectory: Sendable {
    /// The directory.
    public let url: URL

    /// Creates a directory in the system's temporary directory.
    public init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("curlew-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: url)
    }

    /// Returns the URL of a file in the directory, which need not exist.
    public func file(_ name: String) -> URL {
        url.appendingPathComponent(name, isDirectory: false)
    }

    /// Writes `contents` to a file in the directory and returns its URL.
    @discardableResult
    public func write(_ contents: Data, to name: String) throws -> URL {
        let file = file(name)
        try contents.write(to: file)
        return file
    }
}

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

/// What has gone otherwise than an example shows.
public struct TestError: Error {
    /// What that is.
    public let name: String

    /// Creates an error that says what has gone otherwise.
    public init(_ name: String) {
        self.name = name
    }
}
