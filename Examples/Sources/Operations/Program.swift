// SPDX-License-Identifier: Apache-2.0
import CurlewOperations
import DemoServer

/// Queues 100 downloads of which some depend on others, four at a time; pauses and resumes them; archives those that are not over, ends, and
/// finishes them in another process.
///
///     operations                    all of it: the server, and both processes one after the other
///     operations begin|finish …     one of the two processes, started by the first
@main
enum Program {
    static func main() async {
        let arguments = CommandLine.arguments
        do {
            switch arguments.dropFirst().first {
            case "begin"? where arguments.count == 4:
                try await Downloads(url: arguments[2], directory: URL(fileURLWithPath: arguments[3])).begin()
            case "finish"? where arguments.count == 4:
                try await Downloads(url: arguments[2], directory: URL(fileURLWithPath: arguments[3])).finish()
            case nil: try await runBoth()
            default: throw Misuse()
            }
        } catch {
            FileHandle.standardError.write(Data("operations: \(error)\n".utf8))
            exit(1)
        }
    }

    struct Misuse: Error {}

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    static func say(_ line: String) {
        try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8))
    }

    private static func runBoth() async throws {
        let directory = try TemporaryDirectory()
        let counts = Counts()
        let server = try LoopbackServer(recording: false) { request, connection in
            counts.note(request)
            let response = ServerResponse.generated(length: Downloads.length, seed: Downloads.seed(of: request.path), for: request)
            let isHeld = request.header("Range") == nil && Downloads.held.contains { request.path == "/\($0)" }
            return try send(response, upTo: isHeld ? Downloads.length / 2 : Downloads.length, on: connection) ? nil : response
        }
        defer { server.stop() }
        for command in ["begin", "finish"] {
            say("\n\(command) in a process of its own")
            try run([command, server.url(""), directory.url.path])
        }
        try check(directory.url)
        say(
            "\nAll \(Downloads.count) files are whole. The server had \(counts.requests) requests, \(counts.ranges) of them for the rest of a file."
        )
        guard counts.ranges >= Downloads.held.count else { throw Failure(description: "what was paused and archived was not resumed") }
    }

    /// Sends a file, or its first bytes and then nothing until the client goes. `false` for a response that is none, as to who asks for the
    /// rest of a file and has all of it.
    private static func send(_ response: ServerResponse, upTo end: Int64, on connection: ServerConnection) throws -> Bool {
        guard case .generated(let length, let seed, let offset) = response.body else { return false }
        let fields = (response.headers + [ServerField("Content-Length", "\(length)")]).map { "\($0.name): \($0.value)\r\n" }
        try connection.send(raw: "HTTP/1.1 \(response.status) \(response.reason)\r\n\(fields.joined())\r\n")
        // In pieces and with pauses, so that some are being received when the operations are paused.
        let body = GeneratedBody(seed: seed)
        for start in stride(from: offset, to: end, by: 100_000) {
            try connection.send(raw: body.data(offset: start, count: Int(min(100_000, end - start))))
            guard connection.pause(for: .milliseconds(2)) else { break }
        }
        if end < Downloads.length { connection.waitUntilClosed() }
        return true
    }

    private static func run(_ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: Bundle.main.executablePath ?? CommandLine.arguments[0])
        process.arguments = arguments
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Failure(description: "\(arguments[0]) ended with \(process.terminationStatus)")
        }
    }

    private static func check(_ directory: URL) throws {
        for index in 0..<Downloads.count {
            let body = try Data(contentsOf: directory.appendingPathComponent("\(index).bin"))
            let expected = GeneratedBody(seed: UInt64(index)).data(count: Int(Downloads.length))
            guard body == expected else { throw Failure(description: "file \(index) is not what it should be") }
        }
    }
}

/// Counts requests, on the server's threads.
final class Counts: @unchecked Sendable {  // behind a lock
    private let lock = NSLock()
    private var all = 0
    private var partial = 0

    var requests: Int { lock.withLock { all } }
    var ranges: Int { lock.withLock { partial } }

    func note(_ request: ServerRequest) {
        lock.withLock {
            all += 1
            if request.header("Range") != nil { partial += 1 }
        }
    }
}
