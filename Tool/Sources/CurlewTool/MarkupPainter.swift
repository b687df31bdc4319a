// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Colours XML and HTML as it comes: names of tags, their attributes, and comments.
struct MarkupPainter {
    private enum Place {
        case text
        /// Behind a `<`.
        case name
        case tag
        case quoted(UInt8)
        /// The last two bytes, to find the end.
        case comment(UInt8, UInt8)
    }

    private var place = Place.text
    /// What a `<` begins, until it is known whether that is a comment.
    private var opening: [UInt8] = []

    /// Whether a content type is XML, based on it (RFC 7303), or HTML.
    static func isMarkup(_ contentType: String?) -> Bool {
        let type = (contentType ?? "").prefixScalars { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
        return ["text/html", "text/xml", "application/xml"].contains(type) || type.hasByteSuffix("+xml")
    }

    /// Returns a piece with colours. Each run of one colour ends with the piece, so that a body that is cut leaves none on.
    mutating func painted(_ piece: Data, _ style: Style) -> Data {
        var result = Data(capacity: piece.count * 2)
        var run: [UInt8] = []
        var colour: Style.Colour?
        func end() {
            guard !run.isEmpty else { return }
            if let colour {
                result += "\u{1B}[\(colour.rawValue)m".utf8
                result += run
                result += "\u{1B}[0m".utf8
            } else {
                result += run
            }
            run = []
        }
        for byte in piece {
            let next = step(byte)
            if next != colour {
                end()
                colour = next
            }
            run.append(byte)
        }
        end()
        return result
    }

    /// Moves on by a byte. Returns its colour.
    private mutating func step(_ byte: UInt8) -> Style.Colour? {
        let close = UInt8(ascii: ">")
        switch place {
        case .text:
            guard byte == UInt8(ascii: "<") else { return nil }
            place = .name
            opening = []
            return .cyan
        case .name:
            if opening.count < 4 { opening.append(byte) }
            if opening.elementsEqual("!--".utf8) {
                place = .comment(0, 0)
                return .faint
            }
            if byte == close { place = .text } else if [0x20, 0x09, 0x0A, 0x0D].contains(byte) { place = .tag }
            return .cyan
        case .tag:
            switch byte {
            case close:
                place = .text
                return .cyan
            case UInt8(ascii: "\""), UInt8(ascii: "'"):
                place = .quoted(byte)
                return .green
            case UInt8(ascii: "/"), UInt8(ascii: "?"): return .cyan
            default: return .blue
            }
        case .quoted(let quote):
            if byte == quote { place = .tag }
            return .green
        case .comment(let first, let second):
            let isEnd = byte == close && first == UInt8(ascii: "-") && second == UInt8(ascii: "-")
            place = isEnd ? .text : .comment(second, byte)
            return .faint
        }
    }
}
