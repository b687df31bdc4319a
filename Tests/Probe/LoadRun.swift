// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewTestSupport

/// Sends very many requests, and counts what remains of them.
struct LoadRun {
    private static let width = 64
    /// The number of requests of a warm-up.
    private static let few = 1_000

    let url: String
    let count: Int
    private let ledger = Ledger()

    init(url: String, count: Int) {
        self.url = url
        self.count = count
    }

    /// Has all requests in flight at the same moment, provided that the server responds to none before all have arrived.
    func together() async throws {
        Probe.report("limit", ProcessProbe.raiseDescriptorLimit())
        _ = try await request(Self.few, "/bytes/10", configuration(width: Self.width))
        ledger.begin()
        let start = ContinuousClock.now
        var configuration = configuration(width: nil)
        // Opening so many connections may take long on a loaded machine.
        configuration.connectTimeout = .seconds(120)
        configuration.idleTimeout = .seconds(120)
        Probe.report("right", try await request(count, "/together", configuration))
        Probe.report("milliseconds", Int(start.duration(to: .now) / .milliseconds(1)))
        ledger.report()
    }

    private func request(_ count: Int, _ path: String, _ configuration: SessionConfiguration) async throws -> Int {
        let manager = SessionManager(configuration: configuration)
        ledger.watch(manager, manager.session)
        let url = url + path
        return await withTaskGroup(of: Int.self) { group in
            for _ in 0..<count {
                group.addTask {
                    let request = manager.request(url).validate()
                    ledger.watch(request)
                    return await request.serializingData().response.value?.count == 10 ? 1 : 0
                }
            }
            return await group.reduce(0, +)
        }
    }

    /// Sends the requests in sequence, a few at a time.
    func soak() async throws {
        // The warm-up uses a separate session, which is released: the number of its connections at a given moment varies.
        _ = try await request(Self.few, "/bytes/10", configuration(width: Self.width))
        ledger.begin()
        await soakSession()
        ledger.report()
    }

    private func soakSession() async {
        let manager = SessionManager(configuration: configuration(width: Self.width))
        ledger.watch(manager, manager.session)
        let start = ContinuousClock.now
        var right = await requests(count / 10, manager)
        Probe.report("tenth", ProcessProbe.residentBytes)
        right += await requests(count - count / 10, manager)
        Probe.report("end", ProcessProbe.residentBytes)
        Probe.report("right", right)
        Probe.report("perSecond", Int(Double(count) / (start.duration(to: .now) / .seconds(1))))
    }

    private func requests(_ count: Int, _ manager: SessionManager) async -> Int {
        let url = url + "/bytes/10"
        let started = Lock(0)
        return await withTaskGroup(of: Int.self) { group in
            for _ in 0..<Self.width {
                group.addTask {
                    var right = 0
                    while started.withLock({ started in
                        started += 1
                        return started <= count
                    }) {
                        right += await manager.request(url).validate().serializingData().response.value?.count == 10 ? 1 : 0
                    }
                    return right
                }
            }
            return await group.reduce(0, +)
        }
    }

    private func configuration(width: Int?) -> SessionConfiguration {
        var configuration = Probe.makeConfiguration()
        configuration.callbackQueue = ledger.queue
        configuration.maximumConnectionsPerHost = width
        return configuration
    }
}
