// SPDX-License-Identifier: Apache-2.0

/// A new, empty directory, removed with its contents when the last reference is released.
///
/// Retain it while its files are in use: with `withExtendedLifetime`, or in a stored property of the suite.
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

/// Returns the names in a directory, sorted, including hidden ones.
public func contents(of directory: TemporaryDirectory) throws -> [String] {
    try contents(of: directory.url)
}

/// Returns the names in a directory, sorted, including hidden ones.
public func contents(of directory: URL) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
}
