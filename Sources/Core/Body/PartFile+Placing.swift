// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

extension PartFile {
    /// Moves the closed file to its destination atomically; to another file system as a copy, after which the original is removed.
    ///
    /// - Throws: `CocoaError` with the path, for example `fileWriteFileExists` if there is a file and `replacing` is `false`.
    package func move(to destination: URL, replacing: Bool, creatingDirectories: Bool) throws {
        if creatingDirectories {
            try FileManager.default.createDirectory(at: destination.deletingLastPathComponent(), withIntermediateDirectories: true)
        }
        if replacing { try Self.checkReplaceable(destination) }
        do {
            try place(at: destination.path, replacing: replacing)
        } catch let error as CocoaError where error.posixCode == .EXDEV {
            try copy(to: destination, replacing: replacing)
        }
        wasPlaced()
    }

    /// Links or renames the file to its destination. A file without a name is linked at once, unless it replaces another one: links never
    /// replace, so it is named first and then renamed.
    private func place(at target: String, replacing: Bool) throws {
        let directory = URL(fileURLWithPath: target).deletingLastPathComponent()
        let permissions = isPrivate ? nil : Self.permissions(in: directory)
        // A file in another directory gets them only afterwards: more users may have access to that directory.
        let isBeside = url.deletingLastPathComponent().path == directory.path
        if !isNamed, !replacing, let file {
            mark?(file.number)
            if isBeside { allow(permissions, on: file) }
            let status = linkUnnamed(to: target)
            guard status != 0 else {
                if !isBeside { allow(permissions, on: file) }
                return
            }
            guard [EXDEV, EPERM, ENOTSUP, EMLINK, ENOSYS].contains(status) else { throw FileError.writing(target, status) }
        }
        try giveName()
        // It may be a copy of the one that had no name.
        let named = Descriptor.open(url.path, O_RDONLY | O_NOFOLLOW)
        if let named { withExtendedLifetime(named) { mark?(named.number) } }
        if isBeside { allow(permissions, on: named) }
        try rename(url.path, to: target, replacing: replacing)
        if !isBeside { allow(permissions, on: named) }
    }

    /// Sets the permissions of the file. Ignored by file systems without them.
    private func allow(_ permissions: mode_t?, on file: Descriptor?) {
        if let permissions, let file { _ = fchmod(file.number, permissions) }
    }

    /// Throws unless the destination is free, a file or a symbolic link: replacing a directory would remove what is in it.
    package static func checkReplaceable(_ destination: URL) throws {
        var status = stat()
        guard lstat(destination.path, &status) == 0 else { return }
        let kind = status.st_mode & S_IFMT
        guard kind == S_IFREG || kind == S_IFLNK else { throw FileError.writing(destination.path, EEXIST) }
    }

    private func rename(_ source: String, to target: String, replacing: Bool) throws {
        let status = replacing ? systemRename(source, target) : renameExclusively(source, target)
        guard status == 0 else { throw FileError.writing(target, errno) }
    }

    /// Copies to a hidden file beside the destination, syncs that to the disk, and renames it.
    private func copy(to destination: URL, replacing: Bool) throws {
        let copy = try PartFile(in: destination.deletingLastPathComponent(), for: destination.lastPathComponent)
        do {
            guard let source = Descriptor.open(url.path, O_RDONLY) else { throw FileError.reading(url.path, errno) }
            try copy.append(from: source, path: url.path)
            guard copy.file?.sync() == true else { throw FileError.writing(copy.url.path, errno) }
            try copy.close()
            if let mark { copy.setMark(mark) }
            try copy.place(at: destination.path, replacing: replacing)
        } catch {
            copy.discard()
            throw error
        }
        unlink(url.path)
    }
}

// MARK: - Names

extension PartFile {
    /// Whether a file name has the form of a part file's.
    package static func isName(_ name: String) -> Bool {
        name.hasBytePrefix(".") && name.hasByteSuffix(".part") && name.utf8.count > 6 && name.isFileName
    }

    /// The URL of the part file of a destination, which every download to it uses.
    ///
    /// - Parameter kind: the extension, up to 40 bytes. Names of different kinds end in different ways, so that the file of one kind for a
    ///   destination is not that of another kind for one whose name is longer.
    package static func stableURL(for destination: URL, kind: String = "part") -> URL {
        destination.deletingLastPathComponent().appendingPathComponent(".\(stem(of: destination.lastPathComponent)).\(kind)")
    }
}

// MARK: - Copies

extension PartFile {
    /// The ways to copy from a file without reading it into memory.
    struct CopyWays: OptionSet {
        let rawValue: Int
        /// By sharing its blocks (a reflink), where the file system can do that: of any length at once.
        static let clone = CopyWays(rawValue: 1)
        /// In the kernel.
        static let kernel = CopyWays(rawValue: 2)
    }

    /// The most bytes that are copied at once, as others wait meanwhile.
    private static let largestCopy: Int64 = 1 << 20

    /// Appends the first bytes of a range of another file: all of them if the file systems share blocks, else a part.
    ///
    /// - Returns: their number; `nil` if the system can't copy between these files, and nothing was appended.
    /// - Throws: `CocoaError` with the path, as ``write(_:)`` does.
    func append(_ range: FileRange) throws -> Int64? {
        try appendUnbuffered { file in
            let end = file.seek(to: 0, from: SEEK_CUR)
            guard end >= 0, range.count > 0 else { return nil }
            if copyWays.contains(.clone), cloneRange(range, to: file, at: end) {
                return file.seek(to: end + range.count) == end + range.count ? range.count : nil
            }
            guard copyWays.contains(.kernel) else { return nil }
            return copyRange(range, atMost: Self.largestCopy, to: file)
        }
    }
}

private func systemRename(_ source: String, _ target: String) -> Int32 { rename(source, target) }

/// Renames a file unless the target exists. Creating a second link fails atomically if it does, which no check beforehand can promise; on
/// file systems without links the target is checked.
private func renameExclusively(_ source: String, _ target: String) -> Int32 {
    if link(source, target) == 0 { return unlink(source) }
    guard [EPERM, ENOTSUP, EMLINK, ENOSYS].contains(errno) else { return -1 }
    guard access(target, F_OK) != 0 else {
        errno = EEXIST
        return -1
    }
    return rename(source, target)
}

extension CocoaError {
    fileprivate var posixCode: POSIXErrorCode? { (userInfo["NSUnderlyingError"] as? POSIXError)?.code }
}
