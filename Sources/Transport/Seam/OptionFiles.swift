// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

// The files that options name: what they contain now is read for each exchange, and again only after a change.

/// Identifies the contents of a regular file: equal until the file changes.
struct FileVersion: Hashable {
    private let (device, inode, size): (UInt64, UInt64, Int64)
    private let (seconds, nanoseconds): (Int, Int)
    /// Of the last change of the file's status, which no copy takes over.
    private let (changeSeconds, changeNanoseconds): (Int, Int)

    /// `nil` if there is no such file, or it is not a regular one.
    init?(_ path: String) {
        var status = stat()
        // Opening a FIFO or a device may block.
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        (device, inode, size) = (UInt64(truncatingIfNeeded: status.st_dev), UInt64(status.st_ino), Int64(status.st_size))
        (seconds, nanoseconds) = (status.modificationTime.tv_sec, status.modificationTime.tv_nsec)
        (changeSeconds, changeNanoseconds) = (status.changeTime.tv_sec, status.changeTime.tv_nsec)
    }
}

/// What was made of the contents of regular files, by path, until they change. Bounded.
private final class FileMemory<Value: Sendable>: Sendable {
    /// The most files; beyond it all are forgotten.
    private let limit: Int
    private let known = Lock([String: (version: FileVersion, value: Value)]())

    init(limit: Int) {
        self.limit = limit
    }

    /// What `make` has made of a file's contents; `nil` for a file that can't be read, or of which nothing is made.
    func value(of path: String, make: (Data) -> Value?) -> Value? {
        guard let version = FileVersion(path) else { return nil }
        if let file = known.withLock({ $0[path] }), file.version == version { return file.value }
        guard let data = try? Data(readingFrom: URL(fileURLWithPath: path)), let value = make(data) else { return nil }
        known.withLock { known in
            if known.count >= limit { known = [:] }
            known[path] = (version, value)
        }
        return value
    }
}

/// The SHA-256 digests of files.
enum FileDigest {
    private static let known = FileMemory<String>(limit: 256)

    /// The digest of a regular file's contents, in hexadecimal digits; `nil` if it can't be read.
    static func current(of path: String) -> String? { known.value(of: path) { SHA256.digest(of: $0).hexDigits } }
}

/// What a file of authorities contained when it was read: what a partition counts, and libcurl is given.
final class AuthorityContents: Sendable, Hashable {
    /// The most bytes: libcurl takes no blob of more than 8,000,000, and others may be added.
    private static let largest = 7_000_000
    private static let known = FileMemory<AuthorityContents>(limit: 16)

    let data: Data
    let digest: String
    /// The certificates in DER, for requirements beyond what libcurl verifies.
    private let parsed = Lock<[Data]?>(nil)

    private init(_ data: Data) {
        self.data = data
        digest = SHA256.digest(of: data).hexDigits
    }

    var certificates: [Data] {
        parsed.withLock { parsed in
            if let parsed { return parsed }
            let certificates = Certificate.all(inPEM: data).map(\.der)
            parsed = certificates
            return certificates
        }
    }

    /// What a file contains now; `nil` if it is no regular file, can't be read, or is too large.
    static func current(of path: String) -> AuthorityContents? {
        known.value(of: path) { $0.count <= largest ? AuthorityContents($0) : nil }
    }

    static func == (lhs: AuthorityContents, rhs: AuthorityContents) -> Bool { lhs === rhs || lhs.data == rhs.data }

    func hash(into hasher: inout Hasher) { hasher.combine(digest) }
}

extension TLSOptions {
    /// Whether a file is part of a partition, and has to be read for it (``read``).
    var hasFiles: Bool { hasAuthorityFile || clientCertificate?.contents.hasFiles == true }

    /// Whether authorities are in a file.
    var hasAuthorityFile: Bool { certificateAuthorityFile != nil && certificateAuthorities == nil }

    /// The options with what the files of authorities and of the client certificate contain now, so that an exchange, the connections it may
    /// use and the responses it may share belong to one trust and one identity. The same for those that can't be read, which libcurl then
    /// reports.
    var read: TLSOptions {
        var options = self
        options.clientCertificate = clientCertificate?.read
        if hasAuthorityFile { options.authorityContents = certificateAuthorityFile.flatMap { AuthorityContents.current(of: $0) } }
        return options
    }
}

extension PreparedOptions {
    /// The options with what their files contain now. The same object as long as that is the same.
    var read: PreparedOptions {
        let tls = options.tls.read
        guard tls != options.tls else { return self }
        return latest.withLock { latest in
            if let latest, latest.options.tls == tls { return latest }
            var options = options
            options.tls = tls
            let prepared = PreparedOptions(options, transportPartition: transportPartition)
            latest = prepared
            return prepared
        }
    }
}
