// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// An operation of a document, by its first words (GraphQL, section 2.3).
struct DocumentOperation: Equatable {
    var kind: GraphQLRequest.Kind
    /// `nil` for an anonymous operation.
    var name: String?

    /// Returns the operation that a server executes; `nil` if the document has several and the name is none of them, and if it has an
    /// unknown form. A server decides by the same rules (GraphQL, section 6.1).
    static func executed(in document: String, named name: String?) -> DocumentOperation? {
        guard let operations = all(in: document) else { return nil }
        if let name, !name.isEmpty { return operations.first { $0.name == name } }
        return operations.count == 1 ? operations.first : nil
    }

    /// Returns the operations of a document; `nil` if its brackets or its strings are not closed.
    ///
    /// Only what is outside of brackets is read: definitions begin there, after a closing brace.
    private static func all(in document: String) -> [DocumentOperation]? {
        var operations: [DocumentOperation] = []
        var parser = FieldParser(document)
        var depth = 0
        // At the first word of a definition, and right after the keyword of an operation.
        var (isAtStart, isAtName) = (true, false)
        while let byte = parser.next {
            switch byte {
            case UInt8(ascii: "#"): parser.take { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
            case UInt8(ascii: "\""):
                guard parser.skipString() else { return nil }
            case UInt8(ascii: "{"), UInt8(ascii: "("), UInt8(ascii: "["):
                if isAtStart, byte == UInt8(ascii: "{") { operations.append(DocumentOperation(kind: .query)) }
                (isAtStart, isAtName) = (false, false)
                depth += 1
                _ = parser.takeByte()
            case UInt8(ascii: "}"), UInt8(ascii: ")"), UInt8(ascii: "]"):
                depth -= 1
                guard depth >= 0 else { return nil }
                isAtStart = depth == 0 && byte == UInt8(ascii: "}")
                _ = parser.takeByte()
            case _ where byte.isNameByte:
                let word = parser.take { $0.isNameByte }
                guard depth == 0 else { break }
                if isAtName { operations[operations.count - 1].name = String(word) }
                isAtName = false
                if isAtStart, let kind = GraphQLRequest.Kind(rawValue: String(word)) {
                    operations.append(DocumentOperation(kind: kind))
                    isAtName = true
                }
                isAtStart = false
            case UInt8(ascii: "@"):
                isAtName = false
                _ = parser.takeByte()
            default: _ = parser.takeByte()
            }
        }
        return depth == 0 ? operations : nil
    }
}

extension FieldParser {
    /// Consumes a string or a block string (GraphQL, section 2.9.4); returns whether it is closed.
    fileprivate mutating func skipString() -> Bool {
        let fence = "\"\"\"".utf8
        guard rest.starts(with: fence) else { return takeQuotedString() != nil }
        take(fence.count)
        while !isAtEnd {
            take { $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
            if rest.starts(with: fence) {
                take(fence.count)
                return true
            }
            if skip("\\"), !rest.starts(with: fence) { continue }
            // A quotation mark by itself, or three that are escaped.
            take(rest.starts(with: fence) ? fence.count : 1)
        }
        return false
    }

    private mutating func take(_ count: Int) {
        for _ in 0..<count { _ = takeByte() }
    }
}

extension UInt8 {
    /// Whether a name can have the byte (GraphQL, section 2.1.9); one of digits alone is none, which does not matter here.
    fileprivate var isNameByte: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
