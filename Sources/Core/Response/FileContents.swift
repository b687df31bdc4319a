// SPDX-License-Identifier: Apache-2.0
import Foundation

extension Data {
    /// Reads a whole file.
    ///
    /// `Data(contentsOf:)` of FoundationEssentials loses 4 KiB on Linux whenever the file is empty.
    init(readingFrom file: URL) throws {
        let handle = try FileHandle(forReadingFrom: file)
        defer { try? handle.close() }
        self = try handle.readToEnd() ?? Data()
    }
}
