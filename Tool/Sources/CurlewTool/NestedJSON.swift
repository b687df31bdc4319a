// SPDX-License-Identifier: Apache-2.0

/// A JSON value that grows by the keys of request items: `a[b][0]=1`, `a[]=x`. Names keep their order, and numbers their digits.
indirect enum NestedJSON: Equatable, Sendable {
    enum Key: Equatable {
        case name(String)
        case index(Int)
        case end
    }

    case text(String)
    case object([(name: String, value: NestedJSON)])
    case array([NestedJSON])

    static func == (a: NestedJSON, b: NestedJSON) -> Bool { a.json == b.json }

    /// Splits `a[b][0][]`. A name without a complete bracket at its end, or with an escaped one, is one key.
    static func keys(of name: String) -> [Key] {
        let plain = name.replacingScalars("\\[", with: "[")
        guard plain == name, let first = name.unicodeScalars.firstIndex(of: "["), name.hasByteSuffix("]") else { return [.name(plain)] }
        var keys: [Key] = first == name.startIndex ? [] : [.name(String(name[..<first]))]
        var rest = name[first...]
        while rest.unicodeScalars.first == "[", let end = rest.unicodeScalars.firstIndex(of: "]") {
            let key = String(rest[rest.unicodeScalars.index(after: rest.startIndex)..<end])
            keys.append(key.isEmpty ? .end : Int(key).flatMap { $0 >= 0 ? .index($0) : nil } ?? .name(key))
            rest = rest.suffix(afterScalarAt: end)
        }
        return rest.isEmpty ? keys : [.name(name)]
    }

    /// Puts a value at its place. Throws if there is a value of another kind.
    mutating func put(_ value: NestedJSON, at keys: ArraySlice<Key>, of name: String) throws(UsageError) {
        guard let key = keys.first else {
            self = value
            return
        }
        let rest = keys.dropFirst()
        switch (key, self) {
        case (.name(let key), .object(var members)):
            if let index = members.firstIndex(where: { $0.name == key }) {
                guard !rest.isEmpty else { throw UsageError("the field \(name.quoted) is given twice, which only --form allows") }
                try members[index].value.put(value, at: rest, of: name)
            } else {
                members.append((key, try Self.made(value, rest, name)))
            }
            self = .object(members)
        case (.end, .array(let elements)): self = .array(elements + [try Self.made(value, rest, name)])
        case (.index(let index), .array(var elements)):
            guard index <= 10_000 else { throw UsageError("the index of \(name.quoted) is above 10000") }
            while elements.count <= index { elements.append(.text("null")) }
            if elements[index] == .text("null") {
                elements[index] = try Self.made(value, rest, name)
            } else {
                guard !rest.isEmpty else { throw UsageError("the field \(name.quoted) is given twice, which only --form allows") }
                try elements[index].put(value, at: rest, of: name)
            }
            self = .array(elements)
        default: throw UsageError("\(name.quoted) does not fit an earlier field, which is of another kind")
        }
    }

    private static func made(_ value: NestedJSON, _ keys: ArraySlice<Key>, _ name: String) throws(UsageError) -> NestedJSON {
        var made: NestedJSON
        switch keys.first {
        case nil: return value
        case .name: made = .object([])
        case .index, .end: made = .array([])
        }
        try made.put(value, at: keys, of: name)
        return made
    }

    /// The JSON text, without spaces.
    var json: String {
        switch self {
        case .text(let text): text
        case .object(let members): "{\(members.map { "\(Self.quoted($0.name)):\($0.value.json)" }.joined(separator: ","))}"
        case .array(let elements): "[\(elements.map(\.json).joined(separator: ","))]"
        }
    }

    /// Returns a JSON string (RFC 8259, section 7).
    static func quoted(_ string: String) -> String {
        var result = "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    /// The body that fields make.
    static func body(of fields: [RequestItem]) throws(UsageError) -> String {
        var root: NestedJSON?
        for item in fields {
            let keys = keys(of: item.name)
            let value: NestedJSON
            switch item {
            case .field(_, let text): value = .text(quoted(text))
            case .json(_, let text): value = .text(text)
            default: continue
            }
            if root == nil {
                if case .name = keys.first { root = .object([]) } else { root = .array([]) }
            }
            try root?.put(value, at: keys[...], of: item.name)
        }
        return (root ?? .object([])).json
    }
}
