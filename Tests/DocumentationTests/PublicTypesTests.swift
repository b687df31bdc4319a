// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Testing

/// Names of public types are unambiguous in a file that imports several products: ``publicTypes`` compiles, and is complete.
@Suite struct PublicTypesTests {
    /// A public type at the top level of a file.
    private struct Declaration {
        /// The folder of its module.
        let module: String
        let name: String
        let isGeneric: Bool
    }

    /// Folders of modules that exist with a trait only, or whose names replace those of others (`CurlewAlamofire`).
    private static let unlisted: Set = ["Alamofire", "HTTPTypes", "Lifecycle", "Observability", "Redis"]
    private static let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()

    private static func declarations() throws -> [Declaration] {
        let sources = here.appendingPathComponent("../../Sources").standardizedFileURL
        let files = FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil)?.compactMap { $0 as? URL } ?? []
        return try files.filter { $0.pathExtension == "swift" && !$0.path.contains(".docc/") }.flatMap { file in
            let module = file.pathComponents[sources.pathComponents.count]
            return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").compactMap { declaration(in: $0, of: module) }
        }
    }

    private static func declaration(in line: Substring, of module: String) -> Declaration? {
        guard !line.hasPrefix(" ") else { return nil }
        let words = line.split(separator: " ").drop { $0.hasPrefix("@") }
        guard words.first == "public" || words.first == "open" else { return nil }
        let rest = words.dropFirst().drop { ["final", "indirect", "nonisolated"].contains($0) }
        guard let kind = rest.first, ["struct", "class", "enum", "protocol", "actor", "typealias"].contains(kind),
            let text = rest.dropFirst().first
        else { return nil }
        let name = text.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
        // Not part of the interface, though public.
        guard !name.hasPrefix("_") else { return nil }
        return Declaration(module: module, name: String(name), isGeneric: text.dropFirst(name.count).hasPrefix("<"))
    }

    @Test func `no name is that of types in two modules`() throws {
        let modules = Dictionary(grouping: try Self.declarations(), by: \.name).mapValues { Set($0.map(\.module)) }
        #expect(modules.count > 300)
        // The module for programs that were written for Alamofire 4 has its dictionary in place of the type that it re-exports: a file that
        // imports `Curlew` as well writes `CurlewHTTP.HTTPHeaders` or `CurlewAlamofire.HTTPHeaders`. For the tasks of its requests it has
        // Apple's names, as the module of these names has: a file imports one or the other.
        let same = modules.filter { $0.value.count > 1 && $0.key != "HTTPHeaders" && $0.value != ["Alamofire", "URLSession"] }
        #expect(same.isEmpty)
    }

    @Test func `every public type is named beside those of all other products`() throws {
        let text = try String(contentsOf: Self.here.appendingPathComponent("PublicTypes.swift"), encoding: .utf8)
        let named = Set(text.split { !$0.isLetter && !$0.isNumber && $0 != "_" })
        for type in try Self.declarations() where !type.isGeneric && !Self.unlisted.contains(type.module) {
            #expect(publicTypes[type.module] != nil && named.contains(Substring(type.name)), "\(type.module): \(type.name)")
        }
    }
}
