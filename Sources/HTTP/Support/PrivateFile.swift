// SPDX-License-Identifier: Apache-2.0

/// The files that Curlew makes for itself: temporary bodies, records, caches, cassettes, archives. All of them are created here.
///
/// Only their owner has access, from the moment at which they exist and also if the process's umask allows more. A symbolic link in their
/// place is not followed: another user may have put it there, in a directory that several share.
package enum PrivateFile {
    /// Opens a file without following a link or waiting for the other end of a pipe; `nil` on failure, with the reason in `errno`.
    ///
    /// - Parameter flags: with `O_CREAT`, and `O_EXCL` unless an existing file is used.
    package static func open(_ path: String, _ flags: Int32) -> Descriptor? {
        Descriptor.open(path, flags | O_NOFOLLOW | O_NONBLOCK)
    }

    /// Creates a file for reading and writing whose name can't be predicted: six random characters between two texts. `nil` on failure, with
    /// the reason in `errno`.
    package static func create(in directory: String, named prefix: String, _ suffix: String) -> (file: Descriptor, path: String)? {
        for _ in 0..<100 {
            let path = directory + "/" + prefix + randomName() + suffix
            if let file = open(path, O_RDWR | O_CREAT | O_EXCL) { return (file, path) }
            guard errno == EEXIST else { return nil }
        }
        return nil
    }

    /// Creates a hidden file in the directory of another one, which it is to replace. `nil` on failure, with the reason in `errno`.
    package static func create(beside path: String) -> (file: Descriptor, path: String)? {
        let url = URL(fileURLWithPath: path)
        // A name has at most 255 bytes.
        let name = String(decoding: url.lastPathComponent.utf8.prefix(200), as: UTF8.self)
        return create(in: url.deletingLastPathComponent().path, named: ".\(name).", ".new")
    }

    /// Six characters of names of temporary files.
    package static func randomName() -> String {
        let characters = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789".utf8)
        return String(decoding: (0..<6).compactMap { _ in characters.randomElement() }, as: UTF8.self)
    }

    /// Writes a new file and gives it a path in one step. What is there is replaced; of a symbolic link the link, and not what it leads to.
    ///
    /// - Parameter isDurable: whether to wait until it is on the disk, so that a crash of the system does not bring back what was there.
    /// - Throws: `CocoaError` with the path.
    package static func replace(_ path: String, with bytes: Data, isDurable: Bool = false) throws {
        guard let (file, new) = create(beside: path) else { throw FileError.writing(path, errno) }
        do throws(SystemError) {
            try file.write(bytes)
            guard !isDurable || file.sync() else { throw SystemError() }
            // Some file systems report failed writes only on close.
            try file.close()
            guard rename(new, path) == 0 else { throw SystemError() }
        } catch {
            unlink(new)
            throw FileError.writing(path, error.code)
        }
        if isDurable { _ = Descriptor.open(URL(fileURLWithPath: path).deletingLastPathComponent().path, O_RDONLY | O_DIRECTORY)?.sync() }
    }

    /// Creates a directory with access for its owner only, and the missing ones above it likewise. Does nothing if it exists.
    ///
    /// Not by `FileManager`, which sets the mode after creating the directory.
    ///
    /// - Throws: `CocoaError` with the path.
    package static func makeDirectory(_ path: String) throws {
        guard mkdir(path, 0o700) != 0 else { return }
        if errno == ENOENT {
            let parent = URL(fileURLWithPath: path).deletingLastPathComponent().path
            if parent != path {
                try makeDirectory(parent)
                if mkdir(path, 0o700) == 0 { return }
            }
        }
        let code = errno
        var status = stat()
        guard code == EEXIST, stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { throw FileError.writing(path, code) }
    }

    /// Whether a file in a directory may be another user's trap: neither this user owns it nor the owner of the directory, who can replace
    /// every file in it.
    package static func isForeign(_ status: stat, in directory: String) -> Bool {
        guard status.st_uid != geteuid() else { return false }
        var parent = stat()
        return stat(directory, &parent) != 0 || status.st_uid != parent.st_uid
    }
}
