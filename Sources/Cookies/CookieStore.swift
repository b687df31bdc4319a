// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// Cookies under the rules of RFC 6265bis, for `SessionConfiguration.cookies`, in memory or in a file.
///
/// Sessions that are given the same object share its cookies; so do several processes with stores of the same file. All members are
/// thread-safe. Those that throw may block while a file is read or written; those of a store in memory do not block, and throw only for a
/// cookie or a URL that is invalid, and what a closure throws.
public final class CookieStore: Sendable {
    /// How many cookies are stored; beyond that expired ones are removed first, then those not secure, the longest unused first.
    public struct Limits: Sendable, Hashable {
        /// The most cookies of a domain; 180 by default.
        public var perDomain: Int
        /// The most cookies of all domains; 3000 by default.
        public var total: Int

        /// Creates limits; at least 1 each.
        public init(perDomain: Int = 180, total: Int = 3000) {
            self.perDomain = max(perDomain, 1)
            self.total = max(total, 1)
        }
    }

    /// What was found in an imported text.
    public struct Import: Sendable, Hashable {
        /// How many cookies were stored, or have replaced others.
        public let count: Int
        /// The numbers of the lines that are neither a cookie nor a comment, from 1.
        public let invalidLines: [Int]
    }

    /// What no other store has, in no process.
    package let identity = UUID().uuidString
    private let shared: SharedStore<CookieFileFormat>
    private let now: @Sendable () -> Date

    /// Creates a store in a place that several processes share; `nil` for one in memory.
    package init(
        place: (any SharedPlace)?, keepsSessionCookies: Bool, limits: Limits, now: @escaping @Sendable () -> Date = { Date() }
    ) {
        shared = SharedStore(
            CookieTable(limits: limits), place: place, format: CookieFileFormat(keepsSessionCookies: keepsSessionCookies, now: now),
            now: now)
        self.now = now
    }

    /// Creates a store in memory, which is empty.
    public convenience init(limits: Limits = Limits()) {
        self.init(place: nil, keepsSessionCookies: false, limits: limits)
    }

    /// Creates a store in a file in Netscape's format (`cookies.txt`), which curl reads, too.
    ///
    /// The file is read before the first request and whenever another process has changed it, and replaced as a whole (by renaming), with
    /// access for its owner only, when cookies have changed: a process that is killed leaves the old or the new one. Files with the names of
    /// the file, a dot before it, and `.lock` or `.new` after it, are put beside it; missing directories are created. The file is not read or
    /// written on the thread of the network.
    ///
    /// Lines that are not understood stay in the file. A file of another format is left alone: see ``lastError``.
    ///
    /// - Parameters:
    ///   - file: a file URL; need not exist yet.
    ///   - keepsSessionCookies: whether cookies without an expiration date are written, too; `false` by default, as RFC 6265bis has it. Those
    ///     that another program has put into the file stay there.
    public convenience init(file: URL, keepsSessionCookies: Bool = false, limits: Limits = Limits()) {
        self.init(place: SharedFile(file), keepsSessionCookies: keepsSessionCookies, limits: limits)
    }

    /// A new store in memory.
    public static var memory: CookieStore { CookieStore() }

    /// A store in a file: ``init(file:keepsSessionCookies:limits:)`` with the default limits.
    public static func file(_ url: URL, keepsSessionCookies: Bool = false) -> CookieStore {
        CookieStore(file: url, keepsSessionCookies: keepsSessionCookies)
    }

    /// Whether reading or changing the store may wait, for a disk or a server.
    package var hasFile: Bool { shared.place != nil }

    // MARK: Inspection

    /// Returns all cookies that have not expired, by domain and then by creation.
    ///
    /// - Throws: ``CookieStoreError``, or `CocoaError` if the file can't be read.
    public func cookies() throws -> [Cookie] {
        try shared.refresh()
        let now = now()
        return shared.peek { $0.cookies.filter { !$0.isExpired(at: now) } }
    }

    /// Returns the cookies that a request to a URL sends, in their order (RFC 6265bis, section 5.8.3). Empty for a URL without a host.
    ///
    /// - Throws: ``CookieStoreError``, or `CocoaError` if the file can't be read; ``/CurlewHTTP/CurlewError`` for an invalid URL.
    public func cookies(for url: any URLConvertible) throws -> [Cookie] {
        guard let origin = CookieOrigin(try url.asURL()) else { return [] }
        try shared.refresh()
        let now = now()
        return shared.peek { $0.cookies(for: origin, now: now) }
    }

    /// Why the file could not be read or written the last time; `nil` if it could, and for a store in memory.
    ///
    /// Requests do not fail for that reason: they use what is in memory, which is written with the next change that can be.
    public var lastError: (any Error)? { shared.lastError }

    // MARK: Changing

    /// Stores a cookie, in place of one with its ``Cookie/ID``.
    ///
    /// - Throws: ``CookieStoreError/invalidCookie(name:reason:)`` for one that no host could set; other errors if the file can't be read or
    ///   written, with the cookie stored in memory.
    public func set(_ cookie: Cookie) throws {
        if let reason = cookie.defect { throw CookieStoreError.invalidCookie(name: cookie.name, reason: reason) }
        let now = now()
        try shared.change { $0.set(cookie, now: now) }
    }

    /// Removes a cookie; returns whether there was one.
    ///
    /// - Throws: if the file can't be read or written; the cookie is removed from memory nevertheless.
    @discardableResult
    public func remove(_ id: Cookie.ID) throws -> Bool {
        try shared.change { $0.remove(id) != nil }
    }

    /// Removes the cookies for which a closure returns `true`; returns how many they were.
    ///
    /// - Throws: what the closure throws, and why the file can't be read: nothing is removed then. If it can't be written, they are removed
    ///   from memory nevertheless.
    @discardableResult
    public func remove(where isRemoved: (Cookie) throws -> Bool) throws -> Int {
        // Not inside the change, as the closure is the user's.
        let ids = try cookies().filter(isRemoved).map(\.id)
        guard !ids.isEmpty else { return 0 }
        return try shared.change { table in ids.count { table.remove($0) != nil } }
    }

    /// Removes all cookies.
    ///
    /// - Throws: if the file can't be read or written; memory is empty nevertheless.
    public func removeAll() throws {
        try shared.change { $0.replace(with: [:]) }
    }

    /// Removes the cookies without an expiration date, as at the end of a browser's session.
    ///
    /// - Throws: if the file can't be read or written; they are removed from memory nevertheless.
    public func removeSessionCookies() throws {
        try shared.change { table in
            for cookie in table.cookies where !cookie.isPersistent { table.remove(cookie.id) }
        }
    }

    /// Reads what other processes have changed, and writes what could not be written before. Not needed for requests.
    ///
    /// - Throws: ``CookieStoreError``, or `CocoaError` if the file can't be read or written.
    public func synchronize() throws {
        try shared.change { _ in }
    }

    // MARK: Netscape's format

    /// Stores the cookies of a text in Netscape's format (`cookies.txt`), without those that have expired; they replace others with their
    /// ``Cookie/ID``. Lines that are not understood are skipped, and reported.
    ///
    /// - Throws: if the file can't be read or written; the cookies are stored in memory nevertheless.
    @discardableResult
    public func importNetscape(_ text: String) throws -> Import {
        let now = now()
        let read = NetscapeFormat.read(Array(text.utf8), now: now)
        let count = try shared.change { table in
            for cookie in read.cookies { table.set(cookie, now: now) }
            return read.cookies.count { !$0.isExpired(at: now) }
        }
        let invalid = read.unread.filter { $0.line.first != UInt8(ascii: "#") || $0.line.starts(with: "#HttpOnly_".utf8) }
        return Import(count: count, invalidLines: invalid.map(\.number))
    }

    /// Returns all cookies in Netscape's format, session cookies with the expiration time 0.
    ///
    /// What the format has no field for is in comments, which other programs skip.
    ///
    /// - Throws: ``CookieStoreError``, or `CocoaError` if the file can't be read.
    public func exportNetscape() throws -> String {
        String(decoding: Lines.joined(NetscapeFormat.lines(of: try cookies()), []), as: UTF8.self)
    }
}

// MARK: - For sessions

extension CookieStore {
    /// Returns the cookies that a request sends, and notes their use. Reads the file if it has changed; if it can't be read, what is in memory
    /// counts.
    package func send(to origin: CookieOrigin, isCrossSite: Bool) -> [Cookie] {
        if hasFile { _ = try? shared.refresh() }
        let now = now()
        let cookies = shared.peek { $0.cookies(for: origin, isCrossSite: isCrossSite, now: now) }
        if !cookies.isEmpty { shared.touch { $0.use(cookies, now: now) } }
        return cookies
    }

    /// Stores the cookies that a response has set. With a file, blocks; an error is kept in ``lastError``.
    package func store(_ cookies: [SetCookie], from origin: CookieOrigin, isCrossSite: Bool) {
        guard !cookies.isEmpty else { return }
        let now = now()
        _ = try? shared.change { table in
            for cookie in cookies { table.store(cookie, from: origin, isCrossSite: isCrossSite, now: now) }
        }
    }
}

/// Reflection shows nothing.
extension CookieStore: RedactedReflectable {}
