// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The lines of a text file, each with its number from 1, without its line break and carriage returns before that.
enum Lines {
    static func forEach(in bytes: [UInt8], _ body: (_ line: ArraySlice<UInt8>, _ number: Int) throws -> Void) rethrows {
        var start = bytes.startIndex
        var number = 1
        while start < bytes.endIndex {
            let end = bytes[start...].firstIndex(of: 0x0A) ?? bytes.endIndex
            var line = bytes[start..<end]
            while line.last == 0x0D { line.removeLast() }
            try body(line, number)
            start = end + 1
            number += 1
        }
    }

    /// Joins lines, each with a line feed.
    static func joined(_ texts: [String], _ unread: [ArraySlice<UInt8>]) -> [UInt8] {
        var bytes: [UInt8] = []
        for text in texts {
            bytes += text.utf8
            bytes.append(0x0A)
        }
        for line in unread {
            bytes += line
            bytes.append(0x0A)
        }
        return bytes
    }
}
