// SPDX-License-Identifier: Apache-2.0
import Curlew

/// `curlew curl …`: a command of curl in words of ours.
enum CurlCommandLine {
    /// What an option of curl is here.
    private enum Meaning {
        /// Nothing to do: it is so anyway, or changes only what curl prints.
        case nothing
        /// An option of ours, without a value.
        case flag(String)
        /// An option of ours with the value.
        case value(String)
        /// An option of curl with a value that has no effect here.
        case ignoredValue
        case header
        case data(isRaw: Bool)
        case encodedData
        case json
        case form(isString: Bool)
        case method
        case head
        case query
        case url
        case field(String)
        case cookie
        case follow
        case followLimit
        case upload
        case user(isChallenge: Bool)
        case challenge
        case include
        case fail
        case remoteName
    }

    private static let long: [String: Meaning] = [
        "--header": .header, "--data": .data(isRaw: false), "--data-ascii": .data(isRaw: false), "--data-binary": .data(isRaw: true),
        "--data-raw": .data(isRaw: true), "--data-urlencode": .encodedData, "--json": .json, "--form": .form(isString: false),
        "--form-string": .form(isString: true), "--request": .method, "--head": .head, "--get": .query, "--url": .url,
        "--user-agent": .field("User-Agent"), "--referer": .field("Referer"), "--cookie": .cookie, "--range": .field("Range"),
        "--location": .follow, "--max-redirs": .followLimit, "--upload-file": .upload, "--user": .user(isChallenge: false),
        "--basic": .nothing, "--digest": .challenge, "--ntlm": .challenge, "--negotiate": .challenge, "--anyauth": .challenge,
        "--oauth2-bearer": .value("--token"), "--include": .include, "--show-headers": .include, "--verbose": .flag("--verbose"),
        "--output": .value("--download"), "--remote-name": .remoteName, "--insecure": .flag("--insecure"), "--cacert": .value("--cacert"),
        "--cert": .value("--cert"), "--key": .value("--key"), "--pinnedpubkey": .value("--pin"), "--proxy": .value("--proxy"),
        "--interface": .value("--interface"), "--max-time": .value("--timeout"), "--connect-timeout": .value("--connect-timeout"),
        "--retry": .value("--retry"), "--retry-max-time": .value("--deadline"), "--http1.1": .flag("--http=1.1"),
        "--http3": .flag("--http=3"), "--resolve": .value("--resolve"), "--unix-socket": .value("--unix-socket"), "--http2": .nothing,
        "--http2-prior-knowledge": .flag("--http=2"), "--compressed": .nothing, "--silent": .nothing,
        "--show-error": .nothing, "--no-progress-meter": .nothing, "--progress-bar": .nothing, "--no-buffer": .nothing,
        "--globoff": .nothing, "--fail": .fail, "--fail-with-body": .nothing, "--tcp-nodelay": .nothing, "--no-keepalive": .nothing,
        "--netrc": .flag("--netrc"), "--continue-at": .ignoredValue, "--keepalive-time": .ignoredValue, "--path-as-is": .nothing,
        "--styled-output": .nothing, "--disable": .nothing, "--no-sessionid": .nothing, "--ssl-reqd": .nothing, "--tlsv1.2": .nothing,
    ]

    private static let short: [Character: String] = [
        "H": "--header", "d": "--data", "F": "--form", "X": "--request", "I": "--head", "G": "--get", "A": "--user-agent",
        "e": "--referer", "b": "--cookie", "r": "--range", "L": "--location", "T": "--upload-file", "u": "--user", "i": "--include",
        "v": "--verbose", "o": "--output", "O": "--remote-name", "k": "--insecure", "E": "--cert", "x": "--proxy", "m": "--max-time",
        "s": "--silent", "S": "--show-error", "#": "--progress-bar", "N": "--no-buffer", "g": "--globoff", "f": "--fail",
        "n": "--netrc", "q": "--disable",
    ]

    /// What has been read of a command.
    private struct Reading {
        var urls: [String] = []
        var method: String?
        var items: [String] = []
        var options: [String] = []
        var data: [String] = []
        var dataFile: String?
        var parts: [String] = []
        var isQuery = false
        var isHead = false
        var isJSON = false
        var follows = false
        var limit: String?
        var hasRemoteName = false
    }

    /// Returns the words of this program for those of curl.
    static func translated(_ words: [String]) throws(UsageError) -> [String] {
        var reading = Reading()
        var rest = words[...]
        // A pasted line begins with the program's name.
        if rest.first == "curl" { rest = rest.dropFirst() }
        while let word = rest.popFirst() {
            if word.hasPrefix("--") {
                try read(word, attached: nil, &rest, &reading)
            } else if word.hasPrefix("-"), word.count > 1 {
                try readCluster(word.dropFirst(), &rest, &reading)
            } else {
                reading.urls.append(word)
            }
        }
        return try assembled(reading)
    }

    private static func readCluster(_ letters: Substring, _ rest: inout ArraySlice<String>, _ reading: inout Reading) throws(UsageError) {
        var letters = letters
        while let letter = letters.popFirst() {
            guard let name = short[letter], let meaning = long[name] else { throw UsageError("curl's option -\(letter) is not supported") }
            if takesValue(meaning) {
                try read(name, attached: letters.isEmpty ? nil : String(letters), &rest, &reading)
                return
            }
            try read(name, attached: nil, &rest, &reading)
        }
    }

    private static func takesValue(_ meaning: Meaning) -> Bool {
        switch meaning {
        case .nothing, .flag, .head, .query, .follow, .challenge, .include, .fail, .remoteName: false
        default: true
        }
    }

    private static func read(_ name: String, attached: String?, _ rest: inout ArraySlice<String>, _ reading: inout Reading)
        throws(UsageError)
    {
        guard let meaning = long[name] else { throw UsageError("curl's option \(name) is not supported") }
        var value = ""
        if takesValue(meaning) {
            guard let next = attached ?? rest.popFirst() else { throw UsageError("curl's option \(name) needs a value") }
            value = next
        }
        switch meaning {
        case .nothing, .ignoredValue:
            // A resumed transfer would need the file that is there.
            if name == "--continue-at", value != "-" { throw UsageError("curl's option --continue-at is supported with - only") }
            if name == "--continue-at" { reading.options.append("--continue") }
        case .flag(let option): reading.options.append(option)
        case .value("--pin"): reading.options += value.split(separator: ";").map { "--pin=\($0)" }
        case .value("--download") where value == "-": break
        case .value(let option): reading.options.append("\(option)=\(value)")
        case .header: reading.items.append(try item(header: value))
        case .data(let isRaw): try readData(value, isRaw: isRaw, name, &reading)
        case .encodedData: reading.data.append(try encoded(value))
        case .json:
            reading.isJSON = true
            try readData(value, isRaw: true, "--data-binary", &reading)
        case .form(let isString): reading.parts.append(try part(value, isString: isString))
        case .method: reading.method = value
        case .head: reading.isHead = true
        case .query: reading.isQuery = true
        case .url: reading.urls.append(value)
        case .field(let name): reading.items.append("\(name):\(name == "Range" ? "bytes=" : "")\(value)")
        case .cookie:
            guard value.contains("=") else { throw UsageError("curl's option --cookie is supported with name=value only") }
            reading.items.append("Cookie:\(value)")
        case .follow: reading.follows = true
        case .followLimit: reading.limit = value
        case .upload:
            reading.dataFile = value
            reading.method = reading.method ?? "PUT"
        case .user: reading.options.append("--user=\(value)")
        case .challenge: reading.options.append("--auth-type=challenge")
        case .include: reading.options.append("--print=hb")
        // The exit status tells an error of HTTP anyway; its body is not printed.
        case .fail: break
        case .remoteName: reading.hasRemoteName = true
        }
    }

    private static func item(header: String) throws(UsageError) -> String {
        if header.hasPrefix("@") { throw UsageError("curl's option --header is not supported with a file") }
        if header.hasSuffix(";"), !header.contains(":") { return header }
        guard let colon = header.firstIndex(of: ":") else { throw UsageError("\(header.quoted) is no header field") }
        let value = header[header.index(after: colon)...].trimmingCharacters(in: .whitespaces)
        if value.hasPrefix("@") || value.hasPrefix("=") { throw UsageError("the header field \(header[..<colon]) begins with @ or =") }
        return "\(header[..<colon]):\(value)"
    }

    private static func readData(_ value: String, isRaw: Bool, _ name: String, _ reading: inout Reading) throws(UsageError) {
        guard value.hasPrefix("@"), name != "--data-raw" else {
            reading.data.append(value)
            return
        }
        let path = String(value.dropFirst())
        if isRaw {
            reading.dataFile = path
        } else {
            reading.data.append(try contents(path).replacingOccurrences(of: "\r", with: "").replacingOccurrences(of: "\n", with: ""))
        }
    }

    private static func contents(_ path: String) throws(UsageError) -> String {
        guard path != "-", let data = FileManager.default.contents(atPath: path), let text = String(data: data, encoding: .utf8) else {
            throw UsageError("\(path.quoted) can't be read as text")
        }
        return text
    }

    /// `content`, `=content`, `name=content`, `@file` or `name@file`.
    private static func encoded(_ value: String) throws(UsageError) -> String {
        guard let place = value.firstIndex(where: { $0 == "=" || $0 == "@" }) else { return RequestURL.escaped(value) }
        let rest = String(value[value.index(after: place)...])
        let text = value[place] == "@" ? try contents(rest) : rest
        return (place == value.startIndex ? "" : value[..<place] + "=") + RequestURL.escaped(text)
    }

    private static func part(_ value: String, isString: Bool) throws(UsageError) -> String {
        guard let equals = value.firstIndex(of: "=") else { throw UsageError("\(value.quoted) is no part of a form") }
        let name = value[..<equals].map { "=:;@\\".contains($0) ? "\\\($0)" : String($0) }.joined()
        let rest = value[value.index(after: equals)...]
        if !isString, rest.hasPrefix("<") { return "\(name)=@\(rest.dropFirst())" }
        if !isString, rest.hasPrefix("@") { return "\(name)@\(rest.dropFirst())" }
        if rest.hasPrefix("@") || rest.hasPrefix("=") { throw UsageError("the part \(name) begins with @ or =") }
        return "\(name)=\(rest)"
    }

    private static func assembled(_ reading: Reading) throws(UsageError) -> [String] {
        guard let url = reading.urls.first else { throw UsageError("the URL is missing") }
        guard reading.urls.count == 1 else { throw UsageError("more than one URL is not supported") }
        var target = url.contains("://") ? url : "http://\(url)"
        var words = reading.options
        var method = reading.method
        var items = reading.items
        let hasData = !reading.data.isEmpty || reading.dataFile != nil
        if hasData, !reading.parts.isEmpty { throw UsageError("curl's options --data and --form can't be combined") }
        func hasField(_ name: String) -> Bool { items.contains { $0.lowercased().hasPrefix(name + ":") } }
        if reading.isQuery {
            if !reading.data.isEmpty { target += (target.contains("?") ? "&" : "?") + reading.data.joined(separator: "&") }
        } else if let path = reading.dataFile {
            guard reading.data.isEmpty else { throw UsageError("a file and other data can't be combined") }
            words.append("--body=\(path)")
        } else if !reading.data.isEmpty {
            words.append("--raw=\(reading.data.joined(separator: reading.isJSON ? "" : "&"))")
        } else if !reading.parts.isEmpty {
            words.append("--multipart")
        }
        if hasData, !reading.isQuery, reading.method != "PUT", !hasField("content-type") {
            items.append("Content-Type:" + (reading.isJSON ? "application/json" : "application/x-www-form-urlencoded"))
        }
        if reading.isJSON, !hasField("accept") { items.append("Accept:application/json") }
        method = method ?? (reading.isHead ? "HEAD" : hasData && !reading.isQuery || !reading.parts.isEmpty ? "POST" : "GET")
        words.append("--max-redirects=\(reading.follows ? reading.limit.flatMap { $0 == "-1" ? "10000" : $0 } ?? "50" : "0")")
        if reading.hasRemoteName {
            let name =
                target.prefix { $0 != "?" && $0 != "#" }.split(separator: "/", omittingEmptySubsequences: false).last.map(String.init) ?? ""
            guard !name.isEmpty, target.split(separator: "/").count > 2, name != ".." else {
                throw UsageError("the URL has no file name for -O")
            }
            words.append("--download=\(name)")
        }
        words.append("--ignore-stdin")
        return words + [method ?? "GET", target] + items + reading.parts
    }
}
