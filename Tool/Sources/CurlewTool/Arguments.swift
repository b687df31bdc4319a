// SPDX-License-Identifier: Apache-2.0
import Curlew

/// A parsed command line.
struct Arguments: Equatable {
    /// The source of a body that is not made of items.
    enum BodySource: Equatable {
        case file(String)
        case standardInput
    }

    /// `nil` if not given.
    var method: String?
    var url = ""
    var items: [RequestItem] = []

    var showsHelp = false
    var showsVersion = false
    var isVerbose = false
    var printsHead = false
    var isForm = false
    var isRaw = false
    var isPretty = false
    var body: BodySource?
    var download: String?
    var replacesFile = false
    var resumesDownload = false
    var timeout: Duration?
    var connectTimeout: Duration?
    var maximumRedirects: Int?
    var isInsecure = false
    var certificateAuthorityFile: String?
    var usesHTTP1 = false
    var decodes = true
    var token: String?
    var user: String?

    /// Parses a command line, without the program's name.
    init(_ words: [String]) throws(UsageError) {
        var positionals: [String] = []
        var rest = words[...]
        while let word = rest.popFirst() {
            if word == "--" {
                positionals += rest
                break
            }
            if word.hasPrefix("-"), word.count > 1 {
                try parseOption(word, &rest)
            } else {
                positionals.append(word)
            }
        }
        guard !showsHelp, !showsVersion else { return }
        try parsePositionals(positionals)
        try checkCombinations()
    }

    // MARK: Options

    private mutating func parseOption(_ word: String, _ rest: inout ArraySlice<String>) throws(UsageError) {
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts[0])
        if let flag = Self.flags[name] {
            guard parts.count == 1 else { throw UsageError("\(name) takes no value") }
            self[keyPath: flag] = true
        } else if name == "--no-decode", parts.count == 1 {
            decodes = false
        } else if Self.optionsWithValue.contains(name) {
            guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst() else { throw UsageError("\(name) needs a value") }
            try set(name, value)
        } else {
            // The part after "=" may be a secret, so it is not printed.
            throw UsageError("unknown option \(name)")
        }
    }

    private static var flags: [String: WritableKeyPath<Arguments, Bool>] {
        [
            "-h": \.showsHelp, "--help": \.showsHelp, "--version": \.showsVersion, "-v": \.isVerbose, "--verbose": \.isVerbose,
            "--headers": \.printsHead, "--form": \.isForm, "--raw": \.isRaw, "--pretty": \.isPretty, "--force": \.replacesFile,
            "--continue": \.resumesDownload, "--insecure": \.isInsecure, "--http1": \.usesHTTP1,
        ]
    }

    private static let optionsWithValue: Set = [
        "--body", "--download", "--timeout", "--connect-timeout", "--max-redirects", "--cacert", "--token", "--user",
    ]

    private mutating func set(_ name: String, _ value: String) throws(UsageError) {
        guard !value.isEmpty else { throw UsageError("the value of \(name) is empty") }
        switch name {
        case "--body": body = value == "-" ? .standardInput : .file(value)
        case "--download": download = value
        case "--timeout": timeout = try Self.seconds(value, of: name)
        case "--connect-timeout": connectTimeout = try Self.seconds(value, of: name)
        case "--max-redirects":
            guard let count = Int(value), (0...10_000).contains(count) else {
                throw UsageError("\(name) needs a number from 0 to 10000, not \(value.quoted)")
            }
            maximumRedirects = count
        case "--cacert": certificateAuthorityFile = value
        case "--token": token = value
        default:
            guard value.contains(":") else { throw UsageError("\(name) needs NAME:PASSWORD") }
            user = value
        }
    }

    private static func seconds(_ value: String, of name: String) throws(UsageError) -> Duration {
        let isPlain = value.utf8.allSatisfy { ("0"..."9").contains(Unicode.Scalar($0)) || $0 == UInt8(ascii: ".") }
        guard isPlain, let seconds = Double(value), seconds > 0, seconds <= 1e9 else {
            throw UsageError("\(name) needs a number of seconds above 0, not \(value.quoted)")
        }
        return .seconds(seconds)
    }

    // MARK: Method, URL, items

    private mutating func parsePositionals(_ words: [String]) throws(UsageError) {
        var rest = words[...]
        if let first = rest.first, let method = Self.method(first) {
            self.method = method
            rest = rest.dropFirst()
        }
        guard let url = rest.popFirst() else { throw UsageError("the URL is missing") }
        self.url = url
        for word in rest { items.append(try RequestItem(word)) }
    }

    /// Returns the method if the word is one: a common one in any case, or another in uppercase.
    private static func method(_ word: String) -> String? {
        let usual: Set = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"]
        if usual.contains(word.uppercased()) { return word.uppercased() }
        let isCapital = word.unicodeScalars.allSatisfy { ("A"..."Z").contains($0) || $0 == "-" || $0 == "_" }
        return isCapital && word.contains { $0.isLetter } ? word : nil
    }

    private func checkCombinations() throws(UsageError) {
        if body != nil, items.contains(where: \.isField) { throw UsageError("--body and body fields can't be combined") }
        if isForm, let item = items.first(where: \.isJSON) {
            throw UsageError("\(item.name.quoted) is JSON, which --form can't send; use name=value")
        }
        if !isForm, body == nil {
            var names: Set<String> = []
            for item in items where item.isField && !names.insert(item.name).inserted {
                throw UsageError("the field \(item.name.quoted) is given twice, which only --form allows")
            }
        }
        if isForm, body != nil { throw UsageError("--body and --form can't be combined") }
        if token != nil, user != nil { throw UsageError("--token and --user can't be combined") }
        if isRaw, isPretty { throw UsageError("--raw and --pretty can't be combined") }
        if replacesFile, download == nil { throw UsageError("--force requires --download") }
        if resumesDownload, download == nil { throw UsageError("--continue requires --download") }
        if download == "-" { throw UsageError("--download needs a file; without it the body goes to standard output") }
    }
}

extension String {
    /// The string in quotes, with non-printable characters escaped.
    var quoted: String { SafeText.escaped(debugDescription) }
}

/// The reason why a command line is invalid, as a phrase.
struct UsageError: Error, Equatable {
    let message: String

    init(_ message: String) {
        self.message = message
    }
}
