// SPDX-License-Identifier: Apache-2.0
import Curlew

/// A command line, taken apart.
struct Arguments: Equatable {
    /// Where a body comes from that is not made of items.
    enum BodySource: Equatable {
        case file(String)
        case standardInput
    }

    /// `nil` unless given.
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
    var continuesDownload = false
    var timeout: Duration?
    var connectTimeout: Duration?
    var maximumRedirects: Int?
    var isInsecure = false
    var certificateAuthorityFile: String?
    var usesHTTP1 = false
    var decodes = true
    var token: String?
    var user: String?

    /// Takes a command line apart, without the program's name.
    init(_ words: [String]) throws(UsageError) {
        var positionals: [String] = []
        var rest = words[...]
        while let word = rest.popFirst() {
            if word == "--" {
                positionals += rest
                break
            }
            if word.hasPrefix("-"), word.count > 1 {
                try takeOption(word, &rest)
            } else {
                positionals.append(word)
            }
        }
        guard !showsHelp, !showsVersion else { return }
        try takePositionals(positionals)
        try checkTogether()
    }

    // MARK: Options

    private mutating func takeOption(_ word: String, _ rest: inout ArraySlice<String>) throws(UsageError) {
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
            // The rest of the word may be a secret.
            throw UsageError("unknown option \(name)")
        }
    }

    private static var flags: [String: WritableKeyPath<Arguments, Bool>] {
        [
            "-h": \.showsHelp, "--help": \.showsHelp, "--version": \.showsVersion, "-v": \.isVerbose, "--verbose": \.isVerbose,
            "--headers": \.printsHead, "--form": \.isForm, "--raw": \.isRaw, "--pretty": \.isPretty, "--force": \.replacesFile,
            "--continue": \.continuesDownload, "--insecure": \.isInsecure, "--http1": \.usesHTTP1,
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

    private mutating func takePositionals(_ words: [String]) throws(UsageError) {
        var rest = words[...]
        if let first = rest.first, let method = Self.method(first) {
            self.method = method
            rest = rest.dropFirst()
        }
        guard let url = rest.popFirst() else { throw UsageError("the URL is missing") }
        self.url = url
        for word in rest { items.append(try RequestItem(word)) }
    }

    /// A word that is a method: one of the usual ones in any case, or another in capitals.
    private static func method(_ word: String) -> String? {
        let usual: Set = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"]
        if usual.contains(word.uppercased()) { return word.uppercased() }
        let isCapital = word.unicodeScalars.allSatisfy { ("A"..."Z").contains($0) || $0 == "-" || $0 == "_" }
        return isCapital && word.contains { $0.isLetter } ? word : nil
    }

    private func checkTogether() throws(UsageError) {
        if body != nil, items.contains(where: \.isField) { throw UsageError("--body and fields of a body exclude each other") }
        if isForm, let item = items.first(where: \.isJSON) { throw UsageError("\(item.name.quoted) is JSON, which --form does not take") }
        if !isForm, body == nil {
            var names: Set<String> = []
            for item in items where item.isField && !names.insert(item.name).inserted {
                throw UsageError("the field \(item.name.quoted) is given twice")
            }
        }
        if isForm, body != nil { throw UsageError("--body and --form exclude each other") }
        if token != nil, user != nil { throw UsageError("--token and --user exclude each other") }
        if isRaw, isPretty { throw UsageError("--raw and --pretty exclude each other") }
        if replacesFile, download == nil { throw UsageError("--force needs --download") }
        if continuesDownload, download == nil { throw UsageError("--continue needs --download") }
        if download == "-" { throw UsageError("--download needs a file; without it the body goes to standard output") }
    }
}

extension String {
    /// The text in quotes, with what is not printable escaped.
    var quoted: String { Redaction.escaped(debugDescription) }
}
