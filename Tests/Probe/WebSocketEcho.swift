// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import CurlewWebSocket

/// Sends messages to an echo server, compressed if it agrees, and reports the memory after a tenth and at the end.
struct WebSocketEcho {
    let url: String
    let count: Int

    /// The number of messages in flight.
    private static let window = 100

    func run() async throws {
        let manager = SessionManager(configuration: Probe.makeConfiguration())
        let socket = manager.webSocket(url)
        var messages = socket.messages.makeAsyncIterator()
        var sent = 0
        for received in 0..<count {
            while sent < count, sent - received < Self.window {
                try await socket.send(message(sent))
                sent += 1
            }
            guard try await messages.next() == message(received) else { return }
            if received == count / 10 { Probe.report("tenth", ProcessProbe.residentBytes) }
        }
        Probe.report("end", ProcessProbe.residentBytes)
        Probe.report("messages", sent)
        try await socket.close()
    }

    private func message(_ number: Int) -> WebSocketMessage {
        let text = "message \(number) of many that are alike"
        return number.isMultiple(of: 2) ? .text(text) : .binary(Data(text.utf8))
    }
}
