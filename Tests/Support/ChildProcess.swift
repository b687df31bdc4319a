// SPDX-License-Identifier: Apache-2.0

/// A program run by a test, whose output is read line by line.
///
/// Terminated with its last reference. Does not use Foundation's `Process`, which was seen to miss exits on Linux while the tests had
/// thousands of descriptors open.
public final class ChildProcess: Sendable {
    private enum State {
        case running(pid_t)
        case ended
    }

    /// Serializes the creation of pipes, which other children must not inherit.
    private static let spawning = NSLock()

    private let state: Monitor<State>
    private let input: FileHandle
    private let lines: Log<String?>
    private let ended: Log<Int32>
    private let nextLine = Monitor(0)

    /// Starts a program found in the search path.
    public convenience init(_ name: String, _ arguments: String..., environment: [String: String] = [:]) throws {
        try self.init(name, arguments, environment: environment)
    }

    /// Starts a program found in the search path, or at an absolute path.
    public init(_ name: String, _ arguments: [String], environment: [String: String] = [:]) throws {
        guard let path = Self.path(of: name) else { throw TestError("\(name) is not installed") }
        let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }.map { "\($0)=\($1)" }
        let child = try Self.spawning.withLock { try Spawned(path, arguments: [path] + arguments, environment: variables) }
        let (state, lines, ended) = (Monitor(State.running(child.process)), Log<String?>(), Log<Int32>())
        (self.state, self.lines, self.ended, input) = (state, lines, ended, child.input)
        Thread.detachNewThread {
            var rest = Data()
            while case let data = child.output.availableData, !data.isEmpty {
                for line in Self.lines(from: data, keepingRestIn: &rest) { lines.append(line) }
            }
            if !rest.isEmpty { lines.append(String(decoding: rest, as: UTF8.self)) }
            lines.append(nil)
            // Left a zombie until the state is updated, because its process identifier could be reused afterwards.
            var information = siginfo_t()
            while waitid(P_PID, id_t(child.process), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
            var status: Int32 = 0
            state.update { state in
                waitpid(child.process, &status, 0)
                state = .ended
            }
            ended.append(status & 0x7F == 0 ? (status >> 8) & 0xFF : -1)
        }
    }

    deinit {
        terminate()
    }

    /// Returns the path of an installed program; `nil` if it is not in the search path, or there is none at an absolute path.
    public static func path(of name: String) -> String? {
        if name.hasPrefix("/") { return FileManager.default.isExecutableFile(atPath: name) ? name : nil }
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        // Mapped to strings: added to literals, the pieces would be arrays of characters, and not a file's path.
        let directories = path.split(separator: ":").map(String.init) + ["/usr/bin", "/bin"]
        return directories.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    private static func lines(from data: Data, keepingRestIn rest: inout Data) -> [String] {
        rest.append(data)
        var lines = rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        rest = Data(lines.removeLast())
        return lines.map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns the next line of the output; `nil` at its end. One reader at a time.
    public func readLine() async -> String? {
        if let last = lines.elements.last, last == nil, nextLine.read({ $0 }) >= lines.count { return nil }
        let index = nextLine.update { index in
            defer { index += 1 }
            return index
        }
        await lines.wait(for: index + 1)
        let elements = lines.elements
        return index < elements.count ? elements[index] : nil
    }

    /// Writes a line to the program's input.
    public func writeLine(_ line: String = "") {
        try? input.write(contentsOf: Data((line + "\n").utf8))
    }

    /// Closes the program's input.
    public func closeInput() {
        try? input.close()
    }

    /// Waits for the program's end; returns its exit status and the rest of its output.
    public func finish() async -> (status: Int32, output: [String]) {
        var output: [String] = []
        while let line = await readLine() { output.append(line) }
        await ended.wait(for: 1)
        return (ended.elements.first ?? -1, output)
    }

    /// Sends SIGTERM, unless the process has ended.
    public func terminate() {
        send(SIGTERM)
    }

    /// Sends a signal, unless the process has ended.
    public func send(_ signal: Int32) {
        state.update { state in
            if case .running(let process) = state { kill(process, signal) }
        }
    }
}

/// A process and this side's ends of its two pipes.
private struct Spawned {
    let process: pid_t
    let input: FileHandle
    let output: FileHandle

    init(_ path: String, arguments: [String], environment: [String]) throws {
        let (toChild, fromChild) = (Pipe(), Pipe())
        for pipe in [toChild, fromChild] {
            for handle in [pipe.fileHandleForReading, pipe.fileHandleForWriting] { _ = fcntl(handle.fileDescriptor, F_SETFD, FD_CLOEXEC) }
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, toChild.fileHandleForReading.fileDescriptor, 0)
        posix_spawn_file_actions_adddup2(&actions, fromChild.fileHandleForWriting.fileDescriptor, 1)
        // Otherwise the child would inherit this thread's signal mask; dispatch queues' threads block signals.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        let (argv, envp) = (arguments.map { strdup($0) } + [nil], environment.map { strdup($0) } + [nil])
        defer { for string in argv + envp { free(string) } }
        var process: pid_t = 0
        let status = posix_spawn(&process, path, &actions, &attributes, argv, envp)
        guard status == 0 else { throw TestError("\(path): \(String(cString: strerror(status)))") }
        self.process = process
        (input, output) = (toChild.fileHandleForWriting, fromChild.fileHandleForReading)
    }
}
