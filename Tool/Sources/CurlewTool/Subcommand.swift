// SPDX-License-Identifier: Apache-2.0
import Curlew

/// A first word that is no URL and no method.
enum Subcommand: String, CaseIterable {
    case download, dl, ws, sse, curl, bench, help

    func run(_ words: [String], environment: [String: String]) async throws(UsageError) -> Outcome {
        switch self {
        case .help: return Tool.show(Help.text)
        default:
            throw UsageError("\(rawValue) is not in this version; for a host of that name write \(rawValue)/")
        }
    }
}

extension Subcommand {
    /// The help's part about subcommands.
    static let usage = """
        A first word that is exactly one of these is no URL; a host of that name is written with a slash, as in bench/:
          help                    print this help

        """
}
