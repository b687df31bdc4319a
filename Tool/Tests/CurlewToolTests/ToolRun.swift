// SPDX-License-Identifier: Apache-2.0
import Curlew
import Dispatch
import Testing

/// The built tool, running as a process.
struct ToolRun {
    /// The exit status, standard output and standard error.
    struct Result {
        let status: Int32
        let output: Data
        let error: String

        var text: String { String(decoding: output, as: UTF8.self) }
    }

    /// `Process` and `FileHandle` may be used from one thread at a time.
    private struct Box<Value>: @unchecked Sendable {
        let value: Value
    }

    private static let limit = DispatchTimeInterval.seconds(30)

    private let process: Box<Process>
    private let ended = DispatchGroup()
    private let input: Int32?
    /// The read ends of standard output and standard error.
    let output: Int32
    let error: Int32

    /// Starts the tool, within a `ulimit` of the shell if one is given, with a terminal as standard output or standard error if requested.
    ///
    /// - Parameters:
    ///   - hasTerminal: whether the process has a controlling terminal, its `/dev/tty`, which gets what is fed.
    ///   - program: another program in place of the tool.
    ///   - folder: the working directory; that of the tests by default.
    init(
        _ words: [String], environment: [String: String] = [:], hasInput: Bool = false, outputIsTerminal: Bool = false,
        errorIsTerminal: Bool = false, columns: Int = 0, limit: String? = nil, hasTerminal: Bool = false,
        program: URL? = nil, folder: URL? = nil
    ) throws {
        let process = Process()
        let executable = try program ?? Self.executable()
        if let folder { process.currentDirectoryURL = folder }
        if let limit {
            process.executableURL = URL(fileURLWithPath: "/bin/sh")
            process.arguments = ["-c", "ulimit \(limit) && exec \"$0\" \"$@\"", executable.path] + words
        } else if hasTerminal {
            process.executableURL = URL(fileURLWithPath: "/usr/bin/script")
            let command = ([executable.path] + words).map { "'\($0)'" }.joined(separator: " ")
            process.arguments = Platform.scriptWords(command)
        } else {
            process.executableURL = executable
            process.arguments = words
        }
        process.environment = environment
        let output = try Channel(isTerminal: outputIsTerminal, columns: columns)
        let error = try Channel(isTerminal: errorIsTerminal, columns: columns)
        let input = hasInput ? try Channel(isTerminal: false) : nil
        process.standardOutput = FileHandle(fileDescriptor: output.writing)
        process.standardError = FileHandle(fileDescriptor: error.writing)
        process.standardInput = input.map { FileHandle(fileDescriptor: $0.reading) } ?? FileHandle.nullDevice
        let ended = ended
        ended.enter()
        // A source instead of a delayed block, which would retain the process until its deadline.
        let limit = Box(value: DispatchSource.makeTimerSource(queue: .global()))
        process.terminationHandler = { _ in
            limit.value.cancel()
            ended.leave()
        }
        try process.run()
        close(output.writing)
        close(error.writing)
        if let input { close(input.reading) }
        self.process = Box(value: process)
        self.output = output.reading
        self.error = error.reading
        self.input = input?.writing
        let box = self.process
        limit.value.setEventHandler { if box.value.isRunning { kill(box.value.processIdentifier, SIGKILL) } }
        limit.value.schedule(deadline: .now() + Self.limit)
        limit.value.resume()
    }

    /// Sends a signal.
    func signal(_ number: Int32) {
        kill(process.value.processIdentifier, number)
    }

    /// Writes to standard input and closes it.
    func feed(_ data: Data) {
        guard let input else { return }
        data.withUnsafeBytes { bytes in
            var rest = bytes
            while !rest.isEmpty {
                let count = systemWrite(input, rest)
                guard count > 0 else { break }
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
        }
        close(input)
    }

    /// Waits for the process to exit, and for the end of both outputs.
    func result() async -> Result {
        async let output = Self.bytes(of: output)
        async let error = Self.bytes(of: error)
        let (outputBytes, errorBytes) = await (output, error)
        return Result(status: await status(), output: outputBytes, error: String(decoding: errorBytes, as: UTF8.self))
    }

    /// Waits for the process to exit.
    func status() async -> Int32 {
        await withCheckedContinuation { continuation in
            ended.notify(queue: .global()) { [process] in
                let isExit = process.value.terminationReason == .exit
                continuation.resume(returning: isExit ? process.value.terminationStatus : -process.value.terminationStatus)
            }
        }
    }

    /// Runs the tool to completion with a terminal of a width as both outputs, without colours.
    static func inTerminal(_ columns: Int, _ words: [String]) async throws -> Result {
        try await ToolRun(
            words, environment: ["NO_COLOR": "1"], outputIsTerminal: true, errorIsTerminal: true, columns: columns
        ).result()
    }

    /// Runs the tool to completion.
    static func run(_ words: String..., environment: [String: String] = [:], outputIsTerminal: Bool = false) async throws -> Result {
        try await ToolRun(words, environment: environment, outputIsTerminal: outputIsTerminal).result()
    }

    /// Reads all bytes until the other end is closed, then closes the descriptor.
    static func bytes(of descriptor: Int32) async -> Data {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                var data = Data()
                while let piece = read(descriptor) { data += piece }
                close(descriptor)
                continuation.resume(returning: data)
            }
        }
    }

    /// Reads the first available bytes.
    static func piece(of descriptor: Int32) async -> Data {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: read(descriptor) ?? Data()) }
        }
    }

    /// Reads until the output contains `text`, or ends.
    static func text(of descriptor: Int32, until text: String) async -> String {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                var data = Data()
                while !String(decoding: data, as: UTF8.self).contains(text), let piece = read(descriptor) { data += piece }
                continuation.resume(returning: String(decoding: data, as: UTF8.self))
            }
        }
    }

    /// Reads the next bytes; `nil` at the end, which a terminal reports as an error.
    private static func read(_ descriptor: Int32) -> Data? {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = systemRead(descriptor, &buffer)
            if count > 0 { return Data(buffer[..<count]) }
            guard count < 0, errno == EINTR else { return nil }
        }
    }

    /// Returns the tool's path, next to the test bundle.
    static func executable() throws -> URL {
        let places = [URL(fileURLWithPath: CommandLine.arguments[0]), Bundle.main.bundleURL]
        let candidates = places.map { $0.deletingLastPathComponent().appendingPathComponent("curlew") }
        return try #require(candidates.first { FileManager.default.isExecutableFile(atPath: $0.path) })
    }
}

/// A pipe, or a pseudo terminal whose terminal end is given to the process.
private struct Channel {
    let reading: Int32
    let writing: Int32

    init(isTerminal: Bool, columns: Int = 0) throws {
        if isTerminal {
            (reading, writing) = try #require(Platform.makeTerminal(columns: columns))
        } else {
            var ends: [Int32] = [-1, -1]
            try #require(pipe(&ends) == 0)
            (reading, writing) = (ends[0], ends[1])
        }
        // Other tests' processes must not inherit and keep open these ends.
        _ = fcntl(reading, F_SETFD, FD_CLOEXEC)
        _ = fcntl(writing, F_SETFD, FD_CLOEXEC)
    }
}

private func systemRead(_ descriptor: Int32, _ buffer: inout [UInt8]) -> Int { read(descriptor, &buffer, buffer.count) }

private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int { write(descriptor, bytes.baseAddress, bytes.count) }
