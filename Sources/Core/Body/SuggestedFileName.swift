// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// The name of the file in which a response is stored: a name and never a path, also if a server or a URL says otherwise.
public enum SuggestedFileName {
    private static let longest = 200

    /// Returns the name that a `Content-Disposition` suggests (RFC 6266), or else that of the URL's path; `download` without either.
    ///
    /// `filename*` (RFC 8187) has precedence. Only what follows the last slash or backslash counts; control characters are removed, and at
    /// the beginning dots, hyphens, tildes, marks and other scalars that combine with a slash: the name is no hidden file, no option of a
    /// program that a shell gives `*`, and no home directory, as which `URL(fileURLWithPath:)` reads `~name`. It has 200 bytes of UTF-8 at
    /// most.
    public static func name(contentDisposition: String? = nil, url: URL) -> String {
        let last = url.path(percentEncoded: true).splitScalars(separator: "/").last.map(String.init)
        let candidates = [contentDisposition.flatMap(suggestion), last.map { $0.removingPercentEncoding ?? $0 }]
        return candidates.lazy.compactMap { $0.map(safe) }.first { !$0.isEmpty } ?? "download"
    }

    private static func safe(_ text: String) -> String {
        // Also marks that change the direction of text, which make a name read like another one. Before it is split, so that nothing is
        // removed between the pieces of a path afterwards.
        let visible = text.filterScalars { !isHidden($0) }
        let last = visible.splitScalars(omittingEmptySubsequences: false) { $0 == "/" || $0 == "\\" }.last ?? ""
        var name = last.dropScalars { ".-~".unicodeScalars.contains($0) || $0.properties.isWhitespace || combines($0) }
        while name.utf8.count > longest { name = name.dropLastScalars() }
        let result = String(name.trimmingScalars(while: \.properties.isWhitespace))
        return result.isFileName ? result : ""
    }

    /// Whether the scalar is a mark, or may become one Character with a slash before it: code that looks for separators by Character,
    /// as some of Foundation's does, finds none there. Letters and modifiers do so, too (U+0E33, U+FF9E, U+1F3FB).
    private static func combines(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: true
        default: "/\(scalar)".count == 1
        }
    }

    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: true
        default: false
        }
    }

    private static func suggestion(_ field: String) -> String? {
        let parameters = field.fieldParameters
        return parameters["filename*"]?.decodedExtendedValue(allowsLatin1: true) ?? parameters["filename"]
    }
}
