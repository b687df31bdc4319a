// SPDX-License-Identifier: Apache-2.0

/// A query of JSON (RFC 9535): what `--filter` takes.
struct JSONPath: Sendable {
    indirect enum Selector: Sendable {
        case name(String)
        case wildcard
        case index(Int)
        case slice(Int?, Int?, Int)
        case filter(Condition)
    }

    struct Segment: Sendable {
        let selectors: [Selector]
        let isDescendant: Bool
    }

    struct Query: Sendable {
        /// Whether it begins at the root (`$`), not at the element that is filtered (`@`).
        let isAbsolute: Bool
        let segments: [Segment]
    }

    indirect enum Condition: Sendable {
        case any([Condition])
        case all([Condition])
        case not(Condition)
        case exists(Query)
        case compares(Operand, String, Operand)
        /// The functions `match`, of whole texts, and `search`.
        case matches(Operand, Pattern, isWhole: Bool)
    }

    enum Pattern: Sendable {
        /// One that the query has; `nil` for text that is none, which nothing matches.
        case fixed(IRegexp?)
        /// One that is in the document.
        case found(Operand)
    }

    indirect enum Operand: Sendable {
        case literal(NestedJSON)
        case query(Query)
        case length(Operand)
        case count(Query)
    }

    let query: Query

    /// Reads a query. The `$` at its beginning may be left out, also with the dot behind it.
    init(_ text: String) throws(UsageError) {
        let isRooted = text.hasBytePrefix("$")
        let whole = isRooted ? text : text.hasBytePrefix(".") || text.hasBytePrefix("[") ? "$\(text)" : "$.\(text)"
        var parser = JSONPathParser(whole)
        query = try parser.whole()
    }

    /// The values that the query selects, in the order of the text.
    func values(in root: NestedJSON) -> [NestedJSON] { Self.values(query, root: root, current: root) }

    private static func values(_ query: Query, root: NestedJSON, current: NestedJSON) -> [NestedJSON] {
        query.segments.reduce([query.isAbsolute ? root : current]) { nodes, segment in
            let parents = segment.isDescendant ? nodes.flatMap(descendants) : nodes
            return parents.flatMap { node in segment.selectors.flatMap { selected($0, of: node, root: root) } }
        }
    }

    private static func children(_ node: NestedJSON) -> [NestedJSON] {
        switch node {
        case .object(let members): members.map(\.value)
        case .array(let elements): elements
        case .text: []
        }
    }

    /// The node itself, and all below it.
    private static func descendants(_ node: NestedJSON) -> [NestedJSON] { [node] + children(node).flatMap(descendants) }

    private static func selected(_ selector: Selector, of node: NestedJSON, root: NestedJSON) -> [NestedJSON] {
        switch (selector, node) {
        case (.name(let name), .object(let members)):
            return members.last { $0.name.unicodeScalars.elementsEqual(name.unicodeScalars) }.map { [$0.value] } ?? []
        case (.wildcard, _): return children(node)
        case (.index(let index), .array(let elements)):
            let place = index < 0 ? elements.count + index : index
            return elements.indices.contains(place) ? [elements[place]] : []
        case (.slice(let start, let end, let step), .array(let elements)): return slice(elements, start, end, step)
        case (.filter(let condition), _): return children(node).filter { isMet(condition, root: root, current: $0) }
        default: return []
        }
    }

    /// RFC 9535, section 2.3.4.2.2.
    private static func slice(_ elements: [NestedJSON], _ start: Int?, _ end: Int?, _ step: Int) -> [NestedJSON] {
        guard step != 0 else { return [] }
        let count = elements.count
        func place(_ number: Int, _ range: ClosedRange<Int>) -> Int {
            let place = number < 0 ? count.addingReportingOverflow(number).partialValue : number
            return min(max(place, range.lowerBound), range.upperBound)
        }
        if step > 0 {
            let (first, last) = (place(start ?? 0, 0...count), place(end ?? count, 0...count))
            return first < last ? stride(from: first, to: last, by: min(step, count + 1)).map { elements[$0] } : []
        }
        let first = start.map { place($0, -1...max(count - 1, -1)) } ?? count - 1
        let last = end.map { place($0, -1...max(count - 1, -1)) } ?? -1
        return first > last ? stride(from: first, to: last, by: max(step, -count - 1)).map { elements[$0] } : []
    }

    // MARK: Conditions

    private static func isMet(_ condition: Condition, root: NestedJSON, current: NestedJSON) -> Bool {
        switch condition {
        case .any(let parts): return parts.contains { isMet($0, root: root, current: current) }
        case .all(let parts): return parts.allSatisfy { isMet($0, root: root, current: current) }
        case .not(let part): return !isMet(part, root: root, current: current)
        case .exists(let query): return !values(query, root: root, current: current).isEmpty
        case .compares(let left, let sign, let right):
            let (first, second) = (value(left, root, current), value(right, root, current))
            switch sign {
            case "==": return isEqual(first, second)
            case "!=": return !isEqual(first, second)
            case "<": return isLess(first, second)
            case ">": return isLess(second, first)
            case "<=": return isLess(first, second) || isEqual(first, second)
            default: return isLess(second, first) || isEqual(first, second)
            }
        case .matches(let operand, let pattern, let isWhole):
            guard let text = value(operand, root, current)?.string else { return false }
            switch pattern {
            case .fixed(let expression): return expression?.matches(text, isWhole: isWhole) ?? false
            case .found(let operand):
                return value(operand, root, current)?.string.flatMap { IRegexp($0) }?.matches(text, isWhole: isWhole) ?? false
            }
        }
    }

    private static func value(_ operand: Operand, _ root: NestedJSON, _ current: NestedJSON) -> NestedJSON? {
        switch operand {
        case .literal(let value): return value
        case .query(let query): return values(query, root: root, current: current).first
        case .count(let query): return .text("\(values(query, root: root, current: current).count)")
        case .length(let operand):
            guard let value = value(operand, root, current) else { return nil }
            switch value {
            case .array(let elements): return .text("\(elements.count)")
            case .object(let members): return .text("\(members.count)")
            case .text: return value.string.map { .text("\($0.unicodeScalars.count)") }
            }
        }
    }

    private static func isEqual(_ a: NestedJSON?, _ b: NestedJSON?) -> Bool {
        guard let a, let b else { return a == nil && b == nil }
        return a.isEqual(to: b)
    }

    private static func isLess(_ a: NestedJSON?, _ b: NestedJSON?) -> Bool {
        if let a, let b, let order = a.order(to: b) { return order.isLess }
        if let a = a?.string, let b = b?.string { return a.unicodeScalars.lexicographicallyPrecedes(b.unicodeScalars) }
        return false
    }
}
