// SPDX-License-Identifier: Apache-2.0
import Curlew

/// A value that several threads use.
final class Lock<Value>: @unchecked Sendable {  // guarded by the lock
    private let lock = NSLock()
    private var value: Value

    init(_ value: Value) {
        self.value = value
    }

    func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
        lock.withLock { body(&value) }
    }
}

/// A new, empty directory, removed with its contents when the last reference is released.
final class TemporaryDirectory: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("curlew-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: url)
    }

    func file(_ name: String) -> URL {
        url.appendingPathComponent(name, isDirectory: false)
    }

    @discardableResult
    func write(_ contents: Data, to name: String) throws -> URL {
        let file = file(name)
        try contents.write(to: file)
        return file
    }
}
