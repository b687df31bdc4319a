// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Splits bytes that arrive in pieces into lines.
struct LineSplitter: Sendable {
    /// The line break.
    enum Ending: Sendable {
        /// CR LF, LF or CR (WHATWG HTML, section 9.2.5).
        case any
        /// LF; a CR before it is not part of the line.
        case lineFeed
    }

    private let ending: Ending
    private let limit: Int
    /// The bytes received but not yet returned, possibly a slice of a larger buffer.
    private(set) var bytes = Data()
    /// The number of bytes, from the first, that are known to contain no line break.
    private var searched = 0
    /// Whether a leading line feed belongs to the carriage return before it.
    private var skipsLineFeed = false

    /// - Parameter limit: the maximum size of a line, in bytes.
    init(_ ending: Ending, limit: Int) {
        self.ending = ending
        self.limit = limit
    }

    /// Appends bytes.
    mutating func feed(_ piece: Data) {
        guard !bytes.isEmpty else { return bytes = piece }
        // Copied, because a slice retains the bytes before it: a stream whose pieces never end with a line would retain everything
        // received.
        if bytes.startIndex > 0 { bytes = Data(bytes) }
        bytes.append(piece)
    }

    /// Returns the next line without its break; `nil` if more bytes are needed.
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

    /// Returns the index of the next line break.
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

    /// Returns the bytes after the last line break; `nil` if there are none.
    mutating func remainder() -> Data? {
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
