// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport

#if Lifecycle
import CurlewEncoding
import CurlewHTTP
import CurlewLifecycle
import Logging
import ServiceLifecycle
import UnixSignals

/// A worker that sends requests until it is terminated: `curlew-worker-probe URL COUNT DIRECTORY`. Prints measurements as lines of
/// `name=number`.
///
/// Half of its requests are responded to within the grace period of 5 seconds, the other half never; one in ten is a download to the
/// directory, which is also that of temporary files.
@main
struct WorkerProbe: Service {
    let manager: SessionManager
    let url: String
    let count: Int
    let directory: URL

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 4, let count = Int(arguments[2]) else { exit(64) }
        let directory = URL(fileURLWithPath: arguments[3], isDirectory: true)
        // A first manager, so that what the process creates once and keeps exists before anything is counted.
        let first = makeManager(directory)
        _ = try await first.request(arguments[1] + "/json").serializingData().value
        await first.shutdown(gracePeriod: .seconds(5))
        let before = sockets

        let manager = makeManager(directory)
        let executor = manager.taskExecutor
        let thread = await Task(executorPreference: executor) { try? FileManager.default.destinationOfSymbolicLink(atPath: threadLink) }
            .value
        let worker = WorkerProbe(manager: manager, url: arguments[1], count: count, directory: directory)
        let group = ServiceGroup(
            services: [worker, SessionManagerService(manager, gracePeriod: .seconds(5)), Announcement()],
            gracefulShutdownSignals: [.sigterm], logger: Logger(label: "worker"))
        try await group.run()
        report("sockets", sockets - before)
        report("threads", thread.map { FileManager.default.fileExists(atPath: "/proc/\($0)") } == false ? 0 : 1)
    }

    func run() async throws {
        let outcomes = await withTaskGroup(of: Outcome.self) { group in
            for number in 0..<count { group.addTask { await send(number) } }
            return await group.reduce(into: [Outcome: Int]()) { $0[$1, default: 0] += 1 }
        }
        for outcome in Outcome.allCases { Self.report(outcome.rawValue, outcomes[outcome] ?? 0) }
        try await gracefulShutdown()
    }

    /// Reports that the process was told to terminate. Listed last, so that it is shut down first.
    private struct Announcement: Service {
        func run() async throws {
            try await gracefulShutdown()
            WorkerProbe.report("terminating", 1)
        }
    }

    private enum Outcome: String, CaseIterable {
        case finished
        case shutDown
        case failed
    }

    private func send(_ number: Int) async -> Outcome {
        let url = url + (number.isMultiple(of: 2) ? "/later" : "/never")
        do {
            if number % 10 < 2 {
                _ = try await manager.download(url, to: directory.appendingPathComponent("\(number)")).validate().serializingURL().value
            } else {
                _ = try await manager.request(url).validate().serializingData().value
            }
            return .finished
        } catch CurlewError.sessionShutDown {
            return .shutDown
        } catch {
            return .failed
        }
    }

    private static let threadLink = "/proc/thread-self"

    private static func makeManager(_ directory: URL) -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        configuration.maximumConnectionsPerHost = nil
        configuration.temporaryDirectory = directory
        return SessionManager(configuration: configuration)
    }

    /// The number of open sockets: what remains of a session's connections.
    private static var sockets: Int {
        let directory = "/proc/self/fd"
        let links = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        return links.count { link in
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(directory)/\(link)"))?.hasPrefix("socket:") == true
        }
    }

    fileprivate static func report(_ name: String, _ value: Int) {
        print("\(name)=\(value)")
        fflush(nil)
    }
}
#else
@main
enum WorkerProbe {
    static func main() {
        FileHandle.standardError.write(Data("curlew-worker-probe needs the trait Lifecycle\n".utf8))
        exit(69)
    }
}
#endif
