// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The program around a library: reads the command line, measures, prints a line.
public enum BenchProgram {
    /// Runs what the command line says with a client of the type, and ends the process with status 1 if anything failed.
    ///
    /// Not asynchronous, because valgrind does not survive an asynchronous main.
    public static func main<Client: BenchClient>(_ type: Client.Type, name: String) {
        guard let options = Options(Array(CommandLine.arguments.dropFirst())) else {
            printError(Options.usage)
            exit(2)
        }
        let ended = DispatchSemaphore(value: 0)
        // Detached, because main belongs to the main actor and blocks it.
        Task.detached {
            do {
                let client = try Client(options)
                let succeeded = try await measure(client, options, name: name)
                try await client.shutdown()
                if !succeeded { exit(1) }
            } catch {
                printError("\(name): \(error)")
                exit(1)
            }
            ended.signal()
        }
        ended.wait()
    }

    /// Runs the command and prints its line; `false` if anything failed.
    private static func measure(_ client: some BenchClient, _ options: Options, name: String) async throws -> Bool {
        // Those who wait do so until the process ends.
        if let beside = options.beside { try await client.hold(beside.waiting, at: beside.url) }
        var failed = 0
        switch options.command {
        case .get:
            // The first one alone: it brings the TLS session, or the HTTP/2 connection, that the others share.
            failed += await client.run(1, options).failed
            failed += await client.run(options.inFlight, options).failed
        // Without a warm-up the memory of a first request would count as that of those who wait.
        case .wait: failed += await client.run(1, inFlight: 1) { try await client.get(fast(options.target)) }.failed
        case .decode, .download, .upload: break
        }
        let resident = residentMemoryKiB("VmRSS")
        let start = Clock.now()
        let tally = try await perform(client, options)
        let report = Report(program: name, tally: tally, start: start, end: .now(), residentKiB: resident)
        print(report.line)
        return tally.failed + failed == 0
    }

    private static func perform(_ client: some BenchClient, _ options: Options) async throws -> Tally {
        switch options.command {
        case .get, .wait: return await client.run(options.count, options)
        case .decode: return try decode(client, options)
        case .download: try await client.download(options.target, to: options.file)
        case .upload: try await client.upload(options.file, to: options.target)
        }
        return Tally(requests: 1, failed: 0, bytes: try fileSize(options.file))
    }

    private static func decode(_ client: some BenchClient, _ options: Options) throws -> Tally {
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: options.target)))
        var tally = Tally()
        for _ in 0..<options.count {
            tally.bytes += try client.decode(bytes)
            tally.requests += 1
        }
        return tally
    }

    private static func fileSize(_ path: String) throws -> Int {
        try URL(fileURLWithPath: path).resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
    }

    /// What the slow server answers at once.
    private static func fast(_ url: String) -> String { url.replacingOccurrences(of: "/slow", with: "/held") }
}

extension BenchClient {
    /// Makes requests that are not answered, and returns when the server has got them all.
    fileprivate func hold(_ count: Int, at url: String) async throws {
        for _ in 0..<count {
            Task.detached { _ = try? await get(url + "/hold") }
        }
        // One request, answered when they are there: asking again and again would be counted, as often as the machine is slow.
        _ = try await get(url + "/held?\(count)")
    }
}

/// Prints a line on standard error.
public func printError(_ text: String) {
    FileHandle.standardError.write(Data((text + "\n").utf8))
}
