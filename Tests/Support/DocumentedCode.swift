// SPDX-License-Identifier: Apache-2.0

/// Compares the code in a page with code that is compiled and run.
///
/// In the page it is in Swift code blocks, in the source between `// snippet: NAME` and `// end`; both must be identical up to
/// indentation.
public enum DocumentedCode {
    private struct Region {
        /// The first line, counted from 1.
        let line: Int
        var code: [String] = []
    }

    /// Returns a sentence for each block found in the page but in none of the sources, or the reverse. Throws if a file can't be read.
    public static func differences(page: URL, sources: URL...) throws -> [String] {
        try differences(page: page, sources: sources)
    }

    /// The same for a list of sources.
    public static func differences(page: URL, sources: [URL]) throws -> [String] {
        guard !(try blocks(of: page)).isEmpty else { return ["\(page.lastPathComponent) has no code"] }
        return try differences(pages: [page], sources: sources)
    }

    /// The same for a list of pages, whose code is in any of the sources, and the reverse.
    public static func differences(pages: [URL], sources: [URL]) throws -> [String] {
        let code = try pages.map { try blocks(of: $0) }
        let snippets = try sources.map { source in
            regions(in: try lines(of: source), from: { $0.hasPrefix("// snippet: ") }, to: { $0 == "// end" })
        }
        let names = sources.map(\.lastPathComponent).joined(separator: ", ")
        let titles = pages.map(\.lastPathComponent).joined(separator: ", ")
        return zip(pages, code).flatMap { missing($1, of: $0, in: snippets.flatMap(\.self), named: names) }
            + zip(sources, snippets).flatMap { missing($1, of: $0, in: code.flatMap(\.self), named: titles) }
    }

    private static func blocks(of page: URL) throws -> [Region] {
        regions(in: try lines(of: page), from: { $0 == "```swift" }, to: { $0 == "```" })
    }

    private static func missing(_ regions: [Region], of file: URL, in others: [Region], named name: String) -> [String] {
        regions.filter { region in !others.contains { $0.code == region.code } }
            .map { "\(file.lastPathComponent):\($0.line) is not in \(name)" }
    }

    private static func lines(of file: URL) throws -> [String] {
        try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n")
    }

    /// Returns the lines between two marks, without their common indentation.
    private static func regions(in lines: [String], from isStart: (String) -> Bool, to isEnd: (String) -> Bool) -> [Region] {
        var regions: [Region] = []
        var current: Region?
        for (number, line) in lines.enumerated() {
            let trimmed = line.trimmingCharacters(in: .whitespaces)
            if isStart(trimmed) {
                current = Region(line: number + 1)
            } else if isEnd(trimmed), let region = current {
                regions.append(Region(line: region.line, code: outdented(region.code)))
                current = nil
            } else {
                current?.code.append(line)
            }
        }
        return regions
    }

    private static func outdented(_ code: [String]) -> [String] {
        let indentation = code.filter { !$0.isEmpty }.map { $0.prefix { $0 == " " }.count }.min() ?? 0
        return code.map { String($0.dropFirst(indentation)) }
    }
}
