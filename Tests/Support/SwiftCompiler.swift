// SPDX-License-Identifier: Apache-2.0

/// The compiler of the tests, for programs that must not compile.
public enum SwiftCompiler {
    /// Whether it is installed here, as it is wherever the tests were built.
    public static var isInstalled: Bool { ChildProcess.path(of: "swiftc") != nil }

    /// Type-checks a program against the modules of this build, and returns its errors: each with its line, such as `3: message`.
    ///
    /// - Parameters:
    ///   - version: the language mode.
    ///   - flags: further arguments of the compiler.
    public static func errors(in program: String, version: Int = 6, flags: [String] = []) async throws -> [String] {
        try await errors(in: ["program.swift": program], version: version, flags: flags).map { error in
            String(error.dropFirst("program.swift:".count))
        }
    }

    /// Type-checks the files of a module, by their names; each error begins with that of its file, such as `a.swift:3: message`.
    public static func errors(in files: [String: String], version: Int = 6, flags: [String] = []) async throws -> [String] {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let paths = try files.sorted { $0.key < $1.key }.map { try directory.write(Data($0.value.utf8), to: $0.key).path }
        let arguments = try ["swiftc", "-typecheck", "-swift-version", "\(version)"] + searchPaths() + flags + paths
        let output = try await run(arguments)
        return output.compactMap { line in
            guard line.contains(": error: "), let file = paths.first(where: { line.hasPrefix("\($0):") }) else {
                // Errors without a place, such as a module that does not exist for another reason than its name.
                return line.hasPrefix("error: ") || line.hasPrefix("<unknown>:0: error: ") ? line : nil
            }
            let number = line.dropFirst(file.count + 1).prefix { $0 != ":" }
            let message = line.components(separatedBy: ": error: ").last ?? ""
            return "\(URL(fileURLWithPath: file).lastPathComponent):\(number): \(message)"
        }
    }

    /// A public symbol of a module.
    public struct Symbol: Sendable {
        /// The names of its types, and its own, such as `["URLSession", "data(for:delegate:)"]`.
        public let path: [String]
        /// Such as `swift.class`.
        public let kind: String
    }

    /// The public symbols of a module of this build or of the toolchain, also those that it adds to types of other modules.
    public static func symbols(of module: String) async throws -> [Symbol] {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let target = try await run(["swiftc", "-print-target-info"]).joined()
        let information = try JSONDecoder().decode(TargetInformation.self, from: Data(target.utf8))
        let output = try await run(
            ["swift", "symbolgraph-extract", "-module-name", module, "-target", information.target.unversionedTriple] + searchPaths()
                + ["-minimum-access-level", "public", "-skip-synthesized-members", "-output-dir", directory.url.path])
        let graphs = try FileManager.default.contentsOfDirectory(atPath: directory.url.path).filter { $0.hasSuffix(".symbols.json") }
        guard !graphs.isEmpty else { throw TestError("No symbols of \(module): \(output.joined(separator: "\n"))") }
        return try graphs.flatMap { graph in
            try JSONDecoder().decode(SymbolGraph.self, from: Data(contentsOf: directory.file(graph))).symbols.map {
                Symbol(path: $0.pathComponents, kind: $0.kind.identifier)
            }
        }
    }

    private struct TargetInformation: Decodable {
        struct Target: Decodable {
            let unversionedTriple: String
        }

        let target: Target
    }

    private struct SymbolGraph: Decodable {
        struct Symbol: Decodable {
            struct Kind: Decodable {
                let identifier: String
            }

            let kind: Kind
            let pathComponents: [String]
        }

        let symbols: [Symbol]
    }

    /// The lines that a command prints, errors among them: the child's errors go where this process's go, so a shell joins them to its output.
    private static func run(_ arguments: [String]) async throws -> [String] {
        let command = arguments.map { "'\($0)'" }.joined(separator: " ")
        let (_, output) = try await ChildProcess("sh", "-c", "\(command) 2>&1").finish()
        return output
    }

    private static func searchPaths() throws -> [String] {
        guard let build = places.first(where: { FileManager.default.fileExists(atPath: $0.appendingPathComponent("Modules").path) }) else {
            throw TestError("The build has no folder of modules")
        }
        return ["-I", build.appendingPathComponent("Modules").path]
            + (try moduleMaps(of: build)).flatMap { ["-Xcc", "-fmodule-map-file=\($0)"] }
    }

    private static var places: [URL] {
        [Bundle.main.bundleURL, URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()]
    }

    /// The module maps of the C targets, which the Swift modules import.
    private static func moduleMaps(of build: URL) throws -> [String] {
        let built = try FileManager.default.contentsOfDirectory(atPath: build.path).filter { $0.hasSuffix(".build") }
            .map { build.appendingPathComponent("\($0)/module.modulemap").path }
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../Sources").standardized
        let system = ["CLibcurl", "CBrotli", "CHiredis", "CZstd"].map { sources.appendingPathComponent("\($0)/module.modulemap").path }
        return (built + system).filter { FileManager.default.fileExists(atPath: $0) }
    }
}
