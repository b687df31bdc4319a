// SPDX-License-Identifier: Apache-2.0
import Foundation

// Types that call every method of their decoders.

struct Box<T: Decodable>: Decodable { var v: T }

struct Maybe<T: Decodable>: Decodable { var v: T? }

struct Single<T: Decodable>: Decodable {
    var value: T
    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        value = try container.decode(T.self)
    }
}

/// Decodes an element, an optional one, another one, and one past the end.
struct Unkeyed<T: Decodable>: Decodable {
    var values: [T?] = []
    var indices: [Int] = []
    init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        values.append(try container.decode(T.self))
        indices.append(container.currentIndex)
        values.append(try container.decodeIfPresent(T.self))
        indices.append(container.currentIndex)
        values.append(try container.decodeIfPresent(T.self))
        indices.append(container.currentIndex)
        values.append(try container.decodeIfPresent(T.self))
        indices.append(container.currentIndex)
        values.append(try container.decode(T.self))
    }
}

enum Color: String, Decodable, CodingKeyRepresentable { case red, green }

enum Level: Int, Decodable, CodingKeyRepresentable { case low = 1, high = 42 }

struct Point: Decodable { var a: Int, b: Int? }

struct Two: Decodable { var b: Int, a: Int }

struct Optionals: Decodable {
    var a: Bool?, b: String?, c: Double?, d: Float?, e: Int8?, f: UInt64?, g: [Int]?, h: Point?, i: Date?, j: URL?, k: Data?, l: Decimal?
}

enum Shape: Decodable {
    case red
    case both(x: Int, String)
}

class Base: Decodable { var a: Int }

final class Derived: Base {
    var b: Int
    enum Keys: CodingKey { case b }
    required init(from decoder: any Decoder) throws {
        b = try decoder.container(keyedBy: Keys.self).decode(Int.self, forKey: .b)
        try super.init(from: decoder)
    }
}

/// Decodes to the depth of the text.
indirect enum Tree: Decodable {
    case leaf
    case number(Double)
    case node([Tree])
    init(from decoder: any Decoder) throws {
        if let single = try? decoder.singleValueContainer(), single.decodeNil() {
            self = .leaf
        } else if let number = try? decoder.singleValueContainer().decode(Double.self) {
            self = .number(number)
        } else {
            self = .node(try decoder.singleValueContainer().decode([Tree].self))
        }
    }
}

struct AnyKey: CodingKey {
    var stringValue: String
    var intValue: Int?
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { (stringValue, self.intValue) = ("\(intValue)", intValue) }
    init(_ name: String) { stringValue = name }
}

/// Records what containers report.
struct Explorer: Decodable {
    var notes: [String] = []
    init(from decoder: any Decoder) throws {
        note("path \(decoder.codingPath.map(\.stringValue)) info \(decoder.userInfo.keys.map(\.rawValue).sorted())")
        if let keyed = try? decoder.container(keyedBy: AnyKey.self) {
            note("keyed \(keyed.allKeys.map(\.stringValue).sorted()) \(keyed.codingPath.count)")
            for key in keyed.allKeys.sorted(by: { $0.stringValue < $1.stringValue }) {
                note("\(key.stringValue) \(keyed.contains(key)) \(try keyed.decodeNil(forKey: key))")
                notes += (try? keyed.decode(Explorer.self, forKey: key).notes) ?? []
                notes += try Explorer(from: keyed.superDecoder(forKey: key)).notes
            }
            note("missing \(keyed.contains(AnyKey("?")))")
            notes += try Explorer(from: keyed.superDecoder()).notes
            _ = try keyed.nestedContainer(keyedBy: AnyKey.self, forKey: AnyKey("a")).nestedUnkeyedContainer(forKey: AnyKey("a"))
        } else if var unkeyed = try? decoder.unkeyedContainer() {
            note("unkeyed \(unkeyed.count ?? -1) \(unkeyed.codingPath.count)")
            while !unkeyed.isAtEnd {
                let index = unkeyed.currentIndex
                if (try? unkeyed.decodeNil()) == true { continue }
                if var nested = try? unkeyed.nestedUnkeyedContainer() {
                    note("nested \(nested.codingPath.map(\.stringValue)) \((try? nested.decode(Int.self)) ?? -1)")
                    continue
                }
                if let nested = try? unkeyed.nestedContainer(keyedBy: AnyKey.self) {
                    note("nested \(nested.codingPath.map(\.stringValue)) \(try nested.decode(Int.self, forKey: AnyKey("a")))")
                    continue
                }
                notes += try Explorer(from: unkeyed.superDecoder()).notes
                note("\(index) \(unkeyed.currentIndex)")
            }
            _ = try unkeyed.superDecoder()
        } else {
            let single = try decoder.singleValueContainer()
            note("single \(single.decodeNil()) \((try? single.decode(String.self)) ?? "-") \((try? single.decode(Double.self)) ?? -1)")
        }
    }

    private mutating func note(_ text: String) { notes.append(text) }
}

/// Records what containers do at and past their end.
struct Steps: Decodable {
    var notes: [String] = []
    init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        notes.append("\((try? container.decode(String.self)) ?? "-") \(container.currentIndex)")
        notes.append("\((try? container.decode(Int.self)) ?? -1) \(container.currentIndex)")
        while !container.isAtEnd { _ = try container.superDecoder() }
        notes.append("\(try container.decodeIfPresent(Int.self) ?? -1) \(container.currentIndex) \(container.isAtEnd)")
        do {
            _ = try container.nestedUnkeyedContainer()
        } catch DecodingError.valueNotFound(let type, let context) {
            notes.append("\(type) \(context.codingPath.map(\.stringValue)) \(context.debugDescription)")
        }
        do {
            _ = try container.nestedContainer(keyedBy: AnyKey.self)
        } catch DecodingError.valueNotFound(let type, let context) {
            notes.append("\(type) \(context.codingPath.map(\.stringValue)) \(context.debugDescription)")
        }
        _ = try container.decodeNil()
    }
}

/// Asks for the same keys repeatedly, with missing ones in between.
struct Peeker: Decodable {
    var notes: [String] = []
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: AnyKey.self)
        for name in ["b", "a", "zz", "a", "c", "b", "x", "é", "e\u{301}", "K", "\u{212A}", "", "a"] {
            let key = AnyKey(name)
            notes.append("\(name) \(container.contains(key)) \((try? container.decode(Int.self, forKey: key)) ?? -1)")
        }
        notes.append("\(try container.decode(Int.self, forKey: AnyKey("a")))")
    }
}

struct Names: Decodable { var firstName: String, lastName_: String?, _id: Int? }

struct OutOfOrder: Decodable {
    var c: Int?, a: Int?, x: Int?, b: Int?
}

struct Kelvin: Decodable {
    var k: Int
    enum CodingKeys: String, CodingKey { case k = "K" }
}

/// Catches `DecodingError`, to show that malformed JSON is not reported as one.
struct Catcher: Decodable {
    var note = ""
    enum CodingKeys: String, CodingKey { case a, b }
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        do {
            note = try container.decode(String.self, forKey: .b)
        } catch let error as DecodingError {
            note = "caught \(error)"
        }
    }
}

/// Stores its container and uses it after other containers.
struct Late: Decodable {
    var notes: [Int] = []
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: AnyKey.self)
        let nested = try container.nestedContainer(keyedBy: AnyKey.self, forKey: AnyKey("a"))
        notes.append((try? container.decode(Int.self, forKey: AnyKey("b"))) ?? -1)
        notes.append(try nested.decode(Box<Int>.self, forKey: AnyKey("a")).v)
    }
}
