// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The cookies and header fields that `--session` keeps for a host, in a file that only the user may read.
struct SessionFile: Codable, Equatable {
    struct Field: Codable, Equatable {
        let name: String
        let value: String
    }

    struct Cookie: Codable, Equatable {
        let name: String
        let value: String
        let domain: String
        let path: String
        let isSecure: Bool
        let isHTTPOnly: Bool
        let expires: Date?

        /// Whether one replaces the other (RFC 6265, section 5.3).
        func isSame(as other: Cookie) -> Bool { name == other.name && domain == other.domain && path == other.path }

        /// Whether it is sent to a host (RFC 6265, section 5.1.3).
        func isFor(_ host: String) -> Bool {
            let domain = (domain.hasBytePrefix(".") ? String(domain.dropFirstScalars()) : domain).lowercased()
            return host == domain || self.domain.hasBytePrefix(".") && host.hasByteSuffix(".\(domain)")
        }
    }

    var headers: [Field] = []
    var cookies: [Cookie] = []

    /// The file of a session for a URL's origin: what is sent over TLS does not go out without, nor to another port.
    static func url(name: String, for url: String, environment: [String: String]) -> URL {
        let home = environment["HOME"] ?? "/"
        let base = environment["XDG_CONFIG_HOME"].flatMap { $0.isEmpty ? nil : $0 } ?? home + "/.config"
        let origin = HTTPOrigin(url: url).map { "\($0.scheme)-\($0.port)-\($0.host)" } ?? "_"
        return URL(fileURLWithPath: base).appendingPathComponent("curlew/sessions/\(origin.isFileName ? origin : "_")/\(name).json")
    }

    /// A file that is no session's.
    struct Damage: Error {
        let path: String
    }

    /// Reads the file; an empty session if there is none.
    init(contentsOf file: URL) throws {
        guard FileManager.default.fileExists(atPath: file.path) else { return }
        let data = try Data(contentsOf: file)
        do { self = try JSONDecoder().decode(SessionFile.self, from: data) } catch { throw Damage(path: file.path) }
    }

    init() {}

    /// Changes what the file has while no other process does, so that each keeps what others have written since this one has read it.
    static func update(_ file: URL, _ change: (inout SessionFile) -> Void) throws {
        let directory = file.deletingLastPathComponent()
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let lock = directory.appendingPathComponent(".\(file.lastPathComponent).lock").path
        let descriptor = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw FileFailure(path: lock, code: errno) }
        // Closing releases the lock, as does the end of the process.
        defer { close(descriptor) }
        while flock(descriptor, LOCK_EX) != 0 {
            guard errno == EINTR else { throw FileFailure(path: lock, code: errno) }
        }
        var session = try SessionFile(contentsOf: file)
        change(&session)
        try session.write(to: file)
    }

    /// Replaces the file in one step.
    private func write(to file: URL) throws {
        let directory = file.deletingLastPathComponent()
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        let data = try encoder.encode(self)
        let temporary = directory.appendingPathComponent(".\(file.lastPathComponent).\(UUID().uuidString)")
        let descriptor = open(temporary.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw FileFailure(path: temporary.path, code: errno) }
        do throws(Output.Failure) {
            defer { close(descriptor) }
            try Output(descriptor: descriptor).write(data)
        } catch {
            unlink(temporary.path)
            throw FileFailure(path: file.path, code: error.code)
        }
        guard rename(temporary.path, file.path) == 0 else {
            let reason = errno
            unlink(temporary.path)
            throw FileFailure(path: file.path, code: reason)
        }
    }

    /// Header fields that belong to one request, and not to a session.
    private static let transient: Set = [
        "content-type", "content-length", "content-encoding", "if-match", "if-none-match", "if-modified-since", "range", "cookie", "host",
    ]

    /// Keeps the fields that the user has given.
    mutating func keep(_ items: [RequestItem]) {
        for case .header(let name, let value) in items where !Self.transient.contains(name.lowercased()) {
            headers.removeAll { $0.name.lowercased() == name.lowercased() }
            headers.append(Field(name: name, value: value.trimmingCharacters(in: .whitespaces)))
        }
        for case .removedHeader(let name) in items { headers.removeAll { $0.name.lowercased() == name.lowercased() } }
    }

    /// Makes the changes to cookies that a run has made.
    ///
    /// - Parameters:
    ///   - storage: the cookies at its end.
    ///   - earlier: those at its beginning.
    ///   - host: the only one whose cookies count; `nil` for all, where the storage is that of one origin.
    mutating func keep(_ storage: HTTPCookieStorage, since earlier: [Cookie], of host: String? = nil) {
        let stored = Self.cookies(of: storage).filter { cookie in host.map { cookie.isFor($0) } ?? true }
        let changed = stored.filter { !earlier.contains($0) }
        let removed = earlier.filter { cookie in !stored.contains { $0.isSame(as: cookie) } }
        cookies.removeAll { cookie in (changed + removed).contains { $0.isSame(as: cookie) } }
        cookies = (cookies + changed).sorted { ($0.domain, $0.path, $0.name) < ($1.domain, $1.path, $1.name) }
    }

    private static func cookies(of storage: HTTPCookieStorage) -> [Cookie] {
        (storage.cookies ?? []).map {
            Cookie(
                name: $0.name, value: $0.value, domain: $0.domain, path: $0.path, isSecure: $0.isSecure, isHTTPOnly: $0.isHTTPOnly,
                expires: $0.expiresDate)
        }
    }

    /// Puts the cookies into a storage.
    func restore(into storage: HTTPCookieStorage) {
        for cookie in cookies {
            var properties: [HTTPCookiePropertyKey: Any] = [
                .name: cookie.name, .value: cookie.value, .domain: cookie.domain, .path: cookie.path,
            ]
            if cookie.isSecure { properties[.secure] = "TRUE" }
            if cookie.isHTTPOnly { properties[HTTPCookiePropertyKey("HttpOnly")] = "TRUE" }
            if let expires = cookie.expires { properties[.expires] = expires } else { properties[.discard] = "TRUE" }
            if let cookie = HTTPCookie(properties: properties) { storage.setCookie(cookie) }
        }
    }
}
