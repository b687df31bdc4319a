// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewTestSupport

/// Suspends and resumes transfers at random and from several threads, until all are complete; counts the intact ones.
final class PauseRun: Sendable {
    private static let size: Int64 = 2 << 20
    private static let width = 8
    private static let threads = 2

    private let url: String
    private let count: Int
    private let ledger = Ledger()
    private let active = Lock([Int: Request]())
    private let isOver = Lock(false)
    private let (stops, right) = (Lock(0), Lock(0))

    init(url: String, count: Int) {
        self.url = url
        self.count = count
    }

    func run() async throws {
        try await transfer(Self.width * 4)
        ledger.begin()
        let (stopsBefore, rightBefore) = (stops.withLock { $0 }, right.withLock { $0 })
        try await transfer(count)
        Probe.report("stops", stops.withLock { $0 } - stopsBefore)
        Probe.report("right", right.withLock { $0 } - rightBefore)
        ledger.report()
    }

    private func transfer(_ count: Int) async throws {
        let directory = try TemporaryDirectory()
        var configuration = Probe.makeConfiguration()
        configuration.callbackQueue = ledger.queue
        let manager = SessionManager(configuration: configuration)
        ledger.watch(manager, manager.session)
        isOver.withLock { $0 = false }
        let meddlers = (0..<Self.threads).map { _ in Task.detached { await self.meddle() } }
        for first in stride(from: 0, to: count, by: Self.width) {
            for number in first..<min(first + Self.width, count) { begin(number, manager, directory) }
            await ledger.handlersEnd()
        }
        isOver.withLock { $0 = true }
        for meddler in meddlers { await meddler.value }
    }

    /// Starts a data, file or body-stream transfer in turn.
    private func begin(_ number: Int, _ manager: SessionManager, _ directory: TemporaryDirectory) {
        let handler = ledger.expectHandler()
        let over = { @Sendable [self] (isRight: Bool) in
            right.withLock { $0 += isRight ? 1 : 0 }
            active.withLock { _ = $0.removeValue(forKey: number) }
            handler()
        }
        switch number % 3 {
        case 0:
            enter(manager.request("\(url)/bytes/\(Self.size)"), number).responseData { response in
                over(response.value.map(Self.isIntact) ?? false)
            }
        case 1:
            let file = directory.file("\(number)")
            enter(manager.download("\(url)/bytes/\(Self.size)", to: file), number).response { response in
                over(response.error == nil && (try? Data(contentsOf: file)).map(Self.isIntact) ?? false)
            }
        default:
            let body = GeneratedBody().data(count: Int(Self.size))
            enter(manager.upload(body, to: url + "/upload"), number).responseDecodable(of: EchoReply.self) { response in
                over(response.value?.bodyLength == Self.size && response.value?.bodyChecksum == Self.checksum)
            }
        }
    }

    private static let checksum = GeneratedBody().checksum(count: size)

    private static func isIntact(_ data: Data) -> Bool { data.count == size && GeneratedBody().matches(data) }

    private func enter<Kind: Request>(_ request: Kind, _ number: Int) -> Kind {
        ledger.watch(request)
        active.withLock { $0[number] = request }
        return request
    }

    /// Resumes twice as often as it suspends, so that a suspended transfer is resumed before long.
    private func meddle() async {
        while !isOver.withLock({ $0 }) {
            if let request = active.withLock({ $0.randomElement()?.value }) {
                if Int.random(in: 0..<3) == 0 {
                    request.suspend()
                    stops.withLock { $0 += 1 }
                } else {
                    request.resume()
                }
            }
            await Task.yield()
        }
    }
}
