// SPDX-License-Identifier: Apache-2.0
import Hummingbird
import Logging
import ServiceLifecycle

/// Runs a service on a free port of this machine while `body` runs, which is given its URL. `services` run as long.
public func withService<Context: RequestContext, Result: Sendable>(
    _ router: Router<Context>, services: [any Service] = [], _ body: @escaping @Sendable (_ url: String) async throws -> Result
) async throws -> Result where Context.Source == ApplicationRequestContextSource {
    var logger = Logger(label: "service")
    // The server reports each connection that it closes at the end as an error.
    logger.logLevel = .critical
    let (ports, running) = AsyncStream<Int>.makeStream()
    let application = Application(
        router: router, configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0)),
        services: services, onServerRunning: { running.yield($0.localAddress?.port ?? 0) }, logger: logger)
    return try await withThrowingTaskGroup(of: Result?.self) { group in
        group.addTask {
            try await application.run()
            return nil
        }
        group.addTask {
            guard let port = await ports.first(where: { _ in true }) else { throw CancellationError() }
            return try await body("http://127.0.0.1:\(port)")
        }
        defer { group.cancelAll() }
        while let result = try await group.next() {
            if let result { return result }
        }
        throw CancellationError()
    }
}
