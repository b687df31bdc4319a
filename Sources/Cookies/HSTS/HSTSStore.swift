// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The hosts that have asked to be connected to over TLS only (RFC 6797), for `SessionConfiguration.hsts`, in memory or in a file.
///
/// A request to such a host is made with `https` where its URL has `http`, before anything is sent: see ``upgradedURL(of:)``. There is no list
/// of hosts to begin with, such as browsers are delivered with: add those that you know with ``set(_:)``.
///
/// Sessions that are given the same object share its hosts; so do several processes with stores of the same file. All members are
/// thread-safe. Those that throw may block while a file is read or written; those of a store in memory do not block, and throw only for a
/// host or a URL that is invalid.
public final class HSTSStore: Sendable {
    private let shared: SharedStore<HSTSFormat>
    private let now: @Sendable () -> Date

    /// Creates a store in a place that several processes share; `nil` for one in memory.
    package init(place: (any SharedPlace)?, now: @escaping @Sendable () -> Date = { Date() }) {
        shared = SharedStore(HSTSTable(), place: place, format: HSTSFormat(), now: now)
        self.now = now
    }

    /// Creates a store in memory, which is empty.
    public convenience init() {
        self.init(place: nil)
    }

    /// Creates a store in a file in the format of curl's option `--hsts`.
    ///
    /// It is read, shared and replaced like that of ``CookieStore/init(file:keepsSessionCookies:limits:)``.
    ///
    /// - Parameter file: a file URL; need not exist yet.
    public convenience init(file: URL) {
        self.init(place: SharedFile(file))
    }

    /// A new store in memory.
    public static var memory: HSTSStore { HSTSStore() }

    /// A store in a file: ``init(file:)``.
    public static func file(_ url: URL) -> HSTSStore { HSTSStore(file: url) }

    /// Whether reading or changing the store may wait, for a disk or a server.
    package var hasFile: Bool { shared.place != nil }

    // MARK: Inspection

    /// Returns all hosts that count, sorted by name.
    ///
    /// - Throws: ``CookieStoreError``, or `CocoaError` if the file can't be read.
    public func hosts() throws -> [HSTSHost] {
        try shared.refresh()
        let now = now()
        return shared.peek { $0.records.values.filter { $0.expirationDate > now } }.sorted { $0.host < $1.host }
    }

    /// Returns whether requests to a host are made over TLS only: it is known, or a domain above it with its subdomains.
    ///
    /// - Throws: ``CookieStoreError``, or `CocoaError` if the file can't be read.
    public func isKnown(_ host: String) throws -> Bool {
        try shared.refresh()
        return knows(host)
    }

    /// Returns the URL with which a request is made: `https` in place of `http`, `wss` in place of `ws`, and port 443 in place of an explicit
    /// port 80; other ports stay (RFC 6797, section 8.3). `nil` if nothing changes.
    ///
    /// - Throws: ``CookieStoreError``, or `CocoaError` if the file can't be read; ``/CurlewHTTP/CurlewError`` for an invalid URL.
    public func upgradedURL(of url: any URLConvertible) throws -> URL? {
        let text = try url.asURL().absoluteString
        try shared.refresh()
        return upgraded(text).flatMap { URL(string: $0) }
    }

    /// Why the file could not be read or written the last time; `nil` if it could, and for a store in memory. Requests do not fail for that
    /// reason.
    public var lastError: (any Error)? { shared.lastError }

    // MARK: Changing

    /// Adds a host, as if it had sent the field; does nothing for an address.
    ///
    /// - Throws: ``/CurlewHTTP/CurlewError/invalidURL(url:in:)`` for a text that is no host, such as one with a scheme, a port or an
    ///   asterisk; another error if the file can't be read or written, where the host counts in memory nevertheless.
    public func set(_ host: HSTSHost) throws {
        guard URLHost.comparable(ifValid: host.host) != nil else { throw CurlewError.invalidURL(url: host.host) }
        guard let name = HSTSTable.normalized(host.host) else { return }
        let now = now()
        let entry = HSTSHost(host: name, includesSubdomains: host.includesSubdomains, expirationDate: host.expirationDate)
        try shared.change { $0.set(entry, now: now) }
    }

    /// Forgets a host; returns whether it was known. A domain above it may still be, with its subdomains.
    ///
    /// - Throws: if the file can't be read or written; the host is removed from memory nevertheless.
    @discardableResult
    public func remove(_ host: String) throws -> Bool {
        try shared.change { $0.remove(host) }
    }

    /// Forgets all hosts.
    ///
    /// - Throws: if the file can't be read or written; memory is empty nevertheless.
    public func removeAll() throws {
        try shared.change { $0.replace(with: [:]) }
    }

    /// Reads what other processes have changed, and writes what could not be written before. Not needed for requests.
    ///
    /// - Throws: ``CookieStoreError``, or `CocoaError` if the file can't be read or written.
    public func synchronize() throws {
        try shared.change { _ in }
    }
}

// MARK: - For sessions

extension HSTSStore {
    /// Reads the file if it has changed; if it can't be read, what is in memory counts.
    package func refresh() {
        if hasFile { _ = try? shared.refresh() }
    }

    /// Whether a host in memory is known. Blocks for no file.
    package func knows(_ host: String) -> Bool {
        let now = now()
        return shared.peek { $0.isKnown(host, now: now) }
    }

    /// Returns the URL with which a request is made, if it is another one. Blocks for no file.
    package func upgraded(_ url: String) -> String? {
        // Most URLs are not concerned: without a look at the time.
        guard url.utf8.starts(with: "http:".utf8) || !url.utf8.starts(with: "https:".utf8) else { return nil }
        let now = now()
        return shared.peek { $0.upgraded(url, now: now) }
    }

    /// Whether noting a field changes what is in memory. Blocks for no file.
    package func isChanged(by field: StrictTransportSecurity, from host: String) -> Bool {
        let now = now()
        return shared.peek { $0.isChanged(by: field, from: host, now: now) }
    }

    /// Notes what a host has sent over TLS. With a file, blocks; an error is kept in ``lastError``.
    package func note(_ field: StrictTransportSecurity, from host: String) {
        let now = now()
        _ = try? shared.change { $0.note(field, from: host, now: now) }
    }
}

/// Reflection shows nothing: the hosts reveal what the user has visited.
extension HSTSStore: RedactedReflectable {}
