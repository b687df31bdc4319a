// SPDX-License-Identifier: Apache-2.0

/// The test suite's helper program, which performs one task in a separate process, so that memory, threads and descriptors are measured for
/// it alone.
public enum Probe {
    /// The names and numbers printed by the probe.
    public struct Report: Sendable {
        /// The exit status; -1 after a signal.
        public let status: Int32
        private let values: [String: Int]

        /// Reads the lines of an output.
        public init(status: Int32, output: [String]) {
            self.status = status
            let pairs = output.map { $0.split(separator: "=", maxSplits: 1) }.filter { $0.count == 2 }
            values = Dictionary(pairs.map { (String($0[0]), Int($0[1]) ?? -1) }) { $1 }
        }

        /// Reads the output of a running probe until it ends.
        public init(_ process: ChildProcess) async {
            let (status, output) = await process.finish()
            self.init(status: status, output: output)
        }

        /// The value printed under a name; `nil` if there is none.
        public subscript(name: String) -> Int? { values[name] }
    }

    /// Starts a command of the program, with its arguments.
    public static func start(_ command: String, _ arguments: String..., environment: [String: String] = [:]) throws -> ChildProcess {
        try ChildProcess(path(), [command] + arguments, environment: environment)
    }

    /// Starts the worker of CurlewLifecycle's tests.
    public static func startWorker(_ arguments: String...) throws -> ChildProcess {
        try ChildProcess(path(of: "curlew-worker-probe"), arguments)
    }

    /// The path of a program that is built with the tests.
    public static func path(of name: String = "curlew-probe") throws -> String {
        let directories = [Bundle.main.bundleURL, URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()]
        let paths = (directories + directories.map { $0.deletingLastPathComponent() }).map {
            $0.appendingPathComponent(name).path
        }
        guard let path = paths.first(where: { FileManager.default.isExecutableFile(atPath: $0) }) else {
            throw TestError("\(name) was not found next to the tests, at \(paths)")
        }
        return path
    }

    /// Runs a command of the program to its end.
    public static func run(_ command: String, _ arguments: String..., environment: [String: String] = [:]) async throws -> Report {
        await Report(try ChildProcess(path(), [command] + arguments, environment: environment))
    }
}
