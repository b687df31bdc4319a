// SPDX-License-Identifier: Apache-2.0
import Curlew

/// A file that appears when all of it is written.
///
/// It is begun under another name beside its place, so that a folder that can't be written to is found out before the work.
final class NewFile: Sendable {
    struct Refusal: Error {
        let outcome: Outcome
    }

    private let path: String
    private let replaces: Bool
    private let temporary: String
    private let descriptor: Int32

    /// - Parameter replacing: whether a file or link there is replaced; nothing else is.
    init(_ path: String, replacing: Bool) throws(Refusal) {
        var status = stat()
        if lstat(path, &status) == 0 {
            guard replacing else { throw Refusal(outcome: Self.existing(path)) }
            guard status.st_mode & S_IFMT == S_IFREG || status.st_mode & S_IFMT == S_IFLNK else {
                throw Refusal(
                    outcome: Outcome(status: .file, message: "\(path): not a regular file, so --force can't replace it"))
            }
        }
        (self.path, replaces) = (path, replacing)
        let folder = path.unicodeScalars.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
        temporary = "\(folder).curlew-\(UUID().uuidString)"
        descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw Refusal(outcome: Outcome(FileFailure(path: path, code: errno))) }
    }

    deinit {
        close(descriptor)
        unlink(temporary)
    }

    /// Writes the contents, and gives the file its name. Returns what failed.
    func write(_ contents: Data) -> Outcome? {
        // The program may exit before this is released.
        defer { unlink(temporary) }
        do throws(Output.Failure) {
            try Output(descriptor: descriptor).write(contents)
        } catch {
            return Outcome(FileFailure(path: path, code: error.code))
        }
        // A link to the file, unlike a new name for it, replaces none that has come meanwhile.
        guard (replaces ? rename(temporary, path) : link(temporary, path)) != 0 else { return nil }
        return errno == EEXIST ? Self.existing(path) : Outcome(FileFailure(path: path, code: errno))
    }

    private static func existing(_ path: String) -> Outcome {
        Outcome(status: .file, message: "\(path): file exists; use --force to replace it")
    }
}
