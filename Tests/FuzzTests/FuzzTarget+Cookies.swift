// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Foundation

@testable import CurlewCookies

extension FuzzTarget {
    /// The fields about hosts, and the files in which they are kept.
    static let cookies: [FuzzTarget] = [
        FuzzTarget(name: "set-cookie", check: setCookie), FuzzTarget(name: "cookie-file", check: cookieFile),
        FuzzTarget(name: "strict-transport-security", check: strictTransportSecurity), FuzzTarget(name: "hsts-file", check: hstsFile),
    ]

    private static let now = Date(timeIntervalSince1970: 1e9)

    private static func setCookie(_ input: [UInt8]) throws {
        guard let cookie = SetCookie(text(input)) else { return }
        try require(!cookie.name.isEmpty || !cookie.value.isEmpty, "neither name nor value")
        try require(cookie.name.utf8.count + cookie.value.utf8.count <= 4096, "too large")
        for part in [cookie.name, cookie.value, cookie.domain ?? "", cookie.path ?? ""] {
            try require(!hasControls(part), "controls in \(part.debugDescription)")
        }
        try require(
            !cookie.name.utf8.contains { "=;".utf8.contains($0) } && !cookie.value.utf8.contains(UInt8(ascii: ";")),
            "separators in \(cookie)")
        // What a host may set is sent back to it, and survives a file.
        guard let url = URL(string: "https://www.example.org/a/b"), let origin = CookieOrigin(url) else { return }
        var table = CookieTable()
        table.store(cookie, from: origin, now: now)
        try require(table.count <= 1, "\(table.count) cookies")
        guard let stored = table.cookies.first else { return }
        try require(!stored.isExpired(at: now), "an expired cookie was stored")
        try require(stored.expirationDate ?? now <= now.addingTimeInterval(CookieTable.longestAge + 1), "kept too long")
        try require(CookieRules.domainMatches(host: "www.example.org", domain: stored.domain), "for \(stored.domain)")
        try require(stored.defect == nil, "\(stored.defect ?? "") in \(stored)")
        try requireSameAfterWriting([stored])
    }

    private static func requireSameAfterWriting(_ cookies: [Cookie]) throws {
        let bytes = Lines.joined(NetscapeFormat.lines(of: cookies), [])
        let read = NetscapeFormat.read(bytes, now: now)
        try require(read.unread.isEmpty && read.hasHeader, "lines that are not read: \(text(bytes).debugDescription)")
        try require(Set(read.cookies) == Set(cookies), "changed by writing: \(text(bytes).debugDescription)")
    }

    private static func cookieFile(_ input: [UInt8]) throws {
        let read = NetscapeFormat.read(input, now: now)
        var table = CookieTable()
        for cookie in read.cookies {
            try require(cookie.defect == nil, "\(cookie.defect ?? "") in \(cookie)")
            table.set(cookie, now: now)
        }
        // Those of 1970 are written as the first second of it.
        try requireSameAfterWriting(table.cookies)
        try require(read.firstProblem.map { number in read.unread.contains { $0.number == number } } ?? true, "a problem that is lost")
        let format = CookieFileFormat(keepsSessionCookies: true, now: { now })
        guard let contents = try? format.read(input, path: "x") else { return }
        let again = try format.read(format.bytes(of: table.cookies, with: contents.unread), path: "x")
        try require(again.records.count == table.count, "\(table.count) cookies became \(again.records.count)")
        try require(again.unread.map(Array.init) == contents.unread.map(Array.init), "unread lines are changed")
    }

    private static func strictTransportSecurity(_ input: [UInt8]) throws {
        guard let field = StrictTransportSecurity(text(input)) else { return }
        try require((0...3_153_600_000).contains(field.maximumAge), "\(field.maximumAge) seconds")
        var table = HSTSTable()
        table.note(field, from: "a.test", now: now)
        try require(table.isKnown("a.test", now: now) == (field.maximumAge > 0), "known or not")
        // Any text as a URL.
        if let upgraded = table.upgraded(text(input), now: now) {
            try require(upgraded.hasPrefix("https:") || upgraded.hasPrefix("wss:"), upgraded)
        }
    }

    private static func hstsFile(_ input: [UInt8]) throws {
        let format = HSTSFormat()
        guard let read = try? format.read(input, path: "x") else { return }
        let again = try format.read(format.bytes(of: Array(read.records.values), with: read.unread), path: "x")
        try require(again.records == read.records, "hosts are changed by writing")
        try require(again.unread.map(Array.init) == read.unread.map(Array.init), "unread lines are changed")
    }
}
