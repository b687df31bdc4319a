// SPDX-License-Identifier: Apache-2.0
import Curlew

/// What is to be downloaded: lists of URLs with names and digests, and files of digests.
enum DownloadList {
    /// A file.
    struct Entry: Equatable {
        /// Where it is; all but the first are mirrors.
        var urls: [String]
        /// `nil` for that of the URL.
        var name: String?
        var sha256: Data?
        /// What an error says of its place, such as "line 3 of list".
        var place: String?
    }

    private static let largest = 64 << 20

    /// Reads a list: a file a line with its mirrors, which lines of options may follow, as aria2 has them (` out=NAME`,
    /// ` checksum=sha-256=HEX`), or a Metalink (RFC 5854).
    static func entries(of path: String) throws(UsageError) -> [Entry] {
        let text = try text(of: path)
        if text.trimmingScalars(while: { $0.properties.isWhitespace || $0 == "\u{FEFF}" }).hasBytePrefix("<") {
            return try Metalink(text, path: path).entries
        }
        var entries: [Entry] = []
        for (number, line) in text.splitScalars(omittingEmptySubsequences: false, whereSeparator: { $0 == "\n" }).enumerated() {
            let rest = line.trimmingScalars { $0 == " " || $0 == "\t" || $0 == "\r" }
            guard !rest.isEmpty, !line.hasBytePrefix("#") else { continue }
            let place = "line \(number + 1) of \(path.quoted)"
            if line.hasBytePrefix(" ") || line.hasBytePrefix("\t") {
                guard var entry = entries.popLast() else { throw UsageError("\(place) has an option, and there is no URL before it") }
                try readOption(rest, &entry, place)
                entries.append(entry)
            } else {
                entries.append(Entry(urls: rest.splitScalars { $0 == " " || $0 == "\t" }.map(String.init), place: place))
            }
        }
        return entries
    }

    private static func readOption(_ text: Substring, _ entry: inout Entry, _ place: String) throws(UsageError) {
        if text.hasBytePrefix("out=") {
            let name = String(text.dropFirstScalars(4))
            try check(name, place)
            entry.name = name
        } else if text.hasBytePrefix("checksum=") {
            guard text.hasBytePrefix("checksum=sha-256="), let digest = digest(text.dropFirstScalars(17)) else {
                throw UsageError("\(place) needs checksum=sha-256= with 64 hexadecimal digits")
            }
            entry.sha256 = digest
        } else {
            throw UsageError("\(place) has an option that is neither out= nor checksum=")
        }
    }

    /// Whether a name leads to a place within the folder of the downloads: a list may be that of a server.
    static func check(_ name: String, _ place: String) throws(UsageError) {
        let parts = name.splitScalars(separator: "/", omittingEmptySubsequences: false)
        guard parts.allSatisfy({ String($0).isFileName && !$0.hasBytePrefix(".") }), !name.unicodeScalars.contains(where: \.isControlInText)
        else {
            throw UsageError("\(place) has the file name \(name.quoted), which leads elsewhere or is hidden")
        }
    }

    /// Reads 64 hexadecimal digits.
    static func digest(_ text: some StringProtocol) -> Data? {
        let digits = Array(text.utf8)
        guard digits.count == 64 else { return nil }
        let bytes = stride(from: 0, to: 64, by: 2).compactMap { UInt8(String(decoding: digits[$0..<($0 + 2)], as: UTF8.self), radix: 16) }
        return bytes.count == 32 ? Data(bytes) : nil
    }

    /// Reads a file of `sha256sum`: digests by name. Its lines may have names in backslashes, `SHA256 (name) = HEX` of BSD, or one digest
    /// only, which is that of every file.
    static func digests(of path: String) throws(UsageError) -> [String: Data] {
        var digests: [String: Data] = [:]
        for (number, line) in try text(of: path).splitScalars(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let rest = line.trimmingScalars { $0 == " " || $0 == "\t" || $0 == "\r" }
            guard !rest.isEmpty, !rest.hasBytePrefix("#") else { continue }
            var found: (name: String, digest: Data)?
            if rest.hasBytePrefix("SHA256 ("), let end = rest.firstScalarRange(of: ") = ") {
                let name = rest[..<end.lowerBound].dropFirstScalars(8)
                found = digest(rest[end.upperBound...]).map { (String(name), $0) }
            } else {
                let isEscaped = rest.hasBytePrefix("\\")
                let plain = isEscaped ? rest.dropFirstScalars() : rest
                let digits = plain.prefixScalars { $0 != " " && $0 != "\t" }
                let name = plain[digits.endIndex...].dropScalars { $0 == " " || $0 == "\t" }
                let shown = name.hasBytePrefix("*") ? name.dropFirstScalars() : name
                found = digest(digits).map { (isEscaped ? unescaped(shown) : String(shown), $0) }
            }
            guard let found else { throw UsageError("line \(number + 1) of \(path.quoted) has no SHA-256 digest and name") }
            let name = found.name.hasBytePrefix("./") ? String(found.name.dropFirstScalars(2)) : found.name
            guard digests.updateValue(found.digest, forKey: name) ?? found.digest == found.digest else {
                throw UsageError("line \(number + 1) of \(path.quoted) has another digest of \(name.quoted) than an earlier one")
            }
        }
        return digests
    }

    /// A name of `sha256sum` without its escapes: `\n`, `\r` and `\\`.
    private static func unescaped(_ text: some StringProtocol) -> String {
        var result = String.UnicodeScalarView()
        var rest = Substring(text).unicodeScalars
        while let scalar = rest.popFirst() {
            guard scalar == "\\", let next = rest.popFirst() else {
                result.append(scalar)
                continue
            }
            result.append(next == "n" ? "\n" : next == "r" ? "\r" : next)
        }
        return String(result)
    }

    private static func text(of path: String) throws(UsageError) -> String {
        guard let data = InputFile.contents(path) else { throw UsageError("\(path.quoted) can't be read") }
        guard data.count <= largest else { throw UsageError("\(path.quoted) has more than \(largest >> 20) MiB") }
        guard let text = String(data: data, encoding: .utf8) else { throw UsageError("\(path.quoted) is not text in UTF-8") }
        return text
    }
}

/// The files of a Metalink (RFC 5854). Other elements than `file`, `hash` of SHA-256 and `url` are skipped.
private struct Metalink {
    private(set) var entries: [DownloadList.Entry] = []
    private let path: String

    init(_ text: String, path: String) throws(UsageError) {
        self.path = path
        var rest = text[...]
        var stack: [String] = []
        var current: (entry: DownloadList.Entry, urls: [(priority: Int, url: String)])?
        var attributes: [String: String] = [:]
        var content = ""
        while let open = rest.firstScalarRange(of: "<") {
            content += try plain(rest[..<open.lowerBound])
            rest = rest[open.upperBound...]
            if rest.hasBytePrefix("!--") {
                rest = try skipped(rest, "-->")
                continue
            }
            if rest.hasBytePrefix("?") {
                rest = try skipped(rest, "?>")
                continue
            }
            if rest.hasBytePrefix("![CDATA[") {
                guard let end = rest.firstScalarRange(of: "]]>") else { throw damage("a section has no end") }
                content += rest[..<end.lowerBound].dropFirstScalars(8)
                rest = rest[end.upperBound...]
                continue
            }
            guard !rest.hasBytePrefix("!") else { throw damage("declarations of types are not supported") }
            let tag = try Self.tag(&rest, of: self)
            let name = tag.name.splitScalars(separator: ":").last.map(String.init) ?? ""
            if tag.isEnd {
                guard stack.popLast() == name else { throw damage("</\(name)> does not close what is open") }
                let text = content.trimmingCharacters(in: .whitespacesAndNewlines)
                switch (name, stack) {
                case ("file", ["metalink"]):
                    if var found = current {
                        found.entry.urls = found.urls.enumerated().sorted {
                            ($0.element.priority, $0.offset) < ($1.element.priority, $1.offset)
                        }
                        .map(\.element.url)
                        guard !found.entry.urls.isEmpty else {
                            throw damage("\((found.entry.name ?? "").quoted) has no URL of http or https")
                        }
                        entries.append(found.entry)
                    }
                    current = nil
                case ("hash", ["metalink", "file"]) where attributes["type"]?.lowercased() == "sha-256":
                    guard let digest = DownloadList.digest(text) else { throw damage("a hash is no SHA-256 digest") }
                    current?.entry.sha256 = digest
                case ("url", ["metalink", "file"]):
                    // Others, such as those of FTP, are left to programs that know them.
                    let isHTTP = ["http://", "https://"].contains { text.lowercased().hasBytePrefix($0) }
                    if isHTTP { current?.urls.append((Int(attributes["priority"] ?? "") ?? 999_999, text)) }
                default: break
                }
                content = ""
            } else {
                guard stack.count < 32, !stack.isEmpty || name == "metalink" else { throw damage("<\(name)> is no element of a Metalink") }
                if name == "file", stack == ["metalink"] {
                    let fileName = tag.attributes["name"] ?? ""
                    let place = "the Metalink \(path.quoted)"
                    try DownloadList.check(fileName, place)
                    current = (DownloadList.Entry(urls: [], name: fileName, place: place), [])
                }
                if !tag.isEmpty { stack.append(name) }
                attributes = tag.attributes
                content = ""
            }
        }
        guard stack.isEmpty, !entries.isEmpty else {
            throw damage(stack.isEmpty ? "it has no file" : "<\(stack[stack.count - 1])> has no end")
        }
    }

    private func damage(_ reason: String) -> UsageError { UsageError("the Metalink \(path.quoted) can't be read: \(reason)") }

    private func skipped(_ text: Substring, _ end: String) throws(UsageError) -> Substring {
        guard let range = text.firstScalarRange(of: end) else { throw damage("a comment has no end") }
        return text[range.upperBound...]
    }

    private struct Tag {
        var name = ""
        var attributes: [String: String] = [:]
        var isEnd = false
        var isEmpty = false
    }

    /// Reads what follows a `<`.
    private static func tag(_ rest: inout Substring, of link: Metalink) throws(UsageError) -> Tag {
        func isSpace(_ scalar: Unicode.Scalar) -> Bool { " \t\r\n".unicodeScalars.contains(scalar) }
        var tag = Tag()
        if rest.hasBytePrefix("/") {
            tag.isEnd = true
            rest = rest.dropFirstScalars()
        }
        let name = rest.prefixScalars { !isSpace($0) && $0 != ">" && $0 != "/" }
        tag.name = String(name)
        rest = rest[name.endIndex...].dropScalars(while: isSpace)
        while let first = rest.unicodeScalars.first, first != ">", first != "/" {
            let key = rest.prefixScalars { $0 != "=" && !isSpace($0) && $0 != ">" }
            rest = rest[key.endIndex...].dropScalars(while: isSpace)
            guard rest.hasBytePrefix("=") else { throw link.damage("an attribute has no value") }
            rest = rest.dropFirstScalars().dropScalars(while: isSpace)
            guard let quote = rest.unicodeScalars.first, quote == "\"" || quote == "'" else {
                throw link.damage("an attribute has no quotes")
            }
            let value = rest.dropFirstScalars().prefixScalars { $0 != quote }
            guard value.endIndex < rest.endIndex else { throw link.damage("an attribute has no end") }
            tag.attributes[String(key)] = try link.plain(value)
            rest = rest.suffix(afterScalarAt: value.endIndex).dropScalars(while: isSpace)
        }
        if rest.hasBytePrefix("/") {
            tag.isEmpty = true
            rest = rest.dropFirstScalars()
        }
        guard rest.hasBytePrefix(">") else { throw link.damage("a tag has no end") }
        rest = rest.dropFirstScalars()
        return tag
    }

    /// The text without its references to characters.
    private func plain(_ text: Substring) throws(UsageError) -> String {
        var (result, rest) = ("", text)
        while let mark = rest.firstScalarRange(of: "&") {
            result += rest[..<mark.lowerBound]
            let name = rest[mark.upperBound...].prefixScalars { $0 != ";" }
            guard name.endIndex < rest.endIndex, name.utf8.count < 12 else { throw damage("a reference to a character has no end") }
            guard let character = CharacterReference.character(name) else { throw damage("&\(name); is not known") }
            result += character
            rest = rest.suffix(afterScalarAt: name.endIndex)
        }
        return result + rest
    }
}
