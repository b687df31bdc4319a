// SPDX-License-Identifier: Apache-2.0
import Curlew
import Dispatch
import Foundation

/// Takes webhooks from the standard input, each a line of JSON with `id`, `url` and `body`, and delivers them.
///
/// `accepted ID` is printed when a webhook is on the disk: a producer that has not read that sends the line again. At the end of the input the
/// service ends when all are delivered or given up; at SIGTERM when the attempts that were begun have ended, in 20 seconds at most.
struct Service {
    let deliverer: Deliverer

    // snippet: service
    func run() async throws {
        let delivering = Task { [deliverer] in try await deliverer.run() }
        // Not awaited, as it may wait for a line for ever.
        Task { [deliverer] in await Self.acceptLines(into: deliverer.journal) }
        let signals = [SIGTERM, SIGINT].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { [manager = deliverer.manager] in
                delivering.cancel()
                Task { await manager.shutdown(gracePeriod: .seconds(20)) }
            }
            source.resume()
            return source
        }
        defer { for source in signals { source.cancel() } }
        try await delivering.value
        Self.say("ended with \(await deliverer.journal.count) pending")
    }

    private static func acceptLines(into journal: Journal) async {
        let queue = DispatchQueue(label: "input")
        while let line = await withCheckedContinuation({ next in queue.async { next.resume(returning: readLine()) } }) {
            guard !line.isEmpty else { continue }
            do {
                let webhook = try Webhook(line: line)
                while try await !journal.accept(webhook, at: Date()) { try await Task.sleep(for: .seconds(1)) }
                say("accepted \(webhook.id)")
            } catch {
                say("rejected \(line.prefix(100)): \(error)")
            }
        }
        await journal.finish()
    }
    // end

    /// Not by `print`, whose buffer would have to be flushed with all others, and so wait for the reader of the input.
    static func say(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8)) }
}

extension Webhook {
    /// Reads a line of the input, or one of the dead letters, which so begins again.
    init(line: String) throws {
        self = try JSONDecoder().decode(Webhook.self, from: Data(line.utf8))
        failure = nil
        // What a field can have, and every receiver can store.
        guard id.wholeMatch(of: /[A-Za-z0-9_-]{1,100}/) != nil else {
            throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "an id has letters, digits, _ and -, 100 at most"))
        }
    }
}
