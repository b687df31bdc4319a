// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Foundation
import Testing

/// Runs the test suite's probe as a process, killed when the last reference is released.
final class ProbeProcess: Sendable {
    private let process: pid_t
    private let hasExited = Lock(false)

    /// Starts the process through a shell that discards its output.
    init(_ arguments: [String]) throws {
        let command = ["/bin/sh", "-c", "exec \"$@\" >/dev/null", "sh", try Self.path()] + arguments
        let argv = command.map { strdup($0) } + [nil]
        defer { for string in argv { free(string) } }
        var process: pid_t = 0
        let status = posix_spawn(&process, "/bin/sh", nil, nil, argv, environ)
        try #require(status == 0)
        self.process = process
    }

    deinit {
        kill()
    }

    /// Waits for the process to exit. Returns its exit status, −1 after a signal. Blocks.
    func finish() -> Int32 {
        hasExited.withLock { hasExited in
            guard !hasExited else { return -1 }
            hasExited = true
            var status: Int32 = 0
            while waitpid(process, &status, 0) < 0, errno == EINTR {}
            return status & 0x7F == 0 ? (status >> 8) & 0xFF : -1
        }
    }

    func kill() {
        hasExited.withLock { hasExited in
            guard !hasExited else { return }
            hasExited = true
            Foundation.kill(process, SIGKILL)
            var status: Int32 = 0
            while waitpid(process, &status, 0) < 0, errno == EINTR {}
        }
    }

    private static func path() throws -> String {
        let start = Bundle.main.bundleURL
        let paths = [start, start.deletingLastPathComponent()].map { $0.appendingPathComponent("curlew-probe").path }
        return try #require(
            (paths + ["\(CommandLine.arguments[0].split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 })/curlew-probe"])
                .first { FileManager.default.isExecutableFile(atPath: $0) })
    }
}
