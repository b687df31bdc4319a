// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The options of one operation of a command of curl: those before, between or behind `--next`.
struct CurlOperation {
    /// Data of the body, in the order given.
    struct Piece {
        let bytes: Data
        /// Whether an `&` parts it from the one before.
        let isParted: Bool
    }

    /// Where the response of a URL goes.
    enum Target {
        case path(String)
        case remoteName
    }

    private var urls: [String] = []
    /// `nil` for a URL whose target is not known yet.
    private var targets: [Target?] = []
    private var uploads: [String] = []
    private var queries: [String] = []
    private var method: String?
    private var note: String?
    private var items: [String] = []
    private var cookies: [String] = []
    private var options: [String] = []
    private var data: [Piece] = []
    /// A file that is all of the data, and is not read before it is sent.
    private var dataFile: String?
    private var parts: [RequestItem] = []
    private var isJSON = false
    private(set) var proxy: String?
    private(set) var flags: Set<String> = []
    /// The last value of options that are looked up when all are known.
    private(set) var values: [String: String] = [:]
    private(set) var places: [String] = []
    private(set) var extras = CurlExtras()

    static func invalid(_ name: String, _ value: String) -> UsageError {
        UsageError("curl's option \(name) can't have the value \(value.quoted)")
    }

    mutating func add(url: String) { urls.append(url) }

    /// Sets or resets a flag.
    mutating func set(_ option: CurlOption, _ name: String, isOn: Bool) {
        switch option {
        case .flag(let word): if isOn { options.append(word) } else { options.removeAll { $0 == word } }
        case .remoteName: if isOn { add(target: .remoteName) }
        case .state: if isOn { flags.insert(name) } else { flags.remove(name) }
        default: break
        }
    }

    mutating func read(_ option: CurlOption, _ value: String, _ name: String) throws(UsageError) {
        switch option {
        case .header: try readHeader(value)
        case .data(let isRaw): try readData(value, isRaw: isRaw, name)
        case .encodedData: data.append(Piece(bytes: Data(try Self.encoded(value).utf8), isParted: true))
        case .json:
            isJSON = true
            try readData(value, isRaw: true, name)
        case .form(let isString): parts.append(try CurlForm.part(value, isString: isString))
        case .field(let name):
            if name == "Referer", value.containsScalars(of: ";auto") {
                throw UsageError("curl's option --referer is not supported with ;auto")
            }
            // Without a value, the field is not sent.
            items.append(
                "\(name):" + (value.isEmpty ? "" : name == "Range" ? " bytes=\(value.isAllDigits ? "\(value)-" : value)" : " \(value)"))
        case .cookie: readCookie(value)
        case .upload: uploads.append(value)
        case .output: add(target: .path(value))
        case .outputFolder: extras.output.folder = value
        case .value("--pin"): options += value.splitScalars(separator: ";").map { "--pin=\($0)" }
        case .value(let option): options += Self.option(option, value)
        case .onlyValue(let only):
            guard value.uppercased() == only.uppercased() else { throw UsageError("curl's option \(name) is supported with \(only) only") }
        case .method: try readMethod(value)
        case .proxy(let scheme): proxy = value.isEmpty || value.contains("://") ? value : "\(scheme)://\(value)"
        case .text, .file, .item: try readText(value, name)
        default: break
        }
    }

    private mutating func readText(_ value: String, _ name: String) throws(UsageError) {
        switch name {
        case "--url": try readURL(value)
        case "--url-query": queries.append(value.hasBytePrefix("+") ? String(value.dropFirstScalars()) : try Self.encoded(value))
        case "--time-cond":
            guard let condition = CurlTimeCondition(value) else {
                note = "\(value.quoted) is neither a date nor a file: curl's option --time-cond is ignored"
                return
            }
            extras.condition = condition
            items.append(condition.field)
        case "--etag-compare":
            let tag = InputFile.contents(value).map { String(decoding: $0, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines) }
            items.append("If-None-Match: \(tag.flatMap { $0.isEmpty ? nil : $0 } ?? "\"\"")")
        case "--write-out": extras.writeOut = try CurlWriteOut(value)
        case "--connect-to": places.append(value)
        default: values[name] = value
        }
    }

    /// A URL, or a file with one a line.
    private mutating func readURL(_ value: String) throws(UsageError) {
        guard value.hasBytePrefix("@") else { return urls.append(value) }
        let lines = try Self.text(of: String(value.dropFirstScalars())).splitScalars { $0 == "\n" || $0 == "\r" }
        let found = lines.map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty && !$0.hasBytePrefix("#") }
        for url in found {
            targets += Array(repeating: nil, count: max(urls.count - targets.count, 0))
            if targets.count == urls.count { targets.append(.remoteName) }
            urls.append(url)
        }
    }

    /// Adds the target of the first URL that has none.
    private mutating func add(target: Target) {
        if let index = targets.firstIndex(where: { $0 == nil }) { targets[index] = target } else { targets.append(target) }
    }

    private mutating func readMethod(_ value: String) throws(UsageError) {
        guard Arguments.method(value) == value.uppercased() else {
            throw UsageError("curl's option --request is supported with methods in uppercase only")
        }
        method = value.uppercased()
        if method != value { note = "curl sends the method \(value.quoted) as it is written; \(value.uppercased()) is sent" }
    }

    private mutating func readCookie(_ value: String) {
        guard !value.unicodeScalars.contains("=") else { return cookies.append(value) }
        extras.keepsCookies = true
        if !value.isEmpty { extras.cookieFiles.append(value) }
    }

    // MARK: Fields and data

    private mutating func readHeader(_ value: String) throws(UsageError) {
        guard value.hasBytePrefix("@") else { return items.append(try Self.item(header: value)) }
        for line in try Self.text(of: String(value.dropFirstScalars())).splitScalars(separator: "\n") {
            let field = line.trimmingScalars { $0 == "\r" }
            if !field.isEmpty { items.append(try Self.item(header: String(field))) }
        }
    }

    /// An option of ours with its value, which stands by itself if it is empty.
    private static func option(_ name: String, _ value: String) -> [String] {
        value.isEmpty ? [name, value] : ["\(name)=\(value)"]
    }

    private static func item(header: String) throws(UsageError) -> String {
        if header.hasByteSuffix(";"), !header.unicodeScalars.contains(":") { return header }
        guard let colon = header.unicodeScalars.firstIndex(of: ":") else {
            // It may be the value of a secret field.
            throw UsageError("the value of curl's option --header is no header field: it has no colon")
        }
        let value = header.suffix(afterScalarAt: colon).trimmingCharacters(in: .whitespaces)
        // The space parts the value from the colon: `:@` and `:=` are other separators.
        return "\(header[..<colon]):" + (value.isEmpty ? "" : " \(value)")
    }

    private mutating func readData(_ value: String, isRaw: Bool, _ name: String) throws(UsageError) {
        let isParted = name != "--json"
        guard value.hasBytePrefix("@"), name != "--data-raw" else {
            try readDataFile()
            return data.append(Piece(bytes: Data(value.utf8), isParted: isParted))
        }
        let path = String(value.dropFirstScalars())
        if isRaw, path != "-", data.isEmpty, dataFile == nil, !InputFile.isStream(path) {
            dataFile = path
        } else {
            try readDataFile()
            let bytes = try Self.contents(path)
            data.append(Piece(bytes: isRaw ? bytes : bytes.filter { $0 != 0 && $0 != 0x0A && $0 != 0x0D }, isParted: isParted))
        }
    }

    /// Reads the file that is no longer all of the data.
    private mutating func readDataFile() throws(UsageError) {
        guard let path = dataFile else { return }
        dataFile = nil
        data.append(Piece(bytes: try Self.contents(path), isParted: true))
    }

    private static func contents(_ path: String) throws(UsageError) -> Data {
        guard let data = InputFile.contents(path) else { throw UsageError("\(path.quoted) can't be read") }
        return data
    }

    private static func text(of path: String) throws(UsageError) -> String {
        guard let text = String(data: try contents(path), encoding: .utf8) else { throw UsageError("\(path.quoted) is not text in UTF-8") }
        return text
    }

    /// `content`, `=content`, `name=content`, `@file` or `name@file`.
    private static func encoded(_ value: String) throws(UsageError) -> String {
        guard let place = value.unicodeScalars.firstIndex(where: { $0 == "=" || $0 == "@" }) else { return escaped(Data(value.utf8)) }
        let rest = String(value.suffix(afterScalarAt: place))
        let bytes = value.unicodeScalars[place] == "@" ? try contents(rest) : Data(rest.utf8)
        return (place == value.startIndex ? "" : value[..<place] + "=") + escaped(bytes)
    }

    /// Percent-encoded, with spaces as in forms.
    private static func escaped(_ bytes: Data) -> String {
        RequestURL.escaped(bytes).replacingScalars("%20", with: "+")
    }

    /// All pieces, joined.
    private var joined: Data? {
        guard !data.isEmpty else { return nil }
        var joined = Data()
        for (number, piece) in data.enumerated() {
            if number > 0, piece.isParted { joined.append(UInt8(ascii: "&")) }
            joined += piece.bytes
        }
        return joined
    }

    // MARK: The commands

    /// Returns the transfers of all URLs.
    ///
    /// - Parameter count: how many there are before.
    func commands(after count: Int) throws(UsageError) -> [CurlCommand] {
        var operation = self
        // The data of --get are part of the URL.
        if flags.contains("--get") { try operation.readDataFile() }
        let (extras, words) = try operation.checked()
        var commands: [CurlCommand] = []
        for (index, url) in operation.urls.enumerated() {
            var command = try operation.command(url, index: index, words, extras)
            command.extras.number = count + index
            commands.append(command)
        }
        return commands
    }

    private func command(_ url: String, index: Int, _ checked: [String], _ extras: CurlExtras) throws(UsageError) -> CurlCommand {
        let isQuery = flags.contains("--get")
        let upload = index < uploads.count ? uploads[index] : nil
        let body = joined
        let hasData = body != nil || dataFile != nil
        if hasData, !parts.isEmpty { throw UsageError("curl's options --data and --form can't be combined") }
        if hasData || !parts.isEmpty, upload != nil {
            throw UsageError("curl's options --upload-file and --data or --form can't be combined")
        }
        if flags.contains("--head"), hasData && !isQuery || !parts.isEmpty {
            throw UsageError("curl's options --head and --data or --form can't be combined")
        }
        let target = try target(url, upload: upload, query: isQuery ? body : nil)
        var words = options + checked
        if !flags.contains("--compressed") { words.append("--no-decode") }
        if let proxy { words.append("--proxy=\(try Self.proxy(proxy, user: values["--proxy-user"]))") }
        if let path = upload ?? dataFile { words.append("--body=\(path == "." ? "-" : path)") }
        if !parts.isEmpty { words.append("--multipart") }
        let limit = values["--max-redirs"] ?? "50"
        let follows = flags.contains("--location") || flags.contains("--location-trusted")
        words += ["--max-redirects=\(follows ? limit == "-1" ? "10000" : limit : "0")", "--ignore-stdin"]
        let hasBody = hasData && !isQuery || !parts.isEmpty
        let method = method ?? (flags.contains("--head") ? "HEAD" : upload != nil ? "PUT" : hasBody ? "POST" : "GET")
        var command = CurlCommand(words: words + [method, target] + items + defaultFields(hasBody: hasBody, upload), parts: parts)
        command.note = note
        command.extras = extras
        command.extras.appendsHeads = index > 0
        if !isQuery { command.extras.body = body }
        command.extras.output = try output(extras.output, index, target)
        if command.extras.output.offset != 0, upload != nil {
            throw UsageError("curl's option --continue-at is not supported with --upload-file")
        }
        return command
    }

    private func defaultFields(hasBody: Bool, _ upload: String?) -> [String] {
        func hasField(_ name: String) -> Bool {
            items.contains { $0.lowercased().hasBytePrefix(name + ":") || $0.lowercased() == name + ";" }
        }
        var fields = cookies.isEmpty ? [] : ["Cookie: \(cookies.joined(separator: "; "))"]
        if hasBody && parts.isEmpty || upload != nil, !hasField("content-type") {
            // An upload has no type, and ours would guess one.
            fields.append("Content-Type:" + (upload != nil ? "" : isJSON ? " application/json" : " application/x-www-form-urlencoded"))
        }
        if isJSON, !hasField("accept") { fields.append("Accept: application/json") }
        return fields
    }

    private func target(_ url: String, upload: String?, query: Data?) throws(UsageError) -> String {
        let scheme = values["--proto-default"]?.lowercased() ?? "http"
        guard scheme == "http" || scheme == "https" else {
            throw UsageError("curl's option --proto-default is supported with http and https only")
        }
        var target = url.containsScalars(of: "://") ? url : "\(scheme)://\(url)"
        for name in ["--proto", "--proto-redir"] {
            guard let value = values[name] else { continue }
            let names = value.splitScalars(separator: ",").map { $0.dropScalars { $0 == "=" } }
            guard !names.isEmpty, names.allSatisfy({ $0 == "http" || $0 == "https" }) else {
                throw UsageError("curl's option \(name) is supported with =http and =https only")
            }
            if name == "--proto", !names.contains("http"), !target.lowercased().hasBytePrefix("https://") {
                throw UsageError("--proto allows https only")
            }
            // From https, no redirect to http is followed anyway.
            if name == "--proto-redir", names.count == 1, !target.lowercased().hasBytePrefix("\(names[0])://") {
                throw UsageError("curl's option --proto-redir is supported with one scheme only if that is the URL's")
            }
        }
        if flags.contains("--disallow-username-in-url"), RequestURL.hasUserInfo(target) {
            throw UsageError("the URL has a user's name, which --disallow-username-in-url forbids")
        }
        let place = RequestURL.endOfAuthority(target)
        if !flags.contains("--globoff"), target[place...].unicodeScalars.contains(where: { "{}[]".unicodeScalars.contains($0) }) {
            throw UsageError("curl's patterns of URLs are not supported; -g takes {} and [] as they are")
        }
        if let upload, upload != "-", upload != ".", target.hasByteSuffix("/") {
            target += RequestURL.escaped(upload.splitScalars(separator: "/").last.map(String.init) ?? "")
        }
        if !flags.contains("--path-as-is") { target = RequestURL.withoutDotSegments(target) }
        let added = queries + (query.map { [String(decoding: $0, as: UTF8.self)] } ?? [])
        return added.isEmpty ? target : RequestURL.adding(added, to: target)
    }

    private func output(_ common: CurlExtras.Output, _ index: Int, _ target: String) throws(UsageError) -> CurlExtras.Output {
        var output = common
        var place = index < targets.count ? targets[index] : nil
        if place == nil, flags.contains("--remote-name-all") { place = .remoteName }
        switch place {
        case .path(let name): if name != "-" { output.path = output.resolved(name) }
        case .remoteName:
            let name = target.prefixScalars { $0 != "?" && $0 != "#" }.splitScalars(separator: "/", omittingEmptySubsequences: false).last
            guard let name, String(name).isFileName, target.splitScalars(separator: "/").count > 2 else {
                throw UsageError("the URL has no file name for -O")
            }
            output.path = output.resolved(String(name))
            output.takesSuggestedName = flags.contains("--remote-header-name")
            // A name that a server chooses replaces nothing, unless the user asks for it.
            if output.takesSuggestedName, !flags.contains("--clobber") { output.replacesFile = false }
            if output.takesSuggestedName, output.offset != 0 {
                throw UsageError("curl's options --continue-at and --remote-header-name can't be combined")
            }
        case nil: break
        }
        if output.offset == -1, output.path == nil { throw UsageError("curl's option --continue-at - needs a file") }
        return output
    }

    static func proxy(_ url: String, user: String?) throws(UsageError) -> String {
        if url.isEmpty { return "none" }
        guard let user else { return url }
        let url = url.containsScalars(of: "://") ? url : "http://\(url)"
        guard let slashes = url.firstScalarRange(of: "//"), !RequestURL.hasUserInfo(url) else {
            throw UsageError("the proxy's user is given twice")
        }
        let parts = user.splitScalars(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map { RequestURL.escaped(String($0)) }
        return url[..<slashes.upperBound] + parts.joined(separator: ":") + "@" + url[slashes.upperBound...]
    }
}
