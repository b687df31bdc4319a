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
    /// Whether control characters are escaped.
    let isEscaped: Bool
    let style: Style
    let write: (Data) throws -> Void

    private var mode = Mode.undecided
    private var text = TerminalText()
    private var lastByte: UInt8?

    /// Whether what was written does not end with a line.
    var isLineOpen: Bool { lastByte.map { $0 != UInt8(ascii: "\n") } ?? false }

    /// - Parameters:
    ///   - isRaw: whether nothing is formatted for the reader at a terminal.
    ///   - isEscaped: whether control characters are; by default for what is formatted for the reader at a terminal.
    init(
        isTerminal: Bool, isRaw: Bool, isPretty: Bool, isEscaped: Bool? = nil, style: Style = Style(isOn: false),
        write: @escaping (Data) throws -> Void
    ) {
        self.isEscaped = isEscaped ?? (isTerminal && !isRaw)
        self.isTerminal = isTerminal
        self.isRaw = isRaw
        self.isPretty = isPretty
        self.style = style
        self.write = write
    }

    /// Writes a piece. Returns `false` for a binary body on a terminal, of which nothing is written.
    mutating func print(_ piece: Data, contentType: String?) throws -> Bool {
        if case .undecided = mode {
            if isEscaped, piece.contains(0) { return false }
            let isFormatted = isPretty || isTerminal && !isRaw
            mode = isFormatted && Self.isJSON(contentType) ? .formatting(JSONReindenter()) : .passthrough
            if style.isOn, Self.isLines(contentType) { mode = .lines(Data()) }
        }
        if case .lines(var text) = mode {
            // Moved out of the enumeration while it grows, as below.
            mode = .passthrough
            try putLines(&text, piece)
            return true
        }
        guard case .formatting(var json) = mode else {
            try put(safe(piece))
            return true
        }
        // Moved out of the enumeration while it grows: a second reference would copy it.
        mode = .passthrough
        json.append(piece)
        if json.count > Self.maximumFormattedSize {
            try put(safe(Data(json.original)))
        } else {
            mode = .formatting(json)
        }
        return true
    }

    /// Writes the buffered output. Called at the end of the body, even a truncated one.
    mutating func finish() throws {
        if case .formatting(var json) = mode {
            mode = .passthrough
            try put(style.json(safe(Data(json.finish()))))
        }
        if case .lines(let rest) = mode {
            mode = .passthrough
            try put(style.json(safe(rest)))
        }
        if isEscaped { try put(text.escaped([], isLast: true)) }
        let isForReader = isPretty || isTerminal && !isRaw
        if isForReader, isLineOpen { try put(Data("\n".utf8)) }
    }

    /// Writes the lines that a piece completes; `text`, the beginning of the first one, has no line break, so that only the piece is searched.
    private mutating func putLines(_ text: inout Data, _ piece: Data) throws {
        let end = piece.lastIndex(of: UInt8(ascii: "\n")).map { piece.index(after: $0) } ?? piece.startIndex
        text.append(piece[..<end])
        guard end == piece.startIndex else {
            mode = .lines(Data(piece[end...]))
            return try put(style.json(safe(text)))
        }
        text.append(piece)
        // A line without an end must not grow for ever.
        if text.count > Self.maximumFormattedSize { try put(style.json(safe(text))) } else { mode = .lines(text) }
    }

    /// Escaped before it is coloured.
    private mutating func safe(_ bytes: Data) -> Data { isEscaped ? text.escaped(bytes) : bytes }

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
