// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The parts of a JSON body that `--filter` selects, one a line.
struct BodyFilter {
    enum Failure: Error {
        case notJSON
        case noMatch
        case tooLarge

        var outcome: Outcome {
            switch self {
            case .notJSON: Outcome(status: .transfer, message: "the body is not JSON, which --filter needs")
            case .noMatch: Outcome(status: .other, message: "nothing in the body matches --filter")
            case .tooLarge: Outcome(status: .transfer, message: "the body has more than the \(maximumSize >> 20) MiB that --filter reads")
            }
        }
    }

    /// The values of a body take some thirty times its size in memory.
    private static let maximumSize = 64 << 20

    let path: JSONPath
    private var body: [UInt8] = []

    init(_ path: JSONPath) { self.path = path }

    mutating func append(_ piece: Data) throws(Failure) {
        guard body.count + piece.count <= Self.maximumSize else { throw .tooLarge }
        body += piece
    }

    /// Writes the values: a string without its quotes, and others as JSON, formatted for a reader.
    func finish(isFormatted: Bool, isEscaped: Bool, style: Style, write: (Data) throws -> Void) throws {
        guard let root = NestedJSON(parsing: body) else { throw Failure.notJSON }
        let values = path.values(in: root)
        guard !values.isEmpty else { throw Failure.noMatch }
        for value in values {
            var text = value.string ?? value.json
            if value.string == nil, isFormatted {
                var json = JSONReindenter()
                json.append(text.utf8)
                text = String(decoding: json.finish(), as: UTF8.self)
            }
            if isEscaped { text = TerminalText.escaped(text) }
            try write((value.string == nil ? style.json(Array(text.utf8)) : Data(text.utf8)) + Data("\n".utf8))
        }
    }
}
