// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The header fields and credentials that `--session` keeps for an origin, in a file that only the user may read.
struct SessionFile: Codable, Equatable {
    struct Field: Codable, Equatable {
        let name: String
        let value: String
    }

    /// What answers a challenge: `--user` with `--auth-type challenge`.
    struct Login: Codable, Equatable {
        let user: String
        let password: String
    }

    var headers: [Field] = []
    var login: Login?

    /// The cookies of all hosts of a session, in Netscape's format.
    static func cookies(name: String, environment: [String: String]) -> URL {
        folder(environment).appendingPathComponent("\(name).cookies.txt")
    }

    private static func folder(_ environment: [String: String]) -> URL {
        let home = environment["HOME"] ?? "/"
        let base = environment["XDG_CONFIG_HOME"].flatMap { $0.isEmpty ? nil : $0 } ?? home + "/.config"
        return URL(fileURLWithPath: base).appendingPathComponent("curlew/sessions")
    }

    /// The file of a session for a URL's origin: what is sent over TLS does not go out without, nor to another port.
    static func url(name: String, for url: String, environment: [String: String]) -> URL {
        let origin = HTTPOrigin(url: url).map { "\($0.scheme)-\($0.port)-\($0.host)" } ?? "_"
        return folder(environment).appendingPathComponent("\(origin.isFileName ? origin : "_")/\(name).json")
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
        let found = try SessionFile(contentsOf: file)
        var session = found
        change(&session)
        if session != found { try session.write(to: file) }
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
        for item in items {
            switch item {
            case .header(let name, let value) where !Self.transient.contains(name.lowercased()):
                remove(name)
                headers.append(Field(name: name, value: value.trimmingCharacters(in: .whitespaces)))
            case .removedHeader(let name): remove(name)
            default: break
            }
        }
    }

    /// Keeps credentials in place of others.
    mutating func keep(authorization: String?, login: Login?) {
        remove("Authorization")
        if let authorization { headers.append(Field(name: "Authorization", value: authorization)) }
        self.login = login
    }

    private mutating func remove(_ name: String) {
        headers.removeAll { $0.name.lowercased() == name.lowercased() }
        if name.lowercased() == "authorization" { login = nil }
    }
}
