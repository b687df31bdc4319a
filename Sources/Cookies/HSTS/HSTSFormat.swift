// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The format of curl's files of hosts: a name, with a dot before it for its subdomains, and the time until which it counts, in UTC, in
/// quotation marks. Parses untrusted input, and is fuzzed (`FuzzTests`, `hsts-file`).
package struct HSTSFormat: SharedFormat {
    private static let header = "# HSTS cache, in the format of curl"
    /// The time of an entry without an end, which curl writes as "unlimited".
    private static let lastSecond: Int64 = 253_402_300_799

    package init() {}

    package func isKept(_ entry: HSTSHost, wasKept: Bool, now: Date) -> Bool { entry.expirationDate > now }

    package func read(_ bytes: [UInt8], path: String) throws -> FileContents<HSTSTable> {
        var contents = FileContents<HSTSTable>()
        var isKnown = false
        var firstProblem: Int?
        Lines.forEach(in: bytes) { line, number in
            let text = String(validating: line, as: UTF8.self)
            if let entry = text.flatMap(Self.entry) {
                contents.records[entry.host] = entry
                isKnown = true
            } else if text == Self.header {
                isKnown = true
            } else if !line.isEmpty {
                contents.unread.append(line)
                if line.first != UInt8(ascii: "#"), firstProblem == nil { firstProblem = number }
            }
        }
        // With at least one entry that is understood, the others are damaged.
        if !isKnown, let firstProblem { throw CookieStoreError.unknownFormat(path: path, line: firstProblem) }
        return contents
    }

    package func bytes(of entries: [HSTSHost], with unread: [ArraySlice<UInt8>]) -> [UInt8] {
        Lines.joined([Self.header] + entries.sorted { $0.host < $1.host }.map(Self.line), unread)
    }

    private static func line(of entry: HSTSHost) -> String {
        let seconds = min(Int64(max(entry.expirationDate.timeIntervalSince1970, 0).rounded(.up)), lastSecond)
        var (time, parts) = (time_t(seconds), tm())
        gmtime_r(&time, &parts)
        let date = "\(padded(parts.tm_year + 1900, 4))\(padded(parts.tm_mon + 1, 2))\(padded(parts.tm_mday, 2))"
        let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec].map { padded($0, 2) }.joined(separator: ":")
        return "\(entry.includesSubdomains ? "." : "")\(entry.host) \"\(seconds == lastSecond ? "unlimited" : "\(date) \(clock)")\""
    }

    private static func padded(_ number: Int32, _ width: Int) -> String {
        let text = "\(number)"
        return String(repeating: "0", count: max(width - text.utf8.count, 0)) + text
    }

    private static func entry(_ line: String) -> HSTSHost? {
        guard let space = line.utf8.firstIndex(of: 0x20), line.utf8.first != UInt8(ascii: "#") else { return nil }
        let name = line[..<space]
        let rest = line[line.utf8.index(after: space)...]
        guard rest.utf8.count >= 2, rest.utf8.first == UInt8(ascii: "\""), rest.utf8.last == UInt8(ascii: "\"") else { return nil }
        let includesSubdomains = name.utf8.first == UInt8(ascii: ".")
        guard let host = HSTSTable.normalized(includesSubdomains ? String(name.dropFirstScalars()) : String(name)),
            let date = date(Substring(rest.utf8.dropFirst().dropLast()))
        else { return nil }
        return HSTSHost(host: host, includesSubdomains: includesSubdomains, expirationDate: date)
    }

    /// Parses `YYYYMMDD HH:MM:SS`.
    private static func date(_ text: Substring) -> Date? {
        if text == "unlimited" { return Date(timeIntervalSince1970: Double(lastSecond)) }
        let bytes = Array(text.utf8)
        guard bytes.count == 17, bytes[8] == 0x20, bytes[11] == UInt8(ascii: ":"), bytes[14] == UInt8(ascii: ":") else { return nil }
        let numbers = [0..<4, 4..<6, 6..<8, 9..<11, 12..<14, 15..<17].compactMap { range -> Int? in
            guard bytes[range].allSatisfy({ $0.isASCIIDigit }) else { return nil }
            return Int(String(decoding: bytes[range], as: UTF8.self))
        }
        guard numbers.count == 6, numbers[0] >= 1970 else { return nil }
        return Date(
            utcYear: numbers[0], month: numbers[1], day: numbers[2], hour: numbers[3], minute: numbers[4], second: numbers[5])
    }
}
