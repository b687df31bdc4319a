// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting
import CurlewWebSocket
import Foundation

/// Two members of a chat talk in a room of this process: `CurlewTesting` serves the WebSockets from memory.
@main
enum Program {
    static func main() async throws {
        let room = Room()
        let mock = MockTransport()
        mock.onStream { connection in
            let member = try await connection.acceptWebSocket(subprotocol: "chat.v1")
            await room.enter(member)
            while case .text(let text)? = try await member.receive() { await room.tellAll(text) }
            await room.leave(member)
        }
        let manager = SessionManager(mock: mock)
        let ada = Chat("ws://chat.example.org/", name: "Ada", manager: manager)
        let grace = Chat("ws://chat.example.org/", name: "Grace", manager: manager)
        await room.waitForMembers(2)

        // Ada speaks, Grace answers each line, and Ada leaves after the second answer.
        async let answers = answer(as: grace, until: 2)
        try await ada.say("Hello?")
        var heard: [String] = []
        for try await line in ada.lines {
            print("\(line.from): \(line.text)")
            heard.append(line.from)
            guard line.from == "Grace" else { continue }
            guard heard.count < 4 else { break }
            try await ada.say("What does a curlew eat?")
        }
        try await ada.leave()
        let count = try await answers
        await manager.shutdown(gracePeriod: .seconds(5))
        guard count == 2, heard == ["Ada", "Grace", "Ada", "Grace"] else { exit(1) }
    }

    private static func answer(as member: Chat, until count: Int) async throws -> Int {
        var answered = 0
        for try await line in member.lines where line.from != member.name {
            answered += 1
            try await member.say(answered == 1 ? "Hello, \(line.from)." : "Worms, mostly.")
            if answered == count { break }
        }
        try await member.leave()
        return answered
    }
}

/// The members who are there, and what is told to all of them.
actor Room {
    private var members: [ObjectIdentifier: MockWebSocket] = [:]
    private var waiting: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []

    func enter(_ member: MockWebSocket) {
        members[ObjectIdentifier(member)] = member
        let isComplete = members.count
        waiting.filter { $0.count <= isComplete }.forEach { $0.continuation.resume() }
        waiting.removeAll { $0.count <= isComplete }
    }

    func leave(_ member: MockWebSocket) {
        members[ObjectIdentifier(member)] = nil
    }

    func tellAll(_ text: String) async {
        for member in members.values { await member.send(text) }
    }

    func waitForMembers(_ count: Int) async {
        guard members.count < count else { return }
        await withCheckedContinuation { waiting.append((count, $0)) }
    }
}
