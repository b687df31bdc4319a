// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The XDG Base Directory Specification, 0.8.
enum XDG {
    /// The base directory of a user's caches: `$XDG_CACHE_HOME` if it is an absolute path, as relative ones must be ignored; otherwise
    /// `~/.cache`.
    static func cacheDirectory(in environment: [String: String]) -> URL? {
        if let path = environment["XDG_CACHE_HOME"], path.hasBytePrefix("/") { return URL(fileURLWithPath: path, isDirectory: true) }
        let home = environment["HOME"].flatMap { $0.hasBytePrefix("/") ? $0 : nil } ?? registeredHome
        return home.map { URL(fileURLWithPath: $0, isDirectory: true).appendingPathComponent(".cache", isDirectory: true) }
    }

    /// The home directory from the system's user database.
    private static var registeredHome: String? {
        var (entry, result) = (passwd(), UnsafeMutablePointer<passwd>?.none)
        var buffer = [CChar](repeating: 0, count: 16 << 10)
        guard getpwuid_r(getuid(), &entry, &buffer, buffer.count, &result) == 0, result != nil, let home = entry.pw_dir else { return nil }
        return String(cString: home)
    }
}

/// The Cache Directory Tagging Standard: backup programs skip a directory that contains this file.
enum CacheDirectoryTag {
    static let name = "CACHEDIR.TAG"
    static let text = """
        Signature: 8a477f597d28d172789f06886806bc55
        # This file is a cache directory tag made by Curlew.
        # For information about cache directory tags, see https://bford.info/cachedir/

        """

    /// Writes the tag into a directory that has none. A failure is ignored, because the cache works without the tag.
    static func put(into directory: String) {
        guard let file = PrivateFile.open(directory + "/" + name, O_WRONLY | O_CREAT | O_EXCL) else { return }
        try? file.write(Data(text.utf8))
    }
}

extension DiskCacheStorage {
    /// Returns the default directory for a cache of this program: `~/.cache/PROGRAM/NAME`, where `$XDG_CACHE_HOME` replaces `~/.cache`; on
    /// macOS in the user's `Library/Caches`.
    ///
    /// - Parameters:
    ///   - name: the name of the cache: one or more path components.
    ///   - program: by default the name of the running executable.
    /// - Returns: a directory that need not exist; within the system's temporary directory for a user without a home.
    public static func defaultDirectory(named name: String, program: String? = nil) -> URL {
        let base = userCacheDirectory ?? FileManager.default.temporaryDirectory
        return base.appendingPathComponent(program ?? programName, isDirectory: true).appendingPathComponent(name, isDirectory: true)
    }

    private static var programName: String {
        let name = CommandLine.arguments.first?.splitScalars(separator: "/").last.map(String.init) ?? ""
        return ["", ".", ".."].contains(name) ? "curlew" : name
    }
}
