// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// MIME types by file extension.
package enum MIMETypes {
    /// The type of files with an unknown extension (RFC 2046, section 4.5.1).
    static let unknown = "application/octet-stream"

    /// The system's types, read on first use; empty if the file is missing.
    private static let system: [String: String] = {
        guard let bytes = FileManager.default.contents(atPath: "/etc/mime.types") else { return [:] }
        return parse(String(decoding: bytes, as: UTF8.self))
    }()

    /// Returns the type for an extension, case-insensitively: the system's, otherwise a common one, otherwise ``unknown``.
    package static func type(forExtension pathExtension: String) -> String {
        let name = pathExtension.lowercased()
        return system[name] ?? common[name] ?? unknown
    }

    /// Parses lines of a type and its extensions; `#` starts a comment. Malformed lines are skipped, and so are types that are invalid in
    /// a header. The first type of an extension wins.
    static func parse(_ text: String) -> [String: String] {
        var types: [String: String] = [:]
        for line in text.split(whereSeparator: \.isNewline) {
            let words = line.prefixScalars { $0 != "#" }.split(whereSeparator: \.isWhitespace)
            guard let type = words.first, isType(type) else { continue }
            for name in words.dropFirst() where types[name.lowercased()] == nil { types[name.lowercased()] = String(type) }
        }
        return types
    }

    /// Whether the text is two tokens separated by a slash (RFC 9110, section 8.3.1).
    private static func isType(_ text: Substring) -> Bool {
        let parts = text.splitScalars(separator: "/", omittingEmptySubsequences: false)
        return parts.count == 2 && parts.allSatisfy { HTTPToken.isToken(String($0)) }
    }

    /// The fallback for extensions missing from the system's table.
    private static let common: [String: String] = [
        "7z": "application/x-7z-compressed", "aac": "audio/aac", "apk": "application/vnd.android.package-archive",
        "avi": "video/x-msvideo", "avif": "image/avif", "bin": "application/octet-stream", "bmp": "image/bmp", "bz2": "application/x-bzip2",
        "css": "text/css", "csv": "text/csv", "doc": "application/msword",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "epub": "application/epub+zip",
        "flac": "audio/flac", "gif": "image/gif", "gz": "application/gzip", "heic": "image/heic", "heif": "image/heif",
        "htm": "text/html", "html": "text/html", "ico": "image/vnd.microsoft.icon", "ics": "text/calendar",
        "jar": "application/java-archive",
        "jpeg": "image/jpeg", "jpg": "image/jpeg", "js": "text/javascript", "json": "application/json", "jsonld": "application/ld+json",
        "m4a": "audio/mp4", "m4v": "video/mp4", "md": "text/markdown", "mid": "audio/midi", "midi": "audio/midi", "mjs": "text/javascript",
        "mkv": "video/x-matroska", "mov": "video/quicktime", "mp3": "audio/mpeg", "mp4": "video/mp4", "mpeg": "video/mpeg",
        "mpg": "video/mpeg", "odp": "application/vnd.oasis.opendocument.presentation",
        "ods": "application/vnd.oasis.opendocument.spreadsheet", "odt": "application/vnd.oasis.opendocument.text", "oga": "audio/ogg",
        "ogg": "audio/ogg", "ogv": "video/ogg", "opus": "audio/ogg", "otf": "font/otf", "pdf": "application/pdf", "png": "image/png",
        "ppt": "application/vnd.ms-powerpoint",
        "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation", "rar": "application/vnd.rar",
        "rtf": "application/rtf", "svg": "image/svg+xml", "tar": "application/x-tar", "tif": "image/tiff", "tiff": "image/tiff",
        "ts": "video/mp2t", "ttf": "font/ttf", "txt": "text/plain", "wasm": "application/wasm", "wav": "audio/x-wav", "weba": "audio/webm",
        "webm": "video/webm", "webp": "image/webp", "woff": "font/woff", "woff2": "font/woff2", "xhtml": "application/xhtml+xml",
        "xls": "application/vnd.ms-excel", "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "xml": "application/xml", "xz": "application/x-xz", "yaml": "application/yaml", "yml": "application/yaml",
        "zip": "application/zip", "zst": "application/zstd",
    ]
}
