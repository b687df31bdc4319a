// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The program that shows what is longer than the screen, as git has it: that of `CURLEW_PAGER` or `PAGER`, or `less`, which with `FRX`
/// ends at once if all fits, and lets colours through.
final class Pager: @unchecked Sendable {  // used before the first and after the last output only
    private static let lock = NSLock()
    private nonisolated(unsafe) static var running: Pager?  // guarded by the lock

    /// The width of the terminal that a pager writes to; `nil` if none is running.
    static var terminalWidth: Int?? { lock.withLock { running.map { $0.width } } }

    private let process = Process()
    private let width: Int?

    /// Starts the pager, if standard output is a terminal, and gives it what is written from now on.
    static func start(_ environment: [String: String]) throws(UsageError) {
        guard Output.standard.isTerminal, environment["TERM"] != "dumb" else { return }
        let command = ["CURLEW_PAGER", "PAGER"].compactMap { environment[$0] }.first { !$0.isEmpty } ?? "less"
        guard command != "cat" else { return }
        let pager = Pager(width: Output.standard.width)
        // Only where the user has not said otherwise.
        setenv("LESS", "FRX", 0)
        let input = Pipe()
        pager.process.executableURL = URL(fileURLWithPath: "/bin/sh")
        pager.process.arguments = ["-c", command]
        pager.process.standardInput = input.fileHandleForReading
        do {
            try pager.process.run()
        } catch {
            throw UsageError("the pager \(command.quoted) can't be started")
        }
        dup2(input.fileHandleForWriting.fileDescriptor, 1)
        try? input.fileHandleForWriting.close()
        try? input.fileHandleForReading.close()
        lock.withLock { running = pager }
    }

    /// Waits until the reader has left the pager.
    static func finish() {
        guard let pager = lock.withLock({ running }) else { return }
        close(1)
        pager.process.waitUntilExit()
    }

    private init(width: Int?) { self.width = width }
}
