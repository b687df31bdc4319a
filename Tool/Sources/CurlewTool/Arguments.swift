// SPDX-License-Identifier: Apache-2.0
import Curlew

/// A parsed command line of a request.
@dynamicMemberLookup struct Arguments {
    /// The source of a body that is not made of items.
    enum BodySource: Equatable {
        case file(String)
        case standardInput
        case text(String)
        case bytes(Data)
    }

    let options: SendOptions
    /// `nil` if not given.
    var method: String?
    var url = ""
    var items: [RequestItem] = []
    var body: BodySource?
    /// The word that names the body.
    private var bodyWord: String?
    /// What `--filter` selects.
    var path: JSONPath?
    /// What a command of curl asks for besides.
    var curl: CurlExtras?

    /// Inlined, so that no key path is made at run time.
    @inline(__always) subscript<Value>(dynamicMember path: KeyPath<SendOptions, Value>) -> Value { options[keyPath: path] }

    /// Parses a command line, without the program's name.
    ///
    /// - Parameter parts: more items of a body.
    init(_ words: [String], parts: [RequestItem] = []) throws(UsageError) {
        if let options = SendOptions(plain: words) {
            try self.init(options, parts: parts)
        } else {
            try self.init(try SendCommand.parsed(words).options, parts: parts)
        }
    }

    /// Makes the arguments of a command of curl.
    init(_ command: CurlCommand) throws(UsageError) {
        try self.init(command.words, parts: command.parts)
        curl = command.extras
        if let bytes = command.extras.body { body = .bytes(bytes) }
    }

    init(_ options: SendOptions, parts: [RequestItem] = []) throws(UsageError) {
        self.options = options
        guard !options.showsHelp, !options.showsVersion, options.completions == nil else { return }
        if let text = options.raw {
            body = .text(text)
        } else if let path = options.bodyFile {
            body = path == "-" ? .standardInput : .file(path)
        }
        try parsePositionals(options.words)
        items += parts
        if let text = options.filter { path = try JSONPath(text) }
        try checkValues()
        try checkCombinations()
    }

    /// The client's certificate and its key.
    var identity: ClientIdentity? {
        curl?.identity ?? options.cert.map { ClientIdentity(file: $0, keyFile: options.key, password: nil) }
    }

    var isForm: Bool { options.form }
    var decodes: Bool { !options.noDecode }

    // MARK: Method, URL, items

    private mutating func parsePositionals(_ words: [String]) throws(UsageError) {
        var rest = words[...]
        if let first = rest.first, let method = Self.method(first) {
            self.method = method
            rest = rest.dropFirst()
        }
        guard let url = rest.popFirst() else { throw UsageError("the URL is missing") }
        self.url = url
        for word in rest {
            // The whole body, as HTTPie has it.
            guard word == "-" || word.hasBytePrefix("@") && word.utf8.count > 1 else {
                items.append(try RequestItem(word))
                continue
            }
            guard body == nil else { throw UsageError("\(word.quoted) and another body can't be combined") }
            bodyWord = word
            body = word == "-" ? .standardInput : .file(String(word.dropFirstScalars()))
        }
    }

    /// Returns the method if the word is one: a common one in any case, or another in uppercase.
    static func method(_ word: String) -> String? {
        let usual = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"]
        if usual.contains(word.uppercased()) { return word.uppercased() }
        let isCapital = word.unicodeScalars.allSatisfy { ("A"..."Z").contains($0) || $0 == "-" || $0 == "_" }
        return isCapital && word.contains { $0.isLetter } ? word : nil
    }

    // MARK: Checks

    private func checkValues() throws(UsageError) {
        if let count = options.maxRedirects, !(0...10_000).contains(count) {
            throw UsageError("--max-redirects needs a number from 0 to 10000, not \"\(count)\"")
        }
        if let count = options.retry, count > 1000 { throw UsageError("--retry needs a number up to 1000") }
        for (name, value) in [("--token", options.token), ("--user", options.user), ("--download", options.download)] where value == "" {
            throw UsageError("the value of \(name) is empty")
        }
        if let parts = options.print, let odd = parts.unicodeScalars.first(where: { !"HBhbm".unicodeScalars.contains($0) }) {
            throw UsageError("--print knows the letters H, B, h, b and m, not \(String(odd).quoted)")
        }
        if let name = options.session, !name.isFileName || name.hasBytePrefix(".") {
            throw UsageError("a session's name can't be \(name.quoted)")
        }
        for entry in options.resolve where Self.resolved(entry) == nil {
            throw UsageError("--resolve needs HOST:PORT:ADDRESS, not \(entry.quoted)")
        }
        if options.http == .http3, !CurlInfo.current.supportsHTTP3 {
            throw UsageError("--http 3: libcurl \(CurlInfo.current.version) is built without HTTP/3")
        }
        for pin in options.pin where Self.hash(of: pin) == nil { throw UsageError("--pin needs sha256//BASE64, not \(pin.quoted)") }
    }

    /// The hash of a pin in curl's form.
    static func hash(of pin: String) -> Data? {
        guard pin.hasBytePrefix("sha256//"), let hash = Data(base64Encoded: String(pin.dropFirstScalars(8))), hash.count == 32 else {
            return nil
        }
        return hash
    }

    /// The name with its port, and the addresses, of an entry in curl's form.
    static func resolved(_ entry: String) -> (name: String, addresses: [String])? {
        // The host may be an IPv6 address in brackets.
        let hostEnd =
            entry.hasBytePrefix("[")
            ? entry.unicodeScalars.firstIndex(of: "]").map { entry.unicodeScalars.index(after: $0) }
            : entry.unicodeScalars.firstIndex(of: ":")
        guard let hostEnd, hostEnd > entry.startIndex, hostEnd < entry.endIndex, entry[hostEnd] == ":" else { return nil }
        let rest = entry.suffix(afterScalarAt: hostEnd)
        guard let colon = rest.unicodeScalars.firstIndex(of: ":"), UInt16(rest[..<colon]) ?? 0 > 0 else { return nil }
        let addresses = rest.suffix(afterScalarAt: colon).splitScalars(separator: ",", omittingEmptySubsequences: false).map { address in
            address.hasBytePrefix("[") && address.hasByteSuffix("]")
                ? String(address.dropFirstScalars().dropLastScalars()) : String(address)
        }
        guard addresses.allSatisfy({ !$0.isEmpty }) else { return nil }
        return ("\(entry[..<hostEnd]):\(rest[..<colon])", addresses)
    }

    private func checkCombinations() throws(UsageError) {
        let forms = [("--json", options.json), ("--form", options.form), ("--multipart", options.multipart)].filter(\.1).map(\.0)
        if forms.count > 1 { throw UsageError("\(forms[0]) and \(forms[1]) can't be combined") }
        if options.raw != nil, options.bodyFile != nil { throw UsageError("--raw and --body can't be combined") }
        if body != nil {
            let name = bodyWord?.quoted ?? (options.raw != nil ? "--raw" : "--body")
            if items.contains(where: \.isField) { throw UsageError("\(name) and body fields can't be combined") }
            if let form = forms.last, form != "--json" { throw UsageError("\(name) and \(form) can't be combined") }
        }
        if options.form || options.multipart {
            if options.form, let item = items.first(where: \.isJSON) {
                throw UsageError("\(item.name.quoted) is JSON, which \(forms[0]) can't send; use name=value")
            }
            if options.form, let item = items.first(where: \.isFile) {
                throw UsageError("\(item.name.quoted) is a file, which --form can't send; use --multipart")
            }
        } else if let item = items.first(where: \.isFile) {
            throw UsageError("\(item.name.quoted) is a file, which only --multipart can send; \(item.name)=@FILE sends its text")
        }
        if options.ipv4, options.ipv6 { throw UsageError("--ipv4 and --ipv6 can't be combined") }
        if options.token != nil, options.user != nil { throw UsageError("--token and --user can't be combined") }
        if options.replacesFile, options.download == nil { throw UsageError("--force requires --download") }
        if options.resumesDownload, options.download == nil { throw UsageError("--continue requires --download") }
        if options.filter != nil, options.download != nil { throw UsageError("--filter and --download can't be combined") }
        if options.download == "-" { throw UsageError("--download needs a file; without it the body goes to standard output") }
        if options.key != nil, options.cert == nil { throw UsageError("--key requires --cert") }
        if options.record != nil, options.replay != nil { throw UsageError("--record and --replay can't be combined") }
        if options.diff, options.replay == nil { throw UsageError("--diff requires --replay") }
        if options.diff, options.download != nil { throw UsageError("--diff and --download can't be combined") }
        if options.download != nil, options.multipart { throw UsageError("--download and --multipart can't be combined") }
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
