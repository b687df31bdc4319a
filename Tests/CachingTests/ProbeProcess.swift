// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Foundation
import Testing

/// The test suite's probe in a process of its own; killed with the last reference.
final class ProbeProcess: Sendable {
    private let process: pid_t
    private let isOver = Lock(false)

    /// Starts it, by a shell that takes its output away.
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

    /// Waits for its end; the exit status, −1 after a signal. Blocks.
    func finish() -> Int32 {
        isOver.withLock { isOver in
            guard !isOver else { return -1 }
            isOver = true
            var status: Int32 = 0
            while waitpid(process, &status, 0) < 0, errno == EINTR {}
            return status & 0x7F == 0 ? (status >> 8) & 0xFF : -1
        }
    }

    func kill() {
        isOver.withLock { isOver in
            guard !isOver else { return }
            isOver = true
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
