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
    }

    var headers: [Field] = []
    var cookies: [Cookie] = []

    /// The file of a session for a URL's host and port.
    static func url(name: String, for url: String, environment: [String: String]) -> URL {
        let home = environment["HOME"] ?? "/"
        let base = environment["XDG_CONFIG_HOME"].flatMap { $0.isEmpty ? nil : $0 } ?? home + "/.config"
        let host = ExchangePrinter.host(of: url).lowercased().replacingScalars(":", with: "_")
        return URL(fileURLWithPath: base).appendingPathComponent("curlew/sessions/\(host.isFileName ? host : "_")/\(name).json")
    }

    /// Reads the file; an empty session if there is none.
    init(contentsOf file: URL) throws {
        guard FileManager.default.fileExists(atPath: file.path) else { return }
        self = try JSONDecoder().decode(SessionFile.self, from: try Data(contentsOf: file))
    }

    init() {}

    /// Replaces the file in one step.
    func write(to file: URL) throws {
        let directory = file.deletingLastPathComponent()
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        let data = try encoder.encode(self)
        let temporary = directory.appendingPathComponent(".\(file.lastPathComponent).\(getpid())")
        let descriptor = open(temporary.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        do {
            defer { close(descriptor) }
            try Output(descriptor: descriptor).write(data)
        } catch {
            unlink(temporary.path)
            throw error
        }
        guard rename(temporary.path, file.path) == 0 else {
            let reason = errno
            unlink(temporary.path)
            throw POSIXError(POSIXErrorCode(rawValue: reason) ?? .EIO)
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

    /// Keeps the cookies of a storage in place of the earlier ones.
    mutating func keep(_ storage: HTTPCookieStorage) {
        cookies = (storage.cookies ?? []).map {
            Cookie(
                name: $0.name, value: $0.value, domain: $0.domain, path: $0.path, isSecure: $0.isSecure, isHTTPOnly: $0.isHTTPOnly,
                expires: $0.expiresDate)
        }.sorted { ($0.domain, $0.path, $0.name) < ($1.domain, $1.path, $1.name) }
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
