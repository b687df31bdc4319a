// SPDX-License-Identifier: Apache-2.0
import Curlew

/// Where the body of a response goes in a command of curl: to standard output, or to a file that is there from its first byte on.
final class CurlSink {
    private let output: CurlExtras.Output
    private var descriptor: Int32?
    /// The path of the file, which the response may have named.
    private(set) var path: String?
    /// The first byte that is asked for; 0 for all.
    private(set) var offset: Int64 = 0
    private(set) var written: Int64 = 0
    /// The size of the file before an attempt, to which it is cut before the next one.
    private var kept: off_t = 0

    var isFile: Bool { output.path != nil }
    /// Whether the file is there, and nothing is to be sent.
    var isSkipped: Bool { output.skipsExisting && output.path.map { access($0, F_OK) == 0 } == true }

    init(_ output: CurlExtras.Output) {
        self.output = output
        path = output.path
        guard output.offset != 0 else { return }
        var status = stat()
        if output.offset > 0 {
            offset = output.offset
        } else if let path, stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
            offset = Int64(status.st_size)
        }
    }

    deinit {
        if let descriptor { close(descriptor) }
    }

    /// Opens the file, unless it is open.
    ///
    /// - Parameter head: may name it.
    func begin(_ head: ResponseHead?, url: String) throws {
        guard let given = output.path, descriptor == nil else { return }
        var path = given
        if output.takesSuggestedName, let field = head?.value(for: "Content-Disposition"), let parsed = URL(string: url) {
            // Without a name in the field, that of the URL is kept.
            let name = SuggestedFileName.name(contentDisposition: field, url: parsed)
            if name != SuggestedFileName.name(url: parsed) { path = output.resolved(name) }
        }
        if output.createsFolders, let slash = path.unicodeScalars.lastIndex(of: "/"), slash > path.startIndex {
            try? FileManager.default.createDirectory(atPath: String(path[..<slash]), withIntermediateDirectories: true)
        }
        (descriptor, self.path) = try open(path)
        guard offset > 0 || output.offset != 0, let descriptor else { return }
        kept = max(lseek(descriptor, 0, SEEK_END), 0)
    }

    private func open(_ path: String) throws -> (Int32, String) {
        let flags = O_WRONLY | O_CREAT | O_CLOEXEC
        guard !output.replacesFile else {
            let descriptor = systemOpen(path, flags | (offset > 0 ? 0 : O_TRUNC), output.mode)
            guard descriptor >= 0 else { throw FileFailure(path: path, code: errno) }
            return (descriptor, path)
        }
        // As curl, a hundred names are tried beside an existing one, but not beside one that the server has chosen.
        for number in 0...(output.takesSuggestedName ? 0 : 100) {
            let name = number == 0 ? path : "\(path).\(number)"
            let descriptor = systemOpen(name, flags | O_EXCL, output.mode)
            if descriptor >= 0 { return (descriptor, name) }
            guard errno == EEXIST else { throw FileFailure(path: name, code: errno) }
        }
        throw FileFailure(path: path, code: EEXIST)
    }

    func write(_ piece: Data) throws {
        if let descriptor, let path {
            do throws(Output.Failure) {
                try Output(descriptor: descriptor).write(piece)
            } catch {
                throw FileFailure(path: path, code: error.code)
            }
        } else {
            try Output.standard.write(piece)
        }
        written += Int64(piece.count)
    }

    /// Cuts the file to what was there before a failed attempt.
    func reset() {
        written = 0
        guard let descriptor else { return }
        ftruncate(descriptor, kept)
        lseek(descriptor, kept, SEEK_SET)
    }

    /// Ends the file.
    func finish(isFailed: Bool, modified: Date?) {
        guard let descriptor, let path else { return }
        if let modified, output.keepsTime, !isFailed {
            let time = timespec(tv_sec: time_t(modified.timeIntervalSince1970), tv_nsec: 0)
            futimens(descriptor, [time, time])
        }
        close(descriptor)
        self.descriptor = nil
        var status = stat()
        // Not a device, such as /dev/null.
        if isFailed, output.removesOnError, lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG { unlink(path) }
    }
}

private func systemOpen(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 { open(path, flags, mode) }
