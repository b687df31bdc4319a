// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The entries of a netrc file, by which `StaticCredential.netrc` finds a host's, as curl 7.88 and later read it: words in double quotes may have spaces and the escapes \n, \r, \t, \" and
/// \\, a word that begins with # makes the rest of its line a comment, and a macro ends with an empty line.
struct Netrc {
    /// A quote without an end, in a line.
    struct SyntaxError: Error {
        let line: Int
    }

    private struct Entry {
        /// `nil` for that of all hosts.
        let host: String?
        var user: String?
        var password: String?
    }

    private var entries: [Entry] = []

    init(_ text: String) throws(SyntaxError) {
        var isMacro = false
        var keyword = ""
        for (number, line) in text.splitScalars(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if isMacro {
                isMacro = !line.isEmpty && line != "\r"
                continue
            }
            var rest = line.unicodeScalars
            while let word = try Self.word(&rest, line: number + 1) {
                if keyword.isEmpty {
                    keyword = begin(word.lowercased())
                } else {
                    take(word, for: keyword)
                    isMacro = keyword == "macdef"
                    keyword = ""
                    if isMacro { break }
                }
            }
        }
    }

    /// Begins what a keyword says. Returns the keyword if a word belongs to it.
    private mutating func begin(_ keyword: String) -> String {
        switch keyword {
        case "machine", "login", "password", "account", "macdef": return keyword
        case "default": entries.append(Entry(host: nil))
        default: break
        }
        return ""
    }

    private mutating func take(_ word: String, for keyword: String) {
        if keyword == "machine" { return entries.append(Entry(host: Self.normal(word))) }
        guard var entry = entries.popLast() else { return }
        defer { entries.append(entry) }
        switch keyword {
        case "login" where entry.user != nil && entry.password != nil:
            // Another user of the same host.
            entries.append(entry)
            entry = Entry(host: entry.host, user: word)
        case "login": entry.user = word
        case "password": entry.password = word
        default: break
        }
    }

    /// Reads the next word of a line; `nil` at its end or a comment.
    private static func word(_ rest: inout Substring.UnicodeScalarView, line: Int) throws(SyntaxError) -> String? {
        func isSpace(_ scalar: Unicode.Scalar) -> Bool { scalar == " " || scalar == "\t" || scalar == "\r" }
        rest = rest.drop(while: isSpace)
        guard let first = rest.first, first != "#" else { return nil }
        guard first == "\"" else {
            let word = rest.prefix { !isSpace($0) }
            rest = rest[word.endIndex...]
            return String(Substring(word))
        }
        rest.removeFirst()
        var word = String.UnicodeScalarView()
        while let scalar = rest.popFirst() {
            if scalar == "\"" { return String(word) }
            guard scalar == "\\" else {
                word.append(scalar)
                continue
            }
            guard let escaped = rest.popFirst() else { break }
            word.append(escaped == "n" ? "\n" : escaped == "r" ? "\r" : escaped == "t" ? "\t" : escaped)
        }
        throw SyntaxError(line: line)
    }

    private static func normal(_ host: String) -> String { HTTPOrigin(scheme: "https", host: host, port: 443).host }

    /// Finds the first entry of a host, or of one of its users.
    func credential(for host: String, user: String?) -> (user: String, password: String)? {
        let host = Self.normal(host)
        let found = entries.first { entry in
            (entry.host == nil || entry.host == host) && (user == nil ? entry.user != nil : entry.user == user)
        }
        return found.flatMap { entry in entry.user.map { ($0, entry.password ?? "") } }
    }
}
