// SPDX-License-Identifier: Apache-2.0

/// An expression that text is matched with (I-Regexp, RFC 9485).
///
/// All states that the text may lead to are followed at the same time, so that the time grows with the length of the text times that of the
/// expression, for all of both: there is no going back, with which some expressions never end.
struct IRegexp: Sendable {
    private enum Step: Sendable {
        case take(ScalarClass)
        case split(Int, Int)
        case end
    }

    /// How many steps an expression may have, in which each repetition of `{n}` counts.
    private static let maximumSize = 5000

    private var steps: [Step] = []
    /// How many more parts are written out.
    private var budget = maximumSize

    /// - Returns: `nil` if the text is no such expression, or has too many repetitions.
    init?(_ text: String) {
        var parser = IRegexpParser(text)
        guard let node = parser.whole() else { return nil }
        guard write(node) else { return nil }
        steps.append(.end)
    }

    // MARK: Writing

    /// Appends the steps of a part. Returns `false` if there are too many.
    private mutating func write(_ node: IRegexpParser.Node) -> Bool {
        budget -= 1
        guard budget > 0 else { return false }
        switch node {
        case .take(let scalars): steps.append(.take(scalars))
        case .sequence(let parts): return parts.allSatisfy { write($0) }
        case .choice(let parts):
            // Each alternative but the last is preceded by a step that leads to the next one too, and followed by one that skips the rest.
            var ends: [Int] = []
            for (index, part) in parts.enumerated() {
                let start = steps.count
                let isLast = index == parts.count - 1
                if !isLast { steps.append(.end) }
                guard write(part) else { return false }
                guard !isLast else { break }
                ends.append(steps.count)
                steps.append(.end)
                steps[start] = .split(start + 1, steps.count)
            }
            for end in ends { steps[end] = .split(steps.count, steps.count) }
        case .repeated(let part, let minimum, let maximum):
            for _ in 0..<minimum { guard write(part) else { return false } }
            guard let maximum else {
                let start = steps.count
                steps.append(.end)
                guard write(part) else { return false }
                steps.append(.split(start, start))
                steps[start] = .split(start + 1, steps.count)
                return true
            }
            var starts: [Int] = []
            for _ in minimum..<maximum {
                starts.append(steps.count)
                steps.append(.end)
                guard write(part) else { return false }
            }
            for start in starts { steps[start] = .split(start + 1, steps.count) }
        }
        return true
    }

    // MARK: Matching

    /// Where the matching may be.
    private struct States {
        var places: [Int] = []
        /// For each step the number of the scalar before which it was added.
        private var marks: [Int]

        init(count: Int) { marks = Array(repeating: -1, count: count) }

        /// Adds a step, and those that follow it without a scalar.
        mutating func add(_ place: Int, _ steps: [Step], at number: Int) {
            var stack = [place]
            while let place = stack.popLast() {
                guard marks[place] != number else { continue }
                marks[place] = number
                if case .split(let first, let second) = steps[place] { stack += [second, first] } else { places.append(place) }
            }
        }
    }

    /// Whether the text matches.
    ///
    /// - Parameter isWhole: whether all of the text has to, or a part of it.
    func matches(_ text: String, isWhole: Bool) -> Bool {
        let last = steps.count - 1
        var states = States(count: steps.count)
        states.add(0, steps, at: 0)
        var number = 0
        var places: [Int] = []
        for scalar in text.unicodeScalars {
            if !isWhole, states.places.contains(last) { return true }
            number += 1
            swap(&places, &states.places)
            states.places.removeAll(keepingCapacity: true)
            for place in places {
                if case .take(let scalars) = steps[place], scalars.contains(scalar) { states.add(place + 1, steps, at: number) }
            }
            if !isWhole { states.add(0, steps, at: number) }
            if states.places.isEmpty { return false }
        }
        return states.places.contains(last)
    }
}

/// A set of Unicode scalars.
struct ScalarClass: Sendable {
    var ranges: [ClosedRange<Unicode.Scalar>] = []
    /// General categories, by one letter or two, and whether the others are meant.
    var categories: [(name: String, isNegated: Bool)] = []
    var isNegated = false

    func contains(_ scalar: Unicode.Scalar) -> Bool {
        var isIn = ranges.contains { $0.contains(scalar) }
        if !isIn, !categories.isEmpty {
            let name = scalar.properties.generalCategory.abbreviation
            isIn = categories.contains { name.hasBytePrefix($0.name) != $0.isNegated }
        }
        return isIn != isNegated
    }
}

extension Unicode.GeneralCategory {
    /// The name of two letters (Unicode Standard Annex #44, table 12).
    fileprivate var abbreviation: String {
        switch self {
        case .uppercaseLetter: "Lu"
        case .lowercaseLetter: "Ll"
        case .titlecaseLetter: "Lt"
        case .modifierLetter: "Lm"
        case .otherLetter: "Lo"
        case .nonspacingMark: "Mn"
        case .spacingMark: "Mc"
        case .enclosingMark: "Me"
        case .decimalNumber: "Nd"
        case .letterNumber: "Nl"
        case .otherNumber: "No"
        case .connectorPunctuation: "Pc"
        case .dashPunctuation: "Pd"
        case .openPunctuation: "Ps"
        case .closePunctuation: "Pe"
        case .initialPunctuation: "Pi"
        case .finalPunctuation: "Pf"
        case .otherPunctuation: "Po"
        case .mathSymbol: "Sm"
        case .currencySymbol: "Sc"
        case .modifierSymbol: "Sk"
        case .otherSymbol: "So"
        case .spaceSeparator: "Zs"
        case .lineSeparator: "Zl"
        case .paragraphSeparator: "Zp"
        case .control: "Cc"
        case .format: "Cf"
        case .surrogate: "Cs"
        case .privateUse: "Co"
        case .unassigned: "Cn"
        @unknown default: "Cn"
        }
    }
}
