// SPDX-License-Identifier: Apache-2.0

/// Structured field values (RFC 9651): the syntax of fields such as `Cache-Status`, `Priority`, `RateLimit` and `Repr-Digest`.
///
/// A field is an item, a list or a dictionary, by its own definition:
///
/// ```swift
/// let members = try StructuredFields.dictionary(from: "u=2, i")
/// if case .item(let item)? = members["u"] { print(item.value) }  // integer(2)
/// let text = try StructuredFields.text(of: members)  // "u=2, i"
/// ```
///
/// Parsing is strict, as section 4.2 demands: a field that does not parse has to be ignored as a whole. Of a field with several lines, pass
/// what ``HTTPHeaders/value(for:)`` returns, which joins them.
public enum StructuredFields {
    /// A value without parameters (RFC 9651, section 3.3). Later versions may add types, so a `switch` needs a `default`.
    public enum BareItem: Sendable, Hashable {
        /// An integer of at most 15 digits (section 3.3.1).
        case integer(Int)
        /// A decimal number (section 3.3.2).
        case decimal(Decimal)
        /// A string of printable ASCII (section 3.3.3).
        case string(String)
        /// A word without quotes (section 3.3.4).
        case token(String)
        /// A byte sequence (section 3.3.5).
        case bytes(Data)
        /// A boolean (section 3.3.6).
        case boolean(Bool)
        /// A date, in seconds since 1970, of at most 15 digits (section 3.3.7).
        case date(Int)
        /// A string of any Unicode (section 3.3.8).
        case displayString(String)
    }

    /// A decimal number of at most twelve digits before the point and three after it, kept exactly (RFC 9651, section 3.3.2).
    public struct Decimal: Sendable, Hashable, Comparable, CustomStringConvertible {
        /// The number in thousandths.
        public let thousandths: Int

        /// Creates a number; `nil` for more than 15 digits.
        public init?(thousandths: Int) {
            guard thousandths.magnitude < 1_000_000_000_000_000 else { return nil }
            self.thousandths = thousandths
        }

        /// Rounds to three digits after the point, halves to the even digit (section 4.1.5); `nil` for more than twelve before it, and for
        /// infinity and NaN.
        public init?(_ value: Double) {
            guard let thousandths = Int(exactly: (value * 1_000).rounded(.toNearestOrEven)) else { return nil }
            self.init(thousandths: thousandths)
        }

        /// The number as a `Double`.
        public var value: Double { Double(thousandths) / 1_000 }

        /// The number as a field has it: with at least one digit after the point.
        public var description: String {
            let (whole, rest) = thousandths.magnitude.quotientAndRemainder(dividingBy: 1_000)
            var fraction = String(String(rest + 1_000).dropFirstScalars())
            while fraction.hasByteSuffix("0"), fraction.utf8.count > 1 { fraction.removeLast() }
            return "\(thousandths < 0 ? "-" : "")\(whole).\(fraction)"
        }

        /// Whether `lhs` is less than `rhs`.
        public static func < (lhs: Decimal, rhs: Decimal) -> Bool { lhs.thousandths < rhs.thousandths }
    }

    /// A value with its parameters (RFC 9651, section 3.3).
    public struct Item: Sendable, Hashable {
        /// The value.
        public var value: BareItem
        /// The parameters, in order.
        public var parameters: Parameters

        /// Creates an item.
        public init(_ value: BareItem, parameters: Parameters = [:]) {
            self.value = value
            self.parameters = parameters
        }
    }

    /// A list of items within a list or a dictionary, with its own parameters (RFC 9651, section 3.1.1).
    public struct InnerList: Sendable, Hashable {
        /// The items, in order.
        public var items: [Item]
        /// The parameters of the list, in order.
        public var parameters: Parameters

        /// Creates an inner list.
        public init(_ items: [Item], parameters: Parameters = [:]) {
            self.items = items
            self.parameters = parameters
        }
    }

    /// A member of a list or a dictionary.
    public enum Member: Sendable, Hashable {
        /// A single item.
        case item(Item)
        /// A list of items.
        case innerList(InnerList)
    }

    /// Parameters by their keys (RFC 9651, section 3.1.2). One without a value is `true`.
    public typealias Parameters = OrderedMap<BareItem>
    /// The members of a dictionary by their keys (RFC 9651, section 3.2). One without a value is `true`.
    public typealias Dictionary = OrderedMap<Member>

    /// Values by their keys, in order. Equal only in the same order.
    public struct OrderedMap<Value: Sendable & Hashable>: Sendable, Hashable, RandomAccessCollection, ExpressibleByDictionaryLiteral {
        /// A key and its value.
        public struct Element: Sendable, Hashable {
            /// The key: lower-case letters, digits, `_`, `-`, `.` and `*`, beginning with a letter or `*`.
            public let key: String
            /// The value.
            public let value: Value
        }

        private var elements: [Element] = []

        /// Creates a map; of values with the same key, the last one counts, at the place of the first.
        public init(dictionaryLiteral elements: (String, Value)...) {
            for (key, value) in elements { self[key] = value }
        }

        /// The value for a key. A new one is appended, `nil` removes it.
        public subscript(key: String) -> Value? {
            get { elements.first { $0.key == key }?.value }
            set {
                let place = elements.firstIndex { $0.key == key }
                switch (place, newValue) {
                case (let place?, let value?): elements[place] = Element(key: key, value: value)
                case (let place?, nil): elements.remove(at: place)
                case (nil, let value?): elements.append(Element(key: key, value: value))
                case (nil, nil): break
                }
            }
        }

        /// Sets a value as the subscript does, in constant time: `places` has the keys' places between calls.
        mutating func set(_ value: Value, for key: String, places: inout [String: Int]) {
            let element = Element(key: key, value: value)
            if let place = places[key] {
                elements[place] = element
            } else {
                places[key] = elements.count
                elements.append(element)
            }
        }

        /// The place of the first element.
        public var startIndex: Int { 0 }
        /// The place after the last element.
        public var endIndex: Int { elements.count }
        /// The element at a place.
        public subscript(position: Int) -> Element { elements[position] }
    }
}
