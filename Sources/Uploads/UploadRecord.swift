// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// What continuing an upload takes, as it is in the state file: where the upload is, and of what, to whom and by whom it is. No secrets,
/// and no offset, for which the server is asked.
struct UploadRecord: Codable, Equatable, Sendable {
    static let currentFormat = 1

    private(set) var format = Self.currentFormat
    let dialect: String
    /// The upload's URL, which the server has named; without user name and password.
    let upload: String
    /// A digest of the URL to which the upload was begun.
    let endpoint: String
    /// A digest of what was said about the file.
    let metadata: String
    /// A digest of the file's path, or of its name if the record is beside it; `nil` in records of earlier versions.
    let source: String?
    let file: UploadedFile.Identity
    /// Who answers the requests (`SessionManager.responder`); empty for plain requests.
    let responder: String
    /// A digest of the credentials with which it was begun; `nil` for none. Another user's upload is not continued.
    let sender: String?

    /// Whether it is of the file at a URL, also one that has changed since or is gone. The state file may be that of other files as well.
    func isAbout(_ url: URL, _ options: ResumableUpload.Options) -> Bool {
        guard let source, source != Self.source(of: url, options) else { return true }
        return (try? UploadedFile(url))?.identity.isSame(as: file) == true
    }

    /// Returns the ``source`` of a file. Where the record is beside it, the directory of both may be moved, or named in another way.
    static func source(of file: URL, _ options: ResumableUpload.Options) -> String {
        digest(options.stateFile == nil ? file.lastPathComponent : file.path)
    }

    /// Returns a digest of a text, which reveals no secrets in it.
    static func digest(_ text: String) -> String { SHA256.digest(of: text.utf8).hexDigits }
}

/// The state file of an upload: written atomically, by rename, with mode 600, and locked as long as it is used.
final class UploadStore: Sendable {
    private static let longest = 64 << 10

    let url: URL
    private struct State {
        /// The open file with its lock.
        var file: Descriptor?
        var hasRecord = false
    }

    private let state = Lock(State())

    init(_ url: URL) {
        self.url = url
    }

    /// The default place: a hidden file beside the uploaded one, with a name for the URL.
    static func url(for file: URL, to endpoint: URL) -> URL {
        let suffix = UploadRecord.digest(endpoint.absoluteString.droppingUserInfo).prefix(8)
        // A name has at most 255 bytes.
        let name = String(decoding: file.lastPathComponent.utf8.prefix(200), as: UTF8.self)
        return file.deletingLastPathComponent().appendingPathComponent(".\(name).\(suffix).upload", isDirectory: false)
    }

    /// Locks the file, which is created if there is none, and reads its record; `nil` if it has none that can be used.
    ///
    /// - Throws: ``ResumableUploadError/Kind/inUse``, `CocoaError`, also for a file that is no state file.
    func open() throws -> UploadRecord? {
        for _ in 0..<100 {
            guard let file = PrivateFile.open(url.path, O_RDWR | O_CREAT) else { throw FileError.writing(url.path, errno) }
            guard file.lock() else { break }
            // It may have been replaced or removed before it was locked.
            var status = stat()
            guard stat(url.path, &status) == 0, let own = file.regularStatus, own.st_ino == status.st_ino, own.st_dev == status.st_dev
            else { continue }
            // Another user could have put an upload of their own in its place, to be sent the file.
            guard !PrivateFile.isForeign(own, in: url.deletingLastPathComponent().path) else { throw FileError.reading(url.path, EPERM) }
            let data: Data
            do throws(SystemError) { data = try file.read(Self.longest, at: 0) } catch { throw FileError.reading(url.path, error.code) }
            let form = try? JSONDecoder().decode(Form.self, from: data)
            guard data.isEmpty || form != nil else { throw FileError.reading(url.path, ENODATA) }
            let record = try? JSONDecoder().decode(UploadRecord.self, from: data)
            state.withLock { $0 = State(file: file, hasRecord: !data.isEmpty) }
            return record?.format == UploadRecord.currentFormat ? record : nil
        }
        throw ResumableUploadError.file(.inUse, url, "another upload uses this state file")
    }

    /// What every version of a record has.
    private struct Form: Decodable {
        let format: Int
        let upload: String
    }

    /// Writes a record in place of the one that is there.
    func write(_ record: UploadRecord) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let bytes = try encoder.encode(record)
        guard let (file, new) = PrivateFile.create(beside: url.path) else { throw FileError.writing(url.path, errno) }
        do throws(SystemError) {
            // Locked before it has its name, so that at no moment another upload can have it.
            guard file.lock() else { throw SystemError() }
            try file.write(bytes)
            guard file.syncData(), rename(new, url.path) == 0 else { throw SystemError() }
        } catch {
            unlink(new)
            throw FileError.writing(url.path, error.code)
        }
        state.withLock { $0 = State(file: file, hasRecord: true) }
    }

    /// Removes the record, and keeps the lock.
    func forget() {
        state.withLock { state in
            guard let file = state.file else { return }
            file.truncate()
            state.hasRecord = false
        }
    }

    /// Ends the use of the file, which is kept if it has a record.
    func close() {
        state.withLock { state in
            if state.file != nil, !state.hasRecord { unlink(url.path) }
            state.file = nil
        }
    }
}
