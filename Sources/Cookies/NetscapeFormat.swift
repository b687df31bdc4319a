// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The format of `cookies.txt`, which curl, wget and others read and write: seven fields a line, separated by tabs.
///
/// What the format has no field for is in a comment on the line before, which other programs skip: when the cookie was set and last sent,
/// `SameSite`, and whether tabs and percent signs of its fields are escaped. Parses untrusted input, and is fuzzed (`FuzzTests`,
/// `cookie-file`).
package enum NetscapeFormat {
    static let header = "# Netscape HTTP Cookie File"
    private static let headers = [header, "# HTTP Cookie File"]
    private static let httpOnly = "#HttpOnly_"
    private static let mark = "#Curlew_"
    /// The end of the year 9999, beyond which no date is kept.
    private static let lastSecond = 253_402_300_799.0

    /// What was read from a file.
    package struct Contents: Sendable {
        package var cookies: [Cookie] = []
        /// The lines that are no cookie and no comment of ours, with their numbers.
        package var unread: [(number: Int, line: ArraySlice<UInt8>)] = []
        /// The first of them that is not a comment or empty.
        package var firstProblem: Int?
        package var hasHeader = false
    }

    // MARK: Reading

    package static func read(_ bytes: [UInt8], now: Date) -> Contents {
        var contents = Contents()
        var extra: Extra?
        var extraLine: ArraySlice<UInt8>?
        Lines.forEach(in: bytes) { line, number in
            if let text = String(validating: line, as: UTF8.self) {
                if headers.contains(where: { text.utf8.starts(with: $0.utf8) }) {
                    contents.hasHeader = true
                    (extra, extraLine) = (nil, nil)
                    return
                }
                if text.utf8.starts(with: mark.utf8) {
                    (extra, extraLine) = (Extra(text), line)
                    return
                }
                if let cookie = cookie(text, extra, number: number, now: now) {
                    contents.cookies.append(cookie)
                    (extra, extraLine) = (nil, nil)
                    return
                }
            }
            let before = extraLine
            (extra, extraLine) = (nil, nil)
            let isComment = line.isEmpty || line.first == UInt8(ascii: "#") && !line.starts(with: httpOnly.utf8)
            if !isComment, contents.firstProblem == nil { contents.firstProblem = number }
            guard !line.isEmpty else { return }
            // What is said of a line decides how it reads.
            if let before { contents.unread.append((number - 1, before)) }
            contents.unread.append((number, line))
        }
        return contents
    }

    private static func cookie(_ text: String, _ extra: Extra?, number: Int, now: Date) -> Cookie? {
        let isHTTPOnly = text.utf8.starts(with: httpOnly.utf8)
        let line = isHTTPOnly ? Substring(text.utf8.dropFirst(httpOnly.utf8.count)) : text[...]
        guard line.utf8.first != UInt8(ascii: "#") else { return nil }
        var fields = line.utf8.split(separator: 0x09, maxSplits: 6, omittingEmptySubsequences: false).map { String(Substring($0)) }
        if fields.count == 6 { fields.append("") }
        guard fields.count == 7, let isDomain = flag(fields[1]), let isSecure = flag(fields[3]), let seconds = seconds(fields[4]) else {
            return nil
        }
        let isEscaped = extra?.isEscaped ?? false
        let domain = fields[0].utf8.first == UInt8(ascii: ".") ? String(Substring(fields[0].utf8.dropFirst())) : fields[0]
        var cookie = Cookie(
            name: isEscaped ? unescaped(fields[5]) : fields[5], value: isEscaped ? unescaped(fields[6]) : fields[6], domain: domain,
            isHostOnly: !isDomain, path: isEscaped ? unescaped(fields[2]) : fields[2], isSecure: isSecure, isHTTPOnly: isHTTPOnly,
            sameSite: extra?.sameSite, expirationDate: seconds == 0 ? nil : Date(timeIntervalSince1970: seconds))
        // Without a creation date, the order of the lines is taken for that of creation.
        cookie.creationDate = extra?.created ?? now.addingTimeInterval(Double(number) / 1e6 - 10)
        cookie.lastAccessDate = extra?.used ?? cookie.creationDate
        return cookie.defect == nil ? cookie : nil
    }

    private static func flag(_ text: String) -> Bool? {
        switch text.uppercased() {
        case "TRUE": true
        case "FALSE": false
        default: nil
        }
    }

    /// Seconds since 1970, which some programs write with a fraction.
    private static func seconds(_ text: String) -> Double? {
        guard !text.isEmpty, text.utf8.allSatisfy({ $0.isASCIIDigit || $0 == UInt8(ascii: ".") }) else { return nil }
        return Double(text).map { min($0.rounded(.up), lastSecond) }
    }

    /// What is in the comment before a cookie.
    private struct Extra {
        var created: Date?
        var used: Date?
        var sameSite: Cookie.SameSite?
        var isEscaped = false

        /// Four fields after the mark: two times in microseconds since 1970, `SameSite` or a hyphen, and `escaped` or a hyphen.
        init?(_ text: String) {
            let fields = text.dropFirstScalars(mark.count).splitScalars(separator: "\t", omittingEmptySubsequences: false)
            guard fields.count == 4 else { return nil }
            created = Self.date(fields[0])
            used = Self.date(fields[1])
            sameSite = Cookie.SameSite(rawValue: String(fields[2]))
            isEscaped = fields[3] == "escaped"
        }

        init(_ cookie: Cookie) {
            created = cookie.creationDate
            used = cookie.lastAccessDate
            sameSite = cookie.sameSite
            isEscaped = [cookie.name, cookie.path].contains { $0.utf8.contains(0x09) }
        }

        var text: String {
            let times = [created, used].map { $0.map { "\(CookieTable.microseconds($0))" } ?? "-" }
            return "\(mark)\(times[0])\t\(times[1])\t\(sameSite?.rawValue ?? "-")\t\(isEscaped ? "escaped" : "-")"
        }

        private static func date(_ text: Substring) -> Date? {
            guard let count = Int64(text), abs(count) <= 4_000_000_000_000_000 else { return nil }
            return Date(timeIntervalSince1970: Double(count) / 1e6)
        }
    }

    // MARK: Writing

    /// The lines of cookies, in the order of their creation, after the header.
    static func lines(of cookies: [Cookie]) -> [String] {
        let sorted = cookies.sorted { ($0.creationDate, $0.domain, $0.name) < ($1.creationDate, $1.domain, $1.name) }
        return [header] + sorted.flatMap { [Extra($0).text, line(of: $0)] }
    }

    private static func line(of cookie: Cookie) -> String {
        let isEscaped = Extra(cookie).isEscaped
        let seconds = cookie.expirationDate.map { max(1, min($0.timeIntervalSince1970.rounded(.up), lastSecond)) } ?? 0
        let fields = [
            (cookie.isHTTPOnly ? httpOnly : "") + (cookie.isHostOnly ? "" : ".") + cookie.domain, cookie.isHostOnly ? "FALSE" : "TRUE",
            isEscaped ? escaped(cookie.path) : cookie.path, cookie.isSecure ? "TRUE" : "FALSE", "\(Int64(seconds))",
            isEscaped ? escaped(cookie.name) : cookie.name, isEscaped ? escaped(cookie.value) : cookie.value,
        ]
        return fields.joined(separator: "\t")
    }

    // By bytes: a combining character after a digit would make another character of it.

    private static func escaped(_ text: String) -> String {
        String(decoding: text.utf8.flatMap { $0 == 0x09 ? Array("%09".utf8) : $0 == 0x25 ? Array("%25".utf8) : [$0] }, as: UTF8.self)
    }

    private static func unescaped(_ text: String) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            let isEscape = byte == 0x25 && (rest.starts(with: "09".utf8) || rest.starts(with: "25".utf8))
            bytes.append(isEscape ? (rest.first == UInt8(ascii: "0") ? 0x09 : 0x25) : byte)
            if isEscape { rest.removeFirst(2) }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The format of a store's file.
struct CookieFileFormat: SharedFormat {
    let keepsSessionCookies: Bool
    let now: @Sendable () -> Date

    /// A session cookie that another program has put into the file stays there.
    func isKept(_ cookie: Cookie, wasKept: Bool, now: Date) -> Bool {
        cookie.isPersistent ? !cookie.isExpired(at: now) : keepsSessionCookies || wasKept
    }

    func read(_ bytes: [UInt8], path: String) throws -> FileContents<CookieTable> {
        let read = NetscapeFormat.read(bytes, now: now())
        if !read.hasHeader, let problem = read.firstProblem { throw CookieStoreError.unknownFormat(path: path, line: problem) }
        var contents = FileContents<CookieTable>()
        for cookie in read.cookies { contents.records[cookie.id] = cookie }
        contents.unread = read.unread.map(\.line)
        return contents
    }

    func bytes(of cookies: [Cookie], with unread: [ArraySlice<UInt8>]) -> [UInt8] {
        Lines.joined(NetscapeFormat.lines(of: cookies), unread)
    }
}
