// SPDX-License-Identifier: Apache-2.0

/// Parameters as Foundation's serializers see them: dictionaries with `String` keys, arrays, and leaves.
///
/// Validated before serialization, because a serializer may trap, overflow the stack or write invalid output for an unsupported object,
/// and never reports which value was invalid.
struct ParameterTree {
    /// The name of the format, for error messages.
    let format: String
    /// Whether the format supports a leaf, which is neither a dictionary with `String` keys nor an array.
    let acceptsLeaf: (Any) -> Bool

    /// The nesting limit, which is also that of Foundation's parsers.
    private static let maximumDepth = 512

    /// Throws unless the format supports the entire tree. The error names the path and the type, never the value.
    func validate(_ root: Any) throws(CocoaError) {
        guard let violation = firstViolation(in: root, depth: 0) else { return }
        let place = violation.path.isEmpty ? "The top level" : "The value at \(violation.path.reversed().joined())"
        throw .unencodable("\(place) \(violation.problem).")
    }

    /// An unsupported value, and the path to it, innermost step first.
    private struct Violation {
        let problem: String
        var path: [String] = []

        func prefixed(by step: String) -> Violation {
            Violation(problem: problem, path: path + [step])
        }
    }

    private func firstViolation(in value: Any, depth: Int) -> Violation? {
        // Containers first: on Linux, asking an array whether it is an object copies all of it.
        if let dictionary = value as? [String: Any] {
            guard depth < ParameterTree.maximumDepth else { return tooDeep }
            for (key, child) in dictionary {
                guard acceptsLeaf(key) else { return Violation(problem: "has a key that \(format) can't represent") }
                if let found = firstViolation(in: child, depth: depth + 1) { return found.prefixed(by: "[\(key.debugDescription)]") }
            }
            return nil
        }
        if let array = value as? [Any] {
            guard depth < ParameterTree.maximumDepth else { return tooDeep }
            for (index, child) in array.enumerated() {
                if let found = firstViolation(in: child, depth: depth + 1) { return found.prefixed(by: "[\(index)]") }
            }
            return nil
        }
        return acceptsLeaf(value) ? nil : Violation(problem: "is a \(type(of: value)), which \(format) can't represent")
    }

    // Without a path: hundreds of steps would not help.
    private var tooDeep: Violation {
        Violation(problem: "is nested more than \(ParameterTree.maximumDepth) levels deep")
    }
}

extension CocoaError {
    /// Returns the error for a value that a format can't represent.
    static func unencodable(_ explanation: String) -> CocoaError {
        CocoaError(.coderInvalidValue, userInfo: [NSDebugDescriptionErrorKey: explanation])
    }
}
