// SPDX-License-Identifier: Apache-2.0
import CurlewURLSession
import Foundation

// A reader of server-sent events, as it is written for Apple's systems: the lines of a response that is never complete. When the connection
// is lost, it connects again and asks for what comes after the last event.

struct Event: Equatable {
    var name = "message"
    var data: String
}

struct EventReader {
    let url: URL
    var session = URLSession.shared

    var events: AsyncThrowingStream<Event, any Error> {
        AsyncThrowingStream { continuation in
            let task = Task {
                var lastID: String?
                do {
                    // The server ends the events with 204: there is nothing to connect to any more.
                    while try await read(after: &lastID, continuation) {}
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    /// Reads from one connection; `false` if there is to be no other one.
    private func read(
        after lastID: inout String?, _ continuation: AsyncThrowingStream<Event, any Error>.Continuation
    ) async throws -> Bool {
        var request = URLRequest(url: url)
        request.setValue("text/event-stream", forHTTPHeaderField: "Accept")
        request.cachePolicy = .reloadIgnoringLocalCacheData
        if let lastID { request.setValue(lastID, forHTTPHeaderField: "Last-Event-ID") }
        let (bytes, response) = try await session.bytes(for: request)
        switch (response as? HTTPURLResponse)?.statusCode {
        case 200: break
        case 204: return false
        default: throw URLError(.badServerResponse)
        }
        do {
            var name = "message"
            // The empty line after an event is none of the lines; here each event has one line of data, the last of its lines.
            for try await line in bytes.lines {
                let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
                let value = String(parts.last ?? "").trimmingCharacters(in: .whitespaces)
                switch parts.first {
                case "id": lastID = value
                case "event": name = value
                case "data":
                    continuation.yield(Event(name: name, data: value))
                    name = "message"
                default: break
                }
            }
        } catch let error as URLError where error.code == .networkConnectionLost {
            print("connection lost after event \(lastID ?? "none")")
        }
        return true
    }
}

let server = try TideServer()
defer { server.stop() }

var received: [Event] = []
for try await event in EventReader(url: server.url).events {
    print("\(event.name): \(event.data)")
    received.append(event)
}
guard received.map(\.data) == ["ebb", "14:20", "flood", "20:35"], received[1].name == "low", received[3].name == "high" else { exit(1) }
