// SPDX-License-Identifier: Apache-2.0

/// Parameters as Foundation's serializers see them: dictionaries with strings for keys, arrays, and leaves.
///
/// They are checked before a serializer gets them: on an object that it does not take it may trap, overflow the stack or write
/// nonsense, and it never says which of the values it was.
struct ParameterTree {
    /// What the parameters are to become, for messages.
    let format: String
    /// Whether the format has the value, which is neither a dictionary with strings for keys nor an array.
    let acceptsLeaf: (Any) -> Bool

    /// Foundation reads no more levels than these either.
    private static let maximumDepth = 512

    /// Throws unless the format has everything in the tree. The error names the place and the type, never the value.
    func validate(_ root: Any) throws(CocoaError) {
        guard let obstacle = firstObstacle(in: root, depth: 0) else { return }
        let place = obstacle.path.isEmpty ? "The top level" : "The value at \(obstacle.path.reversed().joined())"
        throw .unencodable("\(place) \(obstacle.problem).")
    }

    /// What is in the way, and the steps that lead there, the last one first.
    private struct Obstacle {
        let problem: String
        var path: [String] = []

        func behind(_ step: String) -> Obstacle {
            Obstacle(problem: problem, path: path + [step])
        }
    }

    private func firstObstacle(in value: Any, depth: Int) -> Obstacle? {
        // Containers first: on Linux, asking an array whether it is an object copies all of it.
        if let dictionary = value as? [String: Any] {
            guard depth < ParameterTree.maximumDepth else { return tooDeep }
            for (key, child) in dictionary {
                guard acceptsLeaf(key) else { return Obstacle(problem: "has a key that \(format) can't hold") }
                if let obstacle = firstObstacle(in: child, depth: depth + 1) { return obstacle.behind("[\(key.debugDescription)]") }
            }
            return nil
        }
        if let array = value as? [Any] {
            guard depth < ParameterTree.maximumDepth else { return tooDeep }
            for (index, child) in array.enumerated() {
                if let obstacle = firstObstacle(in: child, depth: depth + 1) { return obstacle.behind("[\(index)]") }
            }
            return nil
        }
        return acceptsLeaf(value) ? nil : Obstacle(problem: "is a \(type(of: value)) that \(format) can't hold")
    }

    // Without a path: one of hundreds of steps helps nobody.
    private var tooDeep: Obstacle {
        Obstacle(problem: "is nested more than \(ParameterTree.maximumDepth) levels deep")
    }
}

extension CocoaError {
    /// The error of a value that a format can't hold.
    static func unencodable(_ explanation: String) -> CocoaError {
        CocoaError(.coderInvalidValue, userInfo: [NSDebugDescriptionErrorKey: explanation])
    }
}
