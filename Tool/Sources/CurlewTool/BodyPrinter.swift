// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Writes a response's body piece by piece: unchanged, or formatted for a reader.
struct BodyPrinter {
    private enum Mode {
        case undecided
        case passthrough
        case formatting(JSONReindenter)
        /// XML or HTML, coloured as it comes.
        case markup(MarkupPainter)
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
    private var hasBegun = false
    /// Of text that is converted, by lines as they come, or when it is complete.
    private var charset: TextCharset?
    private var unconverted = Data()
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

    /// Whether the body is formatted for a reader.
    private var isForReader: Bool { isPretty || isTerminal && !isRaw }

    /// Writes a piece. Returns `false` for a binary body on a terminal, of which nothing is written.
    mutating func print(_ piece: Data, contentType: String?) throws -> Bool {
        guard !piece.isEmpty else { return true }
        if !hasBegun, isForReader { charset = TextCharset(contentType: contentType, beginning: piece) }
        hasBegun = true
        guard let charset else { return try printText(piece, contentType) }
        // Only the piece is searched, as what waits has no line break.
        let end = charset.hasPlainLines ? piece.lastIndex(of: UInt8(ascii: "\n")).map { piece.index(after: $0) } : nil
        unconverted += piece[..<(end ?? piece.endIndex)]
        if unconverted.count > Self.maximumFormattedSize {
            // Neither is it converted in parts from here on.
            self.charset = nil
            if case .undecided = mode { mode = .passthrough }
            _ = try printText(unconverted + piece[(end ?? piece.endIndex)...], contentType)
            unconverted = Data()
        } else if let end {
            try convert(charset)
            unconverted = Data(piece[end...])
        }
        return true
    }

    /// Prints what waits to be converted; as it is, if it is no text of the charset.
    private mutating func convert(_ charset: TextCharset) throws {
        defer { unconverted = Data() }
        // As UTF-8 its type says no charset.
        if let text = charset.text(of: unconverted), !text.utf8.contains(0) {
            _ = try printText(Data(text.utf8), charset.contentType)
        } else {
            if case .undecided = mode { mode = .passthrough }
            _ = try printText(unconverted, charset.contentType)
        }
    }

    private mutating func printText(_ piece: Data, _ contentType: String?) throws -> Bool {
        if case .undecided = mode {
            guard !piece.isEmpty else { return true }
            if isEscaped, piece.contains(0) { return false }
            decide(piece, contentType)
        }
        // The contents are moved out of the enumeration while they grow: a second reference would copy them.
        switch mode {
        case .lines(var text):
            mode = .passthrough
            try putLines(&text, piece)
        case .markup(var painter):
            let painted = painter.painted(safe(piece), style)
            mode = .markup(painter)
            try put(painted)
        case .formatting(var json):
            mode = .passthrough
            json.append(json.count == 0 && piece.starts(with: Self.mark) ? piece.dropFirst(Self.mark.count) : piece[...])
            // What is no JSON, such as a log whose lines are, is not held back.
            if json.isInvalid || json.count > Self.maximumFormattedSize {
                try put(safe(Data(json.original)))
            } else {
                mode = .formatting(json)
            }
        case .undecided, .passthrough: try put(safe(piece))
        }
        return true
    }

    /// The byte order mark of UTF-8.
    private static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// Decides by the type, and by the first piece: services send JSON with types of all kinds.
    private mutating func decide(_ piece: Data, _ contentType: String?) {
        mode = .passthrough
        guard isForReader else { return }
        if style.isOn, Self.isLines(contentType) {
            mode = .lines(Data())
        } else if style.isOn, MarkupPainter.isMarkup(contentType) {
            mode = .markup(MarkupPainter())
        } else if Self.isJSON(contentType) || !Self.isStream(contentType) && Self.looksLikeJSON(piece) {
            mode = .formatting(JSONReindenter())
        }
    }

    private static func looksLikeJSON(_ piece: Data) -> Bool {
        let text = piece.starts(with: mark) ? piece.dropFirst(mark.count) : piece[...]
        let first = text.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
        return first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
    }

    /// Writes the buffered output. Called at the end of the body, even a truncated one.
    mutating func finish() throws {
        if let charset, !unconverted.isEmpty { try convert(charset) }
        if case .formatting(var json) = mode {
            mode = .passthrough
            try put(style.json(safe(Data(json.finish()))))
        }
        if case .lines(let rest) = mode {
            mode = .passthrough
            try put(style.json(safe(rest)))
        }
        if isEscaped { try put(text.escaped([], isLast: true)) }
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

    /// Whether a content type is that of a body that is read while it comes.
    private static func isStream(_ contentType: String?) -> Bool {
        isLines(contentType) || (contentType ?? "").prefixScalars { $0 != ";" }.lowercased() == "text/event-stream"
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
