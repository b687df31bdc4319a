// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Cuts bytes that come piece by piece into lines.
struct LineSplitter: Sendable {
    /// What ends a line.
    enum Ending: Sendable {
        /// CR LF, LF or CR (WHATWG HTML, section 9.2.5).
        case any
        /// LF; a CR before it is no part of the line.
        case lineFeed
    }

    private let ending: Ending
    private let limit: Int
    /// What has come and was not given out, perhaps with what stood before it.
    private(set) var bytes = Data()
    /// How many bytes, from the first, have no line break in them.
    private var searched = 0
    /// Whether a line feed at the beginning belongs to a carriage return before it.
    private var skipsLineFeed = false

    /// - Parameter limit: the longest line, in bytes.
    init(_ ending: Ending, limit: Int) {
        self.ending = ending
        self.limit = limit
    }

    /// Takes bytes behind those before.
    mutating func feed(_ piece: Data) {
        guard !bytes.isEmpty else { return bytes = piece }
        // Else a stream whose pieces never end with a line would keep all that ever came.
        if bytes.startIndex > 0 { bytes = Data(bytes) }
        bytes.append(piece)
    }

    /// The next line without its break; `nil` when more bytes are needed.
    mutating func next() throws(EventStreamError) -> Data? {
        if skipsLineFeed, let first = bytes.first {
            if first == lineFeed { bytes = bytes.dropFirst() }
            skipsLineFeed = false
        }
        guard let end = findEnd() else {
            searched = bytes.count
            guard searched <= limit else { throw .tooLarge(limit: limit) }
            return nil
        }
        let line = bytes[..<end]
        guard line.count <= limit else { throw .tooLarge(limit: limit) }
        skipsLineFeed = bytes[end] == carriageReturn
        bytes = bytes[(end + 1)...]
        searched = 0
        return ending == .lineFeed ? withoutReturn(line) : line
    }

    /// Where the next line break is.
    private func findEnd() -> Int? {
        let offset = bytes.withUnsafeBytes { bytes -> Int? in
            var index = searched
            while index < bytes.count {
                let byte = bytes[index]
                if byte == lineFeed || (byte == carriageReturn && ending == .any) { return index }
                index &+= 1
            }
            return nil
        }
        return offset.map { bytes.startIndex + $0 }
    }

    /// What stands behind the last line break; `nil` for nothing.
    mutating func rest() -> Data? {
        defer { bytes = Data() }
        let line = ending == .lineFeed ? withoutReturn(bytes) : bytes
        return line.isEmpty ? nil : line
    }

    private func withoutReturn(_ line: Data) -> Data {
        line.last == carriageReturn ? line.dropLast() : line
    }
}

private let lineFeed = UInt8(ascii: "\n")
private let carriageReturn = UInt8(ascii: "\r")
