// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewWebSocket

/// The client of the Autobahn suite's fuzzing server: for each case it opens a connection and echoes every message.
struct AutobahnClient {
    let manager: SessionManager
    let url: String
    let agent: String

    func run() async throws {
        let count = try await caseCount()
        for number in 1...max(count, 1) {
            try await echo(manager.webSocket("\(url)/runCase?case=\(number)&agent=\(agent)", configuration: configuration))
        }
        try await manager.webSocket("\(url)/updateReports?agent=\(agent)").waitUntilClosed()
    }

    private var configuration: WebSocketConfiguration {
        var configuration = WebSocketConfiguration()
        configuration.maximumMessageSize = 64 << 20
        configuration.maximumFrameSize = 64 << 20
        return configuration
    }

    private func caseCount() async throws -> Int {
        let socket = manager.webSocket("\(url)/getCaseCount")
        for try await case .text(let text) in socket.messages { return Int(text) ?? 0 }
        return 0
    }

    private func echo(_ socket: WebSocket) async throws {
        do {
            for try await message in socket.messages { try await socket.send(message) }
        } catch is WebSocketError {
            // A case may end in any way; the server validates it.
        }
        _ = try? await socket.waitUntilClosed()
    }
}

/// Sends messages to an echo server, and measures time and memory.
struct EchoBenchmark {
    let manager: SessionManager
    let url: String
    let count: Int
    let size: Int
    /// The number of messages in flight.
    let window: Int
    let compresses: Bool

    func run() async throws -> String {
        var configuration = WebSocketConfiguration()
        if !compresses { configuration.compression = nil }
        let socket = manager.webSocket(url, configuration: configuration)
        try await socket.open()
        let message = Data((0..<size).map { UInt8(truncatingIfNeeded: $0) })
        var memory: [Int] = []
        let start = ContinuousClock.now
        var sent = 0
        var messages = socket.messages.makeAsyncIterator()
        for received in 0..<count {
            while sent < count, sent - received < window {
                try await socket.send(message)
                sent += 1
            }
            guard try await messages.next() == .binary(message) else { throw Mismatch(number: received) }
            if (received + 1).isMultiple(of: max(count / 10, 1)) { memory.append(Self.residentKiB()) }
        }
        let time = start.duration(to: .now) / .seconds(1)
        try await socket.close()
        let rate = Int(Double(count) / time)
        return "\(count) messages of \(size) bytes, \(window) at a time: \(rate)/s, memory in KiB at each tenth: \(memory)\n"
    }

    private struct Mismatch: Error {
        let number: Int
    }

    private static func residentKiB() -> Int {
        let lines = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8))?.split(separator: "\n") ?? []
        return lines.first { $0.hasPrefix("VmRSS:") }.flatMap { Int($0.filter(\.isNumber)) } ?? 0
    }
}
