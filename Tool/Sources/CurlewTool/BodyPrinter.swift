// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Writes a response's body piece by piece: unchanged, or formatted for a reader.
struct BodyPrinter {
    private enum Mode {
        case undecided
        case passthrough
        case formatting(JSONReindenter)
        /// Lines of JSON are coloured each by itself, as they come; the beginning of the next one.
        case lines(Data)
    }

    /// Larger bodies are not formatted, because that takes the entire body in memory, twice.
    static let maximumFormattedSize = 16 << 20

    let isTerminal: Bool
    let isRaw: Bool
    let isPretty: Bool
    let style: Style
    let write: (Data) throws -> Void

    private var mode = Mode.undecided
    private var lastByte: UInt8?

    /// Whether what was written does not end with a line.
    var isLineOpen: Bool { lastByte.map { $0 != UInt8(ascii: "\n") } ?? false }

    init(isTerminal: Bool, isRaw: Bool, isPretty: Bool, style: Style = Style(isOn: false), write: @escaping (Data) throws -> Void) {
        self.isTerminal = isTerminal
        self.isRaw = isRaw
        self.isPretty = isPretty
        self.style = style
        self.write = write
    }

    /// Writes a piece. Returns `false` for a binary body on a terminal, of which nothing is written.
    mutating func print(_ piece: Data, contentType: String?) throws -> Bool {
        if case .undecided = mode {
            if isTerminal, !isRaw, piece.contains(0) { return false }
            let isFormatted = isPretty || isTerminal && !isRaw
            mode = isFormatted && Self.isJSON(contentType) ? .formatting(JSONReindenter()) : .passthrough
            if style.isOn, Self.isLines(contentType) { mode = .lines(Data()) }
        }
        if case .lines(let rest) = mode {
            try putLines(rest + piece)
            return true
        }
        guard case .formatting(var text) = mode else {
            try put(piece)
            return true
        }
        // Moved out of the enumeration while it grows: a second reference would copy it.
        mode = .passthrough
        text.append(piece)
        if text.count > Self.maximumFormattedSize {
            try put(Data(text.original))
        } else {
            mode = .formatting(text)
        }
        return true
    }

    /// Writes the buffered output. Called at the end of the body, even a truncated one.
    mutating func finish() throws {
        if case .formatting(var text) = mode {
            mode = .passthrough
            try put(style.json(text.finish()))
        }
        if case .lines(let rest) = mode {
            mode = .passthrough
            try put(style.json(rest))
        }
        let isForReader = isPretty || isTerminal && !isRaw
        if isForReader, isLineOpen { try put(Data("\n".utf8)) }
    }

    private mutating func putLines(_ text: Data) throws {
        let end = text.lastIndex(of: UInt8(ascii: "\n")).map { text.index(after: $0) } ?? text.startIndex
        // A line without an end must not grow for ever.
        let isTooLong = text.count > Self.maximumFormattedSize
        mode = isTooLong ? .passthrough : .lines(Data(text[end...]))
        try put(style.json(isTooLong ? text : text[..<end]))
    }

    private mutating func put(_ bytes: Data) throws {
        lastByte = bytes.last ?? lastByte
        try write(bytes)
    }

    /// Whether a content type is lines of JSON.
    static func isLines(_ contentType: String?) -> Bool {
        let type = (contentType ?? "").prefixScalars { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
        return ["application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines"].contains(type)
    }

    /// Whether a content type is JSON or based on it (RFC 6839, section 3.1).
    static func isJSON(_ contentType: String?) -> Bool {
        let type = (contentType ?? "").prefixScalars { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
        return type == "application/json" || type == "text/json" || type.hasByteSuffix("+json")
    }
}
