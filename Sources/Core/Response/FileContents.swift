// SPDX-License-Identifier: Apache-2.0
import Foundation

extension Data {
    /// Reads a file into memory.
    ///
    /// In place of `Data(contentsOf:)`, which on Linux (FoundationEssentials) leaks 4 KiB for each empty file.
    init(readingFrom file: URL) throws {
        let handle = try FileHandle(forReadingFrom: file)
        defer { try? handle.close() }
        self = try handle.readToEnd() ?? Data()
    }
}
