// SPDX-License-Identifier: Apache-2.0
import CurlewAlamofire
import CurlewTestSupport
import Foundation
import Testing

/// A program written for Alamofire 4, with only its import line changed: Tests/AlamofireSample.
@Suite(.timeLimit(.minutes(2))) struct SampleProgramTests {
    @Test("it runs, and all its own checks pass") func allChecksPass() async throws {
        let server = try LoopbackServer.standard()
        let directory = try TemporaryDirectory()
        let output = directory.file("output")
        let status = try await run(Self.path(), server.url(""), output: output.path)
        let lines = try String(contentsOf: output, encoding: .utf8).split(separator: "\n")
        #expect(lines.filter { !$0.hasPrefix("ok ") } == [])
        #expect(lines.count >= 30)
        #expect(status == 0)
    }

    /// The program is built next to the tests.
    private static func path() throws -> String {
        let directories = [Bundle.main.bundleURL, URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()]
        let paths = (directories + directories.map { $0.deletingLastPathComponent() })
            .map { $0.appendingPathComponent("AlamofireSample").path }
        return try #require(paths.first { FileManager.default.isExecutableFile(atPath: $0) }, "not next to the tests: \(paths)")
    }

    /// Runs a program and returns its exit status, or −1 if a signal ended it.
    private func run(_ path: String, _ argument: String, output: String) async throws -> Int32 {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT, 0o600)
        let arguments: [UnsafeMutablePointer<CChar>?] = [strdup(path), strdup(argument), nil]
        let environment: [UnsafeMutablePointer<CChar>?] = ProcessInfo.processInfo.environment.map { strdup("\($0)=\($1)") } + [nil]
        defer { for string in arguments + environment { free(string) } }
        var process: pid_t = 0
        let error = posix_spawn(&process, path, &actions, nil, arguments, environment)
        guard error == 0 else { throw TestError(String(cString: strerror(error))) }
        return await withTrackedContinuation { continuation in
            Thread.detachNewThread { [process] in
                var status: Int32 = 0
                while waitpid(process, &status, 0) == -1, errno == EINTR {}
                continuation.resume(returning: status & 0x7F == 0 ? (status >> 8) & 0xFF : -1)
            }
        }
    }
}
