// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Colours of a terminal, or none.
struct Style {
    enum Colour: Int {
        case red = 31, green, yellow, blue, magenta, cyan
        case faint = 2
    }

    let isOn: Bool

    /// Colours for a terminal, unless `NO_COLOR` is set (no-color.org) or the terminal is a dumb one.
    static func isWanted(_ pretty: Pretty?, isTerminal: Bool, environment: [String: String]) -> Bool {
        switch pretty {
        case .all: true
        case .format, .some(.none): false
        case nil: isTerminal && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
        }
    }

    func paint(_ text: String, _ colour: Colour) -> String {
        isOn && !text.isEmpty ? "\u{1B}[\(colour.rawValue)m\(text)\u{1B}[0m" : text
    }

    func status(_ code: Int, _ text: String) -> String {
        switch code {
        case ..<200, 300..<400: paint(text, .cyan)
        case 200..<300: paint(text, .green)
        case 400..<500: paint(text, .yellow)
        default: paint(text, .red)
        }
    }

    /// Colours JSON text. Text that is not JSON comes out with odd colours, but unchanged otherwise.
    func json(_ bytes: some Collection<UInt8>) -> Data {
        guard isOn else { return Data(bytes) }
        var output = Data(capacity: bytes.count * 2)
        func put(_ range: Range<Int>, _ colour: Colour, _ text: [UInt8]) {
            output += "\u{1B}[\(colour.rawValue)m".utf8
            output += text[range]
            output += "\u{1B}[0m".utf8
        }
        let text = Array(bytes)
        var position = 0
        while position < text.count {
            let start = position
            switch text[position] {
            case UInt8(ascii: "\""):
                position += 1
                while position < text.count, text[position] != UInt8(ascii: "\"") {
                    position += text[position] == UInt8(ascii: "\\") ? 2 : 1
                }
                position = min(position + 1, text.count)
                var next = position
                while next < text.count, text[next] == 0x20 { next += 1 }
                let isName = next < text.count && text[next] == UInt8(ascii: ":")
                put(start..<position, isName ? .blue : .green, text)
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "a")...UInt8(ascii: "z"):
                while position < text.count, !" \t\r\n,:[]{}\"".utf8.contains(text[position]) { position += 1 }
                put(start..<position, .magenta, text)
            default:
                output.append(text[position])
                position += 1
            }
        }
        return output
    }
}
