// SPDX-License-Identifier: Apache-2.0
import Foundation

@main
enum Program {
    // valgrind does not survive an asynchronous main.
    static func main() {
        guard let options = Options(Array(CommandLine.arguments.dropFirst())) else {
            printError(Options.usage)
            exit(2)
        }
        let ended = DispatchSemaphore(value: 0)
        // Detached, because main belongs to the main actor and blocks it.
        Task.detached {
            let succeeded = await measure(options)
            if !succeeded { exit(1) }
            ended.signal()
        }
        ended.wait()
    }

    /// Runs the command and prints its line; `false` if anything failed.
    private static func measure(_ options: Options) async -> Bool {
        let client: Client
        do {
            client = try Client(options)
        } catch {
            printError("CurlewBench: \(error)")
            return false
        }
        var warmUp = Tally()
        let start: Clock
        let tally: Tally
        switch options.command {
        case .get(let count, let inFlight):
            warmUp = await client.run(inFlight, inFlight: inFlight)
            start = .now()
            tally = await client.run(count, inFlight: inFlight)
        case .closure(let count, let inFlight):
            warmUp = await client.runWithHandlers(inFlight, inFlight: inFlight)
            start = .now()
            tally = await client.runWithHandlers(count, inFlight: inFlight)
        case .download(let path):
            start = .now()
            tally = await one { try await client.download(to: URL(fileURLWithPath: path)) }
        case .upload(let path):
            start = .now()
            tally = await one { try await client.upload(URL(fileURLWithPath: path)) }
        }
        let end = Clock.now()
        print(reportLine(mode: options.command.name, tally: tally, start: start, end: end))
        return tally.failed + warmUp.failed == 0
    }

    private static func one(_ transfer: () async throws -> Int) async -> Tally {
        do {
            return Tally(requests: 1, failed: 0, bytes: try await transfer())
        } catch {
            printError("CurlewBench: \(error)")
            return Tally(requests: 1, failed: 1, bytes: 0)
        }
    }
}

func printError(_ text: String) {
    FileHandle.standardError.write(Data((text + "\n").utf8))
}
