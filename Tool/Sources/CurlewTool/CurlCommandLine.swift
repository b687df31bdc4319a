// SPDX-License-Identifier: Apache-2.0
import Curlew

/// A command of curl in words of ours.
struct CurlCommand: Equatable {
    var words: [String]
    /// The parts of a form, which may be what a word can't say.
    var parts: [RequestItem] = []
    /// Whether the body of a response with an error's status is not printed.
    var hidesErrors = false
    /// The folder that the file of the response is in, if it may be created.
    var newFolder: String?
    /// What differs from curl, to be printed.
    var note: String?

    /// Creates the folder; a failure is that of the file in it.
    func createFolder() {
        guard let newFolder else { return }
        try? FileManager.default.createDirectory(atPath: newFolder, withIntermediateDirectories: true)
    }
}

/// `curlew curl …`: reads a command of curl.
struct CurlCommandLine {
    private var urls: [String] = []
    private var queries: [String] = []
    private var method: String?
    private var note: String?
    private var items: [String] = []
    private var cookies: [String] = []
    private var options: [String] = []
    private var data: [String] = []
    private var dataFile: String?
    private var parts: [RequestItem] = []
    private var isUpload = false
    private var isQuery = false
    private var isHead = false
    private var isJSON = false
    private var isLiteral = false
    private var isPathAsIs = false
    private var isCompressed = false
    private var hidesErrors = false
    private var follows = false
    private var limit: String?
    private var output: String?
    private var outputFolder: String?
    private var createsFolders = false
    private var hasRemoteName = false
    private var isSecureOnly = false
    private var proxy: String?
    private var proxyUser: String?

    private init() {}

    /// Returns the words of this program for those of curl.
    static func translated(_ words: [String]) throws(UsageError) -> CurlCommand {
        var line = CurlCommandLine()
        var rest = words[...]
        // A pasted line begins with the program's name.
        if rest.first == "curl" { rest = rest.dropFirst() }
        while let word = rest.popFirst() {
            if word.hasBytePrefix("--") {
                try line.read(word, attached: nil, &rest)
            } else if word.hasBytePrefix("-"), word.count > 1 {
                try line.readCluster(word.dropFirst(), &rest)
            } else {
                line.urls.append(word)
            }
        }
        return try line.assembled()
    }

    private mutating func readCluster(_ cluster: Substring, _ rest: inout ArraySlice<String>) throws(UsageError) {
        var letters = cluster
        while let letter = letters.popFirst() {
            guard let name = CurlOption.short[letter], let option = CurlOption.long[name] else {
                throw UsageError("curl's option -\(letter) is not supported")
            }
            try read(name, attached: option.takesValue && !letters.isEmpty ? String(letters) : nil, &rest)
            if option.takesValue { return }
        }
    }

    private mutating func read(_ name: String, attached: String?, _ rest: inout ArraySlice<String>) throws(UsageError) {
        guard let option = CurlOption.long[name] else { throw UsageError("curl's option \(name) is not supported") }
        guard option.takesValue else {
            read(option)
            return
        }
        guard let value = attached ?? rest.popFirst() else { throw UsageError("curl's option \(name) needs a value") }
        switch option {
        case .header, .data, .encodedData, .json, .form, .urlQuery, .field, .cookie, .upload: try readContent(option, value, name)
        case .output, .outputFolder, .resume: try readOutput(option, value)
        default: try readConnection(option, value, name)
        }
    }

    private mutating func read(_ option: CurlOption) {
        switch option {
        case .flag(let option): options.append(option)
        case .head: isHead = true
        case .query: isQuery = true
        case .literalURL: isLiteral = true
        case .pathAsIs: isPathAsIs = true
        case .follow: follows = true
        case .challenge: options.append("--auth-type=challenge")
        case .compressed: isCompressed = true
        case .fail: hidesErrors = true
        case .remoteName: hasRemoteName = true
        case .createFolders: createsFolders = true
        default: break
        }
    }

    private mutating func readContent(_ option: CurlOption, _ value: String, _ name: String) throws(UsageError) {
        switch option {
        case .header: items.append(try Self.item(header: value))
        case .data(let isRaw): try readData(value, isRaw: isRaw, name)
        case .encodedData: data.append(try Self.encoded(value))
        case .json:
            isJSON = true
            try readData(value, isRaw: true, "--data-binary")
        case .form(let isString): parts.append(try CurlForm.part(value, isString: isString))
        case .urlQuery: queries.append(value.hasBytePrefix("+") ? String(value.dropFirstScalars()) : try Self.encoded(value))
        // Without a value, the field is not sent.
        case .field(let name): items.append("\(name):" + (value.isEmpty ? "" : name == "Range" ? " bytes=\(value)" : " \(value)"))
        case .cookie:
            guard value.unicodeScalars.contains("=") else { throw UsageError("curl's option --cookie is supported with name=value only") }
            cookies.append(value)
        default:
            dataFile = value
            isUpload = true
        }
    }

    private mutating func readOutput(_ option: CurlOption, _ value: String) throws(UsageError) {
        switch option {
        case .output: output = value
        case .outputFolder: outputFolder = value
        default:
            // A resumed transfer would need the file that is there.
            guard value == "-" else { throw UsageError("curl's option --continue-at is supported with - only") }
            options.append("--continue")
        }
    }

    private mutating func readConnection(_ option: CurlOption, _ value: String, _ name: String) throws(UsageError) {
        switch option {
        case .value("--pin"): options += value.splitScalars(separator: ";").map { "--pin=\($0)" }
        case .value(let option): options += Self.option(option, value)
        case .onlyValue(let only):
            guard value.uppercased() == only.uppercased() else { throw UsageError("curl's option \(name) is supported with \(only) only") }
        case .method:
            guard Arguments.method(value) == value.uppercased() else {
                throw UsageError("curl's option \(name) is supported with methods in uppercase only")
            }
            method = value.uppercased()
            if method != value { note = "curl sends the method \(value.quoted) as it is written; \(value.uppercased()) is sent" }
        case .url: urls.append(value)
        case .followLimit: limit = value
        case .protocols:
            let names = value.splitScalars(separator: ",").map { $0.dropScalars { $0 == "=" } }
            guard !names.isEmpty, names.allSatisfy({ $0 == "http" || $0 == "https" }) else {
                throw UsageError("curl's option \(name) is supported with =http and =https only")
            }
            if !names.contains("http"), name == "--proto" { isSecureOnly = true }
        case .proxy(let scheme): proxy = value.contains("://") ? value : "\(scheme)://\(value)"
        case .proxyUser: proxyUser = value
        case .noProxy:
            guard value == "*" else { throw UsageError("curl's option --noproxy is supported with * only") }
            options.append("--proxy=none")
        default: break
        }
    }

    /// An option of ours with its value, which stands by itself if it is empty.
    private static func option(_ name: String, _ value: String) -> [String] {
        value.isEmpty ? [name, value] : ["\(name)=\(value)"]
    }

    private static func item(header: String) throws(UsageError) -> String {
        if header.hasBytePrefix("@") { throw UsageError("curl's option --header is not supported with a file") }
        if header.hasByteSuffix(";"), !header.unicodeScalars.contains(":") { return header }
        guard let colon = header.unicodeScalars.firstIndex(of: ":") else { throw UsageError("\(header.quoted) is no header field") }
        let value = header.suffix(afterScalarAt: colon).trimmingCharacters(in: .whitespaces)
        // The space parts the value from the colon: `:@` and `:=` are other separators.
        return "\(header[..<colon]):" + (value.isEmpty ? "" : " \(value)")
    }

    private mutating func readData(_ value: String, isRaw: Bool, _ name: String) throws(UsageError) {
        guard value.hasBytePrefix("@"), name != "--data-raw" else {
            data.append(value)
            return
        }
        let path = String(value.dropFirstScalars())
        if isRaw {
            dataFile = path
        } else {
            data.append(
                try Self.contents(path).replacingScalars("\r", with: "").replacingScalars("\n", with: ""))
        }
    }

    private static func contents(_ path: String) throws(UsageError) -> String {
        guard let data = InputFile.contents(path), let text = String(data: data, encoding: .utf8) else {
            throw UsageError("\(path.quoted) can't be read as text")
        }
        return text
    }

    /// `content`, `=content`, `name=content`, `@file` or `name@file`.
    private static func encoded(_ value: String) throws(UsageError) -> String {
        guard let place = value.unicodeScalars.firstIndex(where: { $0 == "=" || $0 == "@" }) else { return RequestURL.escaped(value) }
        let rest = String(value.suffix(afterScalarAt: place))
        let text = value.unicodeScalars[place] == "@" ? try contents(rest) : rest
        return (place == value.startIndex ? "" : value[..<place] + "=") + RequestURL.escaped(text)
    }

    // MARK: The words

    private func assembled() throws(UsageError) -> CurlCommand {
        guard let url = urls.first else { throw UsageError("the URL is missing") }
        guard urls.count == 1 else { throw UsageError("more than one URL is not supported") }
        let hasData = !data.isEmpty || dataFile != nil
        if hasData, !parts.isEmpty { throw UsageError("curl's options --data and --form can't be combined") }
        let target = try target(url)
        var words = options
        // curl takes the key from the certificate's file, if it is not told another.
        if let certificate = options.last(where: { $0.hasBytePrefix("--cert=") }), !options.contains(where: { $0.hasBytePrefix("--key=") })
        {
            words.append("--key=\(certificate.dropFirst(7))")
        }
        if !isCompressed { words.append("--no-decode") }
        if let proxy { words.append("--proxy=\(try Self.proxy(proxy, user: proxyUser))") }
        words += try bodyWords()
        words.append("--max-redirects=\(follows ? limit.flatMap { $0 == "-1" ? "10000" : $0 } ?? "50" : "0")")
        let output = try outputWords(target)
        words += output
        words.append("--ignore-stdin")
        let hasBody = hasData && !isQuery || !parts.isEmpty
        let method = method ?? (isHead ? "HEAD" : isUpload ? "PUT" : hasBody ? "POST" : "GET")
        var command = CurlCommand(words: words + [method, target] + items + defaultFields(), parts: parts, hidesErrors: hidesErrors)
        command.note = note
        if createsFolders, let path = output.first.map({ $0.dropFirst("--download=".count) }),
            let slash = path.unicodeScalars.lastIndex(of: "/")
        {
            command.newFolder = String(path[...slash])
        }
        return command
    }

    private func bodyWords() throws(UsageError) -> [String] {
        if isQuery {
            guard dataFile == nil else { throw UsageError("curl's option --get is not supported with a file") }
            return []
        }
        if let dataFile {
            guard data.isEmpty else { throw UsageError("a file and other data can't be combined") }
            return ["--body=\(dataFile)"]
        }
        if !data.isEmpty { return Self.option("--raw", data.joined(separator: isJSON ? "" : "&")) }
        return parts.isEmpty ? [] : ["--multipart"]
    }

    private func defaultFields() -> [String] {
        func hasField(_ name: String) -> Bool {
            items.contains { $0.lowercased().hasBytePrefix(name + ":") || $0.lowercased() == name + ";" }
        }
        var fields = cookies.isEmpty ? [] : ["Cookie: \(cookies.joined(separator: "; "))"]
        if !data.isEmpty || dataFile != nil, !isQuery, !hasField("content-type") {
            // An upload has no type, and ours would guess one.
            fields.append("Content-Type:" + (isUpload ? "" : isJSON ? " application/json" : " application/x-www-form-urlencoded"))
        }
        if isJSON, !hasField("accept") { fields.append("Accept: application/json") }
        return fields
    }

    private func target(_ url: String) throws(UsageError) -> String {
        var target = url.containsScalars(of: "://") ? url : "http://\(url)"
        if isSecureOnly, !target.lowercased().hasBytePrefix("https://") { throw UsageError("--proto allows https only") }
        let place = RequestURL.endOfAuthority(target)
        if !isLiteral, target[place...].unicodeScalars.contains(where: { "{}[]".unicodeScalars.contains($0) }) {
            throw UsageError("curl's patterns of URLs are not supported; -g takes {} and [] as they are")
        }
        if isUpload, let dataFile, target.hasByteSuffix("/"), dataFile != "-" {
            target += RequestURL.escaped(dataFile.splitScalars(separator: "/").last.map(String.init) ?? "")
        }
        if !isPathAsIs { target = RequestURL.withoutDotSegments(target) }
        let added = queries + (isQuery ? data : [])
        return added.isEmpty ? target : RequestURL.adding(added, to: target)
    }

    private func outputWords(_ target: String) throws(UsageError) -> [String] {
        var name = output
        if hasRemoteName {
            name = target.prefixScalars { $0 != "?" && $0 != "#" }.splitScalars(separator: "/", omittingEmptySubsequences: false).last.map(
                String.init)
            guard let name, name.isFileName, target.splitScalars(separator: "/").count > 2 else {
                throw UsageError("the URL has no file name for -O")
            }
        }
        guard let name, name != "-" else { return [] }
        // What is discarded is not printed.
        if name == "/dev/null" { return ["--print", ""] }
        let path = outputFolder.map { name.hasBytePrefix("/") ? name : "\($0)/\(name)" } ?? name
        return ["--download=\(path)", "--force"]
    }

    private static func proxy(_ url: String, user: String?) throws(UsageError) -> String {
        guard let user else { return url }
        guard let slashes = url.firstScalarRange(of: "//"), !RequestURL.hasUserInfo(url) else {
            throw UsageError("the proxy's user is given twice")
        }
        let parts = user.splitScalars(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map { RequestURL.escaped(String($0)) }
        return url[..<slashes.upperBound] + parts.joined(separator: ":") + "@" + url[slashes.upperBound...]
    }
}
