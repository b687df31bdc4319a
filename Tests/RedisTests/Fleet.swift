// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewTestSupport

/// Processes that run one command of the probe on one server. They end with their last reference.
struct Fleet {
    let processes: [ChildProcess]

    init(_ count: Int, _ command: String, on server: RedisServer, _ arguments: String...) async throws {
        try await self.init(count, command, at: server.socket, arguments)
    }

    /// Starts processes with servers at a place, as the probe names it.
    init(_ count: Int, _ command: String, at place: String, _ arguments: [String]) async throws {
        let path = try Probe.path(of: "curlew-redis-probe")
        processes = try (0..<count).map { _ in try ChildProcess(path, [command, place] + arguments) }
        for process in processes {
            guard await process.readLine() == "ready=1" else { throw TestError("a process of the fleet ended before it was ready") }
        }
    }

    /// Lets all begin.
    func begin() {
        for process in processes { process.writeLine() }
    }

    /// Returns the number that each prints next.
    func numbers() async -> [Int] {
        var numbers: [Int] = []
        for process in processes {
            let parts = await process.readLine()?.split(separator: "=") ?? []
            numbers.append(parts.last.flatMap { Int($0) } ?? -1)
        }
        return numbers
    }

    /// Returns what each prints until its end.
    func reports() async -> [Probe.Report] {
        var reports: [Probe.Report] = []
        for process in processes {
            process.closeInput()
            reports.append(await Probe.Report(process))
        }
        return reports
    }
}
#endif
