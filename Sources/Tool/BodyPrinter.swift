// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Puts a response's body out, piece by piece: as it is, or laid out where somebody reads it.
struct BodyPrinter {
    private enum Mode {
        case undecided
        case passing
        case layingOut(JSONReindenter)
    }

    /// Larger bodies are not laid out: that takes all of the body, twice.
    static let largestLayout = 16 << 20

    let isTerminal: Bool
    let isRaw: Bool
    let isPretty: Bool
    let write: (Data) throws -> Void

    private var mode = Mode.undecided
    private var lastByte: UInt8?

    init(isTerminal: Bool, isRaw: Bool, isPretty: Bool, write: @escaping (Data) throws -> Void) {
        self.isTerminal = isTerminal
        self.isRaw = isRaw
        self.isPretty = isPretty
        self.write = write
    }

    /// Takes a piece; `false` for a body that is not for a terminal, of which nothing was put out.
    mutating func print(_ piece: Data, contentType: String?) throws -> Bool {
        if case .undecided = mode {
            if isTerminal, !isRaw, piece.contains(0) { return false }
            let isLaidOut = isPretty || isTerminal && !isRaw
            mode = isLaidOut && Self.isJSON(contentType) ? .layingOut(JSONReindenter()) : .passing
        }
        guard case .layingOut(var text) = mode else {
            try put(piece)
            return true
        }
        // Taken out of the enumeration while it grows: a second reference would copy it.
        mode = .passing
        text.append(piece)
        if text.count > Self.largestLayout {
            try put(Data(text.original))
        } else {
            mode = .layingOut(text)
        }
        return true
    }

    /// Puts out what was held back; at the end of the body, also of one that broke off.
    mutating func finish() throws {
        if case .layingOut(var text) = mode {
            mode = .passing
            try put(Data(text.finish()))
        }
        let isForReader = isPretty || isTerminal && !isRaw
        if isForReader, let lastByte, lastByte != UInt8(ascii: "\n") { try put(Data("\n".utf8)) }
    }

    private mutating func put(_ bytes: Data) throws {
        lastByte = bytes.last ?? lastByte
        try write(bytes)
    }

    /// Whether a content type is JSON, or one of those that are written in it (RFC 6839, section 3.1).
    static func isJSON(_ contentType: String?) -> Bool {
        let type = (contentType ?? "").prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
        return type == "application/json" || type == "text/json" || type.hasSuffix("+json")
    }
}
