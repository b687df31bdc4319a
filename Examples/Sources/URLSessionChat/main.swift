// SPDX-License-Identifier: Apache-2.0
import CurlewURLSession
import Foundation

// A chat over WebSocket, as it is written for Apple's systems. The argument is the room's URL; scripts/demo starts a room.

struct Line: Codable, Sendable {
    let from: String
    let text: String
}

final class Member: NSObject, URLSessionWebSocketDelegate, @unchecked Sendable {  // what changes does so on the session's queue
    let name: String
    private var task: URLSessionWebSocketTask?
    private var opened: CheckedContinuation<Void, any Error>?
    private var closed: CheckedContinuation<URLSessionWebSocketTask.CloseCode, Never>?
    private let queue: OperationQueue

    init(_ name: String) {
        self.name = name
        queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
    }

    /// Returns when the room has accepted the member.
    func enter(_ url: URL) async throws {
        let session = URLSession(configuration: .ephemeral, delegate: self, delegateQueue: queue)
        let task = session.webSocketTask(with: url, protocols: ["chat.v1"])
        task.maximumMessageSize = 64 << 10
        session.finishTasksAndInvalidate()
        try await withCheckedThrowingContinuation { continuation in
            queue.addOperation {
                self.opened = continuation
                self.task = task
                task.resume()
            }
        }
    }

    func say(_ text: String) async throws {
        let line = try JSONEncoder().encode(Line(from: name, text: text))
        try await task?.send(.string(String(decoding: line, as: UTF8.self)))
    }

    /// The next line of any member.
    func hear() async throws -> Line {
        guard let task else { throw URLError(.cancelled) }
        switch try await task.receive() {
        case .string(let text): return try JSONDecoder().decode(Line.self, from: Data(text.utf8))
        case .data(let data): return try JSONDecoder().decode(Line.self, from: data)
        @unknown default: throw URLError(.cannotParseResponse)
        }
    }

    /// Whether the room answers a ping.
    func isThere() async -> Bool {
        await withCheckedContinuation { continuation in
            guard let task else { return continuation.resume(returning: false) }
            task.sendPing { continuation.resume(returning: $0 == nil) }
        }
    }

    /// Returns the code with which the room has closed the connection.
    func leave() async -> URLSessionWebSocketTask.CloseCode {
        await withCheckedContinuation { continuation in
            queue.addOperation {
                self.closed = continuation
                self.task?.cancel(with: .normalClosure, reason: Data("bye".utf8))
            }
        }
    }

    // MARK: URLSessionWebSocketDelegate

    func urlSession(_ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?) {
        opened?.resume()
        opened = nil
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didCloseWith closeCode: URLSessionWebSocketTask.CloseCode,
        reason: Data?
    ) {
        closed?.resume(returning: closeCode)
        closed = nil
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        opened?.resume(throwing: error ?? URLError(.networkConnectionLost))
        opened = nil
        closed?.resume(returning: .invalid)
        closed = nil
    }
}

guard let room = CommandLine.arguments.dropFirst().first.flatMap({ URL(string: $0) }) else {
    print("usage: urlsession-chat URL")
    exit(64)
}
let (ada, grace) = (Member("Ada"), Member("Grace"))
try await ada.enter(room)
try await grace.enter(room)
guard await ada.isThere(), await grace.isThere() else { exit(1) }

// Each line is told to all members, the one who says it too.
try await ada.say("Hello?")
_ = try await grace.hear()
try await grace.say("Hello, Ada.")
for _ in 0..<2 {
    let line = try await ada.hear()
    print("\(line.from): \(line.text)")
}
let code = await ada.leave()
print("Ada has left: \(code.rawValue)")
guard code == .normalClosure, await grace.leave() == .normalClosure else { exit(1) }
