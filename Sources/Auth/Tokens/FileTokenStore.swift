// SPDX-License-Identifier: Apache-2.0
public import CurlewCore
public import CurlewEncoding
import CurlewHTTP

/// Keeps a credential in a file, for several processes that share a sign-in: of all of them, one renews the tokens.
///
/// ```swift
/// let authenticator = OAuthAuthenticator(client, store: .file(directory.appendingPathComponent("tokens.json")))
/// ```
///
/// Only the file's owner has access (mode 600); what is in it is not encrypted. A change locks a file beside it (flock(2)), `.NAME.lock`,
/// which stays; reads the credential again, and replaces the file in one step, after its bytes have reached the disk. A process that is
/// killed at any moment leaves the old credential or the new one. Symbolic links are not followed. Not for file systems without locks of
/// that kind.
public final class FileTokenStore<Credential: Codable & Sendable>: TokenStore {
    /// The file.
    public let file: URL
    /// How long another process may keep the lock; 60 seconds by default, longer than a renewal takes.
    public let lockTimeout: Duration
    private let queue = AsyncQueue()

    /// Creates a store; nothing is read or created yet.
    ///
    /// - Parameters:
    ///   - file: the file. Missing directories are created, with access for their owner only.
    ///   - lockTimeout: how long another process may keep the lock.
    public init(_ file: URL, lockTimeout: Duration = .seconds(60)) {
        (self.file, self.lockTimeout) = (file, lockTimeout)
    }

    /// Reads the credential; `nil` if there is no file.
    ///
    /// - Throws: ``OAuthError/unreadableFile(path:)`` for a file with other content; `CocoaError` if it can't be read, or belongs to another
    ///   user.
    public func credential() async throws -> Credential? { try TokenFile(file.path).read() }

    /// Changes the credential while no other process and no other store does.
    ///
    /// - Throws: what `change` throws; ``OAuthError/locked(path:)`` if another one keeps the lock; ``OAuthError/unreadableFile(path:)``;
    ///   `CocoaError` if the file can't be read or written.
    @discardableResult
    public func update(_ change: @escaping @Sendable (Credential?) async throws -> Credential?) async throws -> Credential? {
        try await locked { tokens in
            let changed = try await change(try tokens.read())
            try tokens.write(changed)
            return changed
        }
    }

    /// Replaces the file, also one that can't be read: of other content, or of another user, where the directory permits it.
    ///
    /// - Throws: ``OAuthError/locked(path:)``; `CocoaError` if the file can't be written.
    public func store(_ credential: Credential) async throws { try await locked { try $0.write(credential) } }

    /// Removes the file, also one that can't be read.
    ///
    /// - Throws: ``OAuthError/locked(path:)``; `CocoaError` if the file can't be removed.
    public func remove() async throws { try await locked { try $0.write(nil) } }

    /// Runs an operation while no other process and no other store changes the file.
    private func locked<Value: Sendable>(
        _ operation: @escaping @Sendable (TokenFile<Credential>) async throws -> Value
    ) async throws -> Value {
        try await queue.run { [file, lockTimeout] in
            let tokens = TokenFile<Credential>(file.path)
            let lock = try await tokens.lock(within: lockTimeout)
            defer { try? lock.close() }
            return try await operation(tokens)
        }
    }
}

extension TokenStore where Self == FileTokenStore<OAuthTokens> {
    /// Keeps tokens in a file; see ``FileTokenStore``.
    public static func file(_ file: URL, lockTimeout: Duration = .seconds(60)) -> FileTokenStore<OAuthTokens> {
        FileTokenStore(file, lockTimeout: lockTimeout)
    }
}

/// The file of a store, and the one beside it that is locked.
private struct TokenFile<Credential: Codable & Sendable>: Sendable {
    /// What the file has, by its version.
    private struct Content: Codable {
        var version = 1
        let credential: Credential
    }

    /// The largest file that is read, in bytes.
    private static var largest: Int64 { 1 << 20 }

    let path: String
    private let directory: String
    private let name: String

    init(_ path: String) {
        self.path = path
        let url = URL(fileURLWithPath: path)
        (directory, name) = (url.deletingLastPathComponent().path, url.lastPathComponent)
    }

    /// Opens and locks the file beside it.
    func lock(within timeout: Duration) async throws -> Descriptor {
        let path = "\(directory)/.\(name).lock"
        var opened = PrivateFile.open(path, O_RDWR | O_CREAT)
        if opened == nil, errno == ENOENT {
            try PrivateFile.makeDirectory(directory)
            opened = PrivateFile.open(path, O_RDWR | O_CREAT)
        }
        guard let file = opened else { throw FileError.writing(path, errno) }
        let end = ContinuousClock.now + timeout
        while !file.lock() {
            guard errno == EWOULDBLOCK || errno == EINTR else { throw FileError.writing(path, errno) }
            guard ContinuousClock.now < end else { throw OAuthError.locked(path: self.path) }
            try await Task.sleep(nanoseconds: 5_000_000)
        }
        return file
    }

    /// Reads the credential; `nil` if there is no file.
    func read() throws -> Credential? {
        guard let file = PrivateFile.open(path, O_RDONLY) else {
            guard errno == ENOENT || errno == ENOTDIR else { throw FileError.reading(path, errno) }
            return nil
        }
        guard let status = file.status else { throw FileError.reading(path, errno) }
        guard status.isRegularFile else { throw FileError.reading(path, EISDIR) }
        guard status.st_size <= Self.largest else { throw FileError.reading(path, EFBIG) }
        // Tokens of another user would have this one act in the other's name.
        guard !PrivateFile.isForeign(status, in: directory) else { throw FileError.reading(path, EPERM) }
        let bytes: Data
        do throws(SystemError) {
            bytes = try file.read(Int(status.st_size))
        } catch {
            throw FileError.reading(path, error.code)
        }
        guard let content = try? JSONDecoder().decode(Content.self, from: bytes), content.version == 1 else {
            throw OAuthError.unreadableFile(path: path)
        }
        return content.credential
    }

    /// Replaces the file, or removes it. With the lock.
    func write(_ credential: Credential?) throws {
        guard let credential else {
            guard unlink(path) == 0 || errno == ENOENT else { throw FileError.writing(path, errno) }
            return
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        let bytes = try encoder.encode(Content(credential: credential))
        // A refresh token that has been replaced is of no use after a crash of the system.
        try PrivateFile.replace(path, with: bytes, isDurable: true)
    }
}
