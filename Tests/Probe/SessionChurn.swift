// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewTestSupport
import Dispatch

/// Creates, uses and releases sessions in 8 threads, and counts what remains of them.
final class SessionChurn: Sendable {
    private static let threads = 8

    private let url: String
    private let count: Int
    private let ledger = Ledger()

    init(url: String, count: Int) {
        self.url = url
        self.count = count
    }

    func run() async throws {
        // A warm-up, so that objects the process creates once and keeps exist before anything is counted.
        round(0..<Self.threads * 8)
        await ledger.handlersEnd()
        ledger.begin()
        round(Self.threads * 8..<Self.threads * 8 + count)
        await ledger.handlersEnd()
        ledger.report()
    }

    /// Uses a session for each number.
    private func round(_ numbers: Range<Int>) {
        let next = Lock(numbers.lowerBound)
        let threads = DispatchGroup()
        for _ in 0..<Self.threads {
            threads.enter()
            let thread = Thread {
                while true {
                    let number = next.withLock { number in
                        defer { number += 1 }
                        return number
                    }
                    guard number < numbers.upperBound else { break }
                    self.useSession(number)
                }
                threads.leave()
            }
            thread.start()
        }
        threads.wait()
    }

    /// Uses one session; what becomes of its requests depends on the number.
    private func useSession(_ number: Int) {
        var configuration = Probe.makeConfiguration()
        configuration.callbackQueue = ledger.queue
        let manager = SessionManager(configuration: configuration)
        ledger.watch(manager, manager.session)
        switch number % 8 {
        case 0: break  // never used
        case 1:  // released with requests in flight
            for _ in 0..<3 { add(manager.request(url + "/silent"), to: manager) }
        case 2:  // cancelled
            let request = add(manager.request(url + "/silent"), to: manager)
            request.cancel()
        case 3:  // never started
            manager.startRequestsImmediately = false
            add(manager.request(url + "/bytes/10"), to: manager)
            addDownload(manager)
        case 4:  // finished
            let done = DispatchSemaphore(value: 0)
            add(manager.request(url + "/bytes/1000"), to: manager).response(queue: DispatchQueue.global()) { _ in done.signal() }
            done.wait()
        case 5:  // released while a retry is pending
            manager.retrier = PatientRetrier()
            add(manager.request(url + "/status/503").validate(), to: manager)
        case 6:  // released while bytes are received
            add(manager.request(url + "/bytes/100000000"), to: manager)
            addDownload(manager)
        default:  // a raw connection, an upload, and a body without a reader
            add(manager.upload(InputStream(data: Data(count: 100_000)), to: url + "/upload"), to: manager)
            add(manager.streamRequest(url + "/bytes/10000000"), to: manager)
            let stream = manager.stream(withHostName: "127.0.0.1", port: URL(string: url)?.port ?? 0)
            ledger.watch(stream)
        }
    }

    @discardableResult
    private func add(_ request: DataRequest, to manager: SessionManager) -> DataRequest {
        ledger.watch(request)
        let handler = ledger.expectHandler()
        return request.downloadProgress(queue: ledger.queue) { _ in }.response { _ in handler() }
    }

    private func addDownload(_ manager: SessionManager) {
        let request = manager.download(url + "/bytes/50000000")
        ledger.watch(request)
        let handler = ledger.expectHandler()
        request.response { response in
            if let file = response.temporaryURL { try? FileManager.default.removeItem(at: file) }
            handler()
        }
    }
}

/// Requests a retry after longer than the process lives.
private struct PatientRetrier: RequestRetrier {
    func should(_ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion) {
        completion(true, 600)
    }
}
