// SPDX-License-Identifier: Apache-2.0

/// The compiler of the tests, for programs that must not compile.
public enum SwiftCompiler {
    /// Whether it is installed here, as it is wherever the tests were built.
    public static var isInstalled: Bool { ChildProcess.path(of: "swiftc") != nil }

    /// Type-checks a program against the modules of this build, and returns its errors: each with its line, such as `3: message`.
    ///
    /// - Parameter version: the language mode.
    public static func errors(in program: String, version: Int = 6) async throws -> [String] {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let file = try directory.write(Data(program.utf8), to: "program.swift")
        guard let build = places.first(where: { FileManager.default.fileExists(atPath: $0.appendingPathComponent("Modules").path) }) else {
            throw TestError("The build has no folder of modules")
        }
        var arguments = ["-typecheck", "-swift-version", "\(version)", "-I", build.appendingPathComponent("Modules").path]
        for map in try moduleMaps(of: build) { arguments += ["-Xcc", "-fmodule-map-file=\(map)"] }
        // The child's errors go where this process's go; a shell joins them to its output.
        let command = (["swiftc"] + arguments + [file.path]).map { "'\($0)'" }.joined(separator: " ")
        let (_, output) = try await ChildProcess("sh", "-c", "\(command) 2>&1").finish()
        let mark = "\(file.path):"
        return output.filter { $0.hasPrefix(mark) && $0.contains(": error: ") }.map { line in
            let number = line.dropFirst(mark.count).prefix { $0 != ":" }
            return "\(number): " + (line.components(separatedBy: ": error: ").last ?? "")
        }
    }

    private static var places: [URL] {
        [Bundle.main.bundleURL, URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()]
    }

    /// The module maps of the C targets, which the Swift modules import.
    private static func moduleMaps(of build: URL) throws -> [String] {
        let built = try FileManager.default.contentsOfDirectory(atPath: build.path).filter { $0.hasSuffix(".build") }
            .map { build.appendingPathComponent("\($0)/module.modulemap").path }
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../Sources").standardized
        let system = ["CLibcurl", "CBrotli", "CZstd"].map { sources.appendingPathComponent("\($0)/module.modulemap").path }
        return (built + system).filter { FileManager.default.fileExists(atPath: $0) }
    }
}
