// SPDX-License-Identifier: Apache-2.0

/// The command line, the same as the C floor's with `closure` beside `get`.
struct Options: Sendable {
    enum Command: Sendable {
        case get(count: Int, inFlight: Int)
        case closure(count: Int, inFlight: Int)
        case download(path: String)
        case upload(path: String)

        var name: String {
            switch self {
            case .get: "get"
            case .closure: "closure"
            case .download: "download"
            case .upload: "upload"
            }
        }
    }

    static let usage = """
        usage: CurlewBench get|closure URL COUNT INFLIGHT [--h2] [--cold] [--ca FILE]
               CurlewBench download URL FILE [--ca FILE]
               CurlewBench upload URL FILE [--ca FILE]
        """

    let command: Command
    let url: String
    private(set) var usesHTTP2 = false
    private(set) var isCold = false
    private(set) var caFile: String?

    /// The requests that run at the same time.
    var inFlight: Int {
        switch command {
        case .get(_, let inFlight), .closure(_, let inFlight): inFlight
        case .download, .upload: 1
        }
    }

    /// `nil` when the arguments, without the program's name, make no command.
    init?(_ arguments: [String]) {
        var positional: [String] = []
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--h2": usesHTTP2 = true
            case "--cold": isCold = true
            case "--ca":
                guard let file = rest.popFirst() else { return nil }
                caFile = file
            case _ where argument.hasPrefix("-"): return nil
            default: positional.append(argument)
            }
        }
        guard positional.count >= 3, let command = Self.command(positional) else { return nil }
        self.command = command
        url = positional[1]
    }

    private static func command(_ arguments: [String]) -> Command? {
        switch (arguments[0], arguments.count) {
        case ("download", 3): return .download(path: arguments[2])
        case ("upload", 3): return .upload(path: arguments[2])
        case ("get", 4), ("closure", 4):
            guard let count = Int(arguments[2]), let inFlight = Int(arguments[3]), count > 0, inFlight > 0 else { return nil }
            return arguments[0] == "get" ? .get(count: count, inFlight: inFlight) : .closure(count: count, inFlight: inFlight)
        default: return nil
        }
    }
}
