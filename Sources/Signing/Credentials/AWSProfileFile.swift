// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// One of the files that AWS's programs share, in their form of INI.
///
/// Lines that begin with `#` or `;` are comments, and so is what follows either after a blank. Lines that are indented further than the
/// setting above belong to it, and are skipped. Names of settings are case-insensitive; of a repeated one, the last counts.
struct AWSProfileFile {
    let path: String
    /// The settings of the profiles, without empty ones, by their names in lower case.
    private(set) var profiles: [String: [String: String]] = [:]

    /// Reads a file; one that does not exist is empty.
    ///
    /// - Parameter isConfig: whether the sections are those of the configuration, `[default]` and `[profile NAME]`, among others that are no
    ///   profiles.
    init(readingFrom path: String, isConfig: Bool) throws(AWSCredentialsError) {
        let bytes: Data
        do {
            bytes = try Data(readingFrom: URL(fileURLWithPath: path))
        } catch let error as CocoaError where error.code == .fileReadNoSuchFile {
            bytes = Data()
        } catch {
            throw .unreadableFile(path, FileError.text(error, of: path))
        }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .unreadableFile(path, "the file \"\(path)\" is not UTF-8") }
        try self.init(text, of: path, isConfig: isConfig)
    }

    init(_ text: String, of path: String, isConfig: Bool) throws(AWSCredentialsError) {
        self.path = path
        var section = Section.none
        var indentation = Int.max
        for (index, line) in text.splitScalars(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let content = line.trimmingScalars { $0 == " " || $0 == "\t" || $0 == "\r" }
            guard let first = content.utf8.first, !"#;".utf8.contains(first) else { continue }
            let indent = line.prefixScalars { $0 == " " || $0 == "\t" }.utf8.count
            if indent > indentation { continue }
            if first == UInt8(ascii: "[") {
                guard let end = content.unicodeScalars.firstIndex(of: "]") else { throw .malformedFile(path, line: index + 1) }
                section = Section(content[..<end].dropFirstScalars().trimmingBlanks, isConfig: isConfig)
                if case .profile(let name) = section { profiles[name] = profiles[name] ?? [:] }
                indentation = .max
                continue
            }
            let parts = content.splitScalars(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, section != .none else { throw .malformedFile(path, line: index + 1) }
            indentation = indent
            guard case .profile(let name) = section else { continue }
            let value = Self.withoutComment(parts[1]).trimmingBlanks
            profiles[name]?[parts[0].trimmingBlanks.lowercased()] = value.isEmpty ? nil : String(value)
        }
    }

    private enum Section: Equatable {
        case none, other
        case profile(String)

        init(_ title: Substring, isConfig: Bool) {
            guard isConfig, title != "default" else {
                self = .profile(String(title))
                return
            }
            let words = title.splitScalars(maxSplits: 1) { $0 == " " || $0 == "\t" }
            guard words.count == 2, words[0] == "profile" else {
                self = .other
                return
            }
            self = .profile(String(words[1].trimmingScalars { $0 == " " || $0 == "\t" || $0 == "\"" || $0 == "'" }))
        }
    }

    private static func withoutComment(_ value: Substring) -> Substring {
        var before: UInt8 = 0
        let end = value.utf8.indices.first { index in
            defer { before = value.utf8[index] }
            return before.isBlank && "#;".utf8.contains(value.utf8[index])
        }
        return value[..<(end ?? value.endIndex)]
    }
}
