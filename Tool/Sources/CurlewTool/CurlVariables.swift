// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The variables of `--variable`, and what `--expand-…` makes of `{{name:function}}`.
struct CurlVariables {
    private static let longestName = 127
    private var values: [String: Data] = [:]

    /// Reads `name=content`, `name@file`, `%NAME` or `%NAME=default`, where a range of bytes, `[0-99]`, may follow the name.
    mutating func set(_ text: String) throws(UsageError) {
        let isImported = text.hasBytePrefix("%")
        var rest = isImported ? text.dropFirstScalars() : text[...]
        let name = String(rest.prefixScalars(while: Self.isOfName))
        guard !name.isEmpty, name.utf8.count <= Self.longestName else {
            throw UsageError("curl's option --variable needs a name of letters, digits and _")
        }
        rest = rest.dropFirstScalars(name.unicodeScalars.count)
        let range = try Self.range(&rest, name)
        var content: Data
        if isImported, let value = getenv(name) {
            content = Data(String(cString: value).utf8)
        } else {
            switch rest.unicodeScalars.first {
            case "=": content = Data(rest.dropFirstScalars().utf8)
            case "@":
                let path = String(rest.dropFirstScalars())
                guard let data = InputFile.contents(path) else { throw UsageError("\(path.quoted) can't be read") }
                content = data
            default:
                guard isImported, rest.isEmpty else {
                    throw UsageError("curl's option --variable needs =CONTENT or @FILE after \(name.quoted)")
                }
                throw UsageError("the variable \(name.quoted) is not in the environment")
            }
        }
        if let range { content = Data(content.dropFirst(range.lowerBound).prefix(range.count)) }
        values[name] = content
    }

    private static func isOfName(_ scalar: Unicode.Scalar) -> Bool {
        scalar.isASCII && (scalar == "_" || scalar.properties.isAlphabetic || scalar.properties.numericType != nil)
    }

    private static func range(_ rest: inout Substring, _ name: String) throws(UsageError) -> ClosedRange<Int>? {
        guard rest.unicodeScalars.first == "[" else { return nil }
        let text = rest.dropFirstScalars().prefixScalars { $0 != "]" }
        let bounds = text.splitScalars(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        let last = bounds.count == 2 ? (bounds[1].isEmpty ? Int.max - 1 : Int(bounds[1]).map { min($0, .max - 1) }) : nil
        guard text.endIndex < rest.endIndex, bounds.allSatisfy({ $0.isEmpty || $0.isAllDigits }), let first = Int(bounds[0]), let last,
            first <= last
        else { throw UsageError("curl's option --variable needs [FIRST-LAST] after \(name.quoted)") }
        rest = rest.suffix(afterScalarAt: text.endIndex)
        return first...last
    }

    /// Replaces the names in double braces; `\{{` is `{{`. What is no name stays as it is, and a variable that is not set is empty.
    func expanded(_ text: String) throws(UsageError) -> String {
        var (result, rest) = ("", text[...])
        while let open = rest.firstScalarRange(of: "{{") {
            let before = rest[..<open.lowerBound]
            if before.hasByteSuffix("\\") {
                result += before.dropLastScalars() + "{{"
                rest = rest[open.upperBound...]
                continue
            }
            guard let close = rest[open.upperBound...].firstScalarRange(of: "}}") else { break }
            let words = rest[open.upperBound..<close.lowerBound].splitScalars(separator: ":", omittingEmptySubsequences: false)
            let name = words[0]
            result += before
            if name.isEmpty || name.utf8.count > Self.longestName || !name.unicodeScalars.allSatisfy(Self.isOfName) {
                result += rest[open.lowerBound..<close.upperBound]
            } else {
                var value = values[String(name)] ?? Data()
                for function in words.dropFirst() { value = try Self.applied(String(function), to: value) }
                guard !value.contains(0), let shown = String(data: value, encoding: .utf8) else {
                    throw UsageError("the variable \(String(name).quoted) is no text; a function such as b64 makes it one")
                }
                result += shown
            }
            rest = rest[close.upperBound...]
        }
        return result + rest
    }

    private static func applied(_ function: String, to value: Data) throws(UsageError) -> Data {
        switch function {
        case "trim":
            func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
            return Data(value.drop(while: isSpace).reversed().drop(while: isSpace).reversed())
        case "json":
            guard let text = String(data: value, encoding: .utf8) else { throw UsageError("a variable that json is applied to is no text") }
            return Data(NestedJSON.quoted(text).dropFirstScalars().dropLastScalars().utf8)
        case "url": return Data(RequestURL.escaped(value).utf8)
        case "b64": return value.base64EncodedData()
        case "64dec": return Data(base64Encoded: value) ?? Data("[64dec-fail]".utf8)
        default: throw UsageError("curl's variables have no function \(function.quoted)")
        }
    }
}
