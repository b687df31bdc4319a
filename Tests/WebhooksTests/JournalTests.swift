// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Foundation
import Testing

// A5.2
@Suite(.timeLimit(.minutes(2))) struct JournalTests {
    private let folder: TemporaryDirectory
    private let file: URL
    private let date = Date(timeIntervalSinceReferenceDate: 0)

    init() throws {
        folder = try TemporaryDirectory()
        file = folder.file("journal")
    }

    private func webhook(_ id: String, body: String = "{}") -> Webhook {
        Webhook(id: id, url: "https://example.org/hook", body: body)
    }

    /// What a journal has, in the order of its times.
    private func contents(of journal: Journal) async throws -> [Pending] {
        await journal.finish()
        return try await journal.pending.reduce(into: []) { $0.append($1) }
    }

    @Test func `a journal that is opened again has what is pending, with attempts and times`() async throws {
        let journal = try Journal(at: file)
        for id in ["a", "b", "c"] { #expect(try await journal.accept(webhook(id), at: date)) }
        var pending = Pending(webhook: webhook("b"), accepted: date, due: date)
        pending.attempts = 2
        pending.due = date.addingTimeInterval(7_200)
        try await journal.postpone(pending)
        try await journal.remove(Pending(webhook: webhook("a"), accepted: date, due: date))
        #expect(await journal.count == 2)
        try await journal.close()
        await #expect(throws: Journal.Failure.isClosed) { try await journal.remove(pending) }

        let next = try Journal(at: file)
        #expect(try await contents(of: next) == [Pending(webhook: webhook("c"), accepted: date, due: date), pending])
        let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
    }

    @Test func `what is pending is not accepted a second time, and is after it was delivered`() async throws {
        let journal = try Journal(at: file)
        #expect(try await journal.accept(webhook("a"), at: date))
        #expect(try await journal.accept(webhook("a", body: "other"), at: date))
        try await journal.remove(Pending(webhook: webhook("a"), accepted: date, due: date))
        #expect(try await journal.accept(webhook("a"), at: date))
        #expect(try await contents(of: journal).map(\.webhook.body) == ["{}", "{}"])
    }

    @Test func `a file that was cut anywhere has what its whole lines say`() async throws {
        let journal = try Journal(at: file)
        for id in ["a", "b", "c"] { _ = try await journal.accept(webhook(id), at: date) }
        try await journal.remove(Pending(webhook: webhook("a"), accepted: date, due: date))
        try await journal.close()
        let data = try Data(contentsOf: file)
        let ends = data.indices.filter { data[$0] == UInt8(ascii: "\n") }.map { $0 + 1 }
        #expect(ends.count == 4 && ends.last == data.count)
        let counts = [0, 1, 2, 3, 2]
        let cuts = Array(stride(from: 0, to: data.count, by: 23)) + ends + ends.map { $0 - 1 }
        for cut in cuts {
            try data.prefix(cut).write(to: file)
            let next = try Journal(at: file)
            let count = counts[ends.count { $0 <= cut }]
            #expect(await next.count == count, "\(cut)")
            #expect(try await next.accept(webhook("new"), at: date))
            try await next.close()
            #expect(try await Journal(at: file).count == count + 1, "\(cut)")
        }
    }

    @Test func `a last line whose blocks are missing is removed, a line in the middle that was changed is an error`() async throws {
        let journal = try Journal(at: file)
        for id in ["a", "b"] { _ = try await journal.accept(webhook(id), at: date) }
        try await journal.close()
        let data = try Data(contentsOf: file)
        let middle = try #require(data.firstIndex(of: UInt8(ascii: "\n"))) + 1
        var damaged = data
        damaged[middle + 30] = 0
        try damaged.write(to: file)
        #expect(try await Journal(at: file).count == 1)
        #expect(try Data(contentsOf: file) == data.prefix(middle))

        damaged = data
        damaged[30] ^= 1
        try damaged.write(to: file)
        #expect(throws: Journal.Failure.isDamaged(offset: 0)) { try Journal(at: file) }
        #expect(try Data(contentsOf: file) == damaged)
    }

    @Test func `one journal has the file at a time`() async throws {
        let journal = try Journal(at: file)
        #expect(throws: Journal.Failure.isInUse) { try Journal(at: file) }
        try await journal.close()
        #expect(try await Journal(at: file).count == 0)
    }

    @Test func `a full journal accepts nothing until something was delivered`() async throws {
        let journal = try Journal(at: file, limit: 3_000)
        let body = String(repeating: "x", count: 1_000)
        var accepted: [String] = []
        while try await journal.accept(webhook("\(accepted.count)", body: body), at: date) { accepted.append("\(accepted.count)") }
        #expect(accepted.count == 3)
        try await journal.remove(Pending(webhook: webhook("0"), accepted: date, due: date))
        #expect(try await journal.accept(webhook("new", body: body), at: date))
    }

    @Test func `the file is written again when most of it is history, and loses nothing`() async throws {
        try Data("torn".utf8).write(to: file.appendingPathExtension("new"))
        let journal = try Journal(at: file)
        _ = try await journal.accept(webhook("a", body: String(repeating: "x", count: 100_000)), at: date)
        _ = try await journal.accept(webhook("b"), at: date)
        var pending = Pending(webhook: webhook("a", body: String(repeating: "y", count: 100_000)), accepted: date, due: date)
        for attempt in 1...40 {
            pending.attempts = attempt
            try await journal.postpone(pending)
            let size = try FileManager.default.attributesOfItem(atPath: file.path)[.size] as? Int ?? 0
            #expect(size <= 1 << 20 + 2 * 101_000)
        }
        try await journal.close()
        #expect(try await contents(of: Journal(at: file)).map(\.attempts).sorted() == [0, 40])
        #expect(!FileManager.default.fileExists(atPath: file.appendingPathExtension("new").path))
    }

    @Test func `dead letters can be given to the service again, also after a torn one`() async throws {
        let letters = file.appendingPathExtension("dead")
        try Data(#"{"id": "torn"#.utf8).write(to: letters)
        let journal = try Journal(at: file)
        for id in ["a", "b"] {
            _ = try await journal.accept(webhook(id, body: "ä\n\"\(id)\""), at: date)
            try await journal.bury(
                Pending(webhook: webhook(id, body: "ä\n\"\(id)\""), accepted: date, due: date), because: "status 500")
        }
        #expect(await journal.count == 0)
        let lines = try String(contentsOf: letters, encoding: .utf8).split(separator: "\n").map(String.init)
        #expect(lines.count == 3 && lines[1].contains("status 500"))
        #expect(try lines.dropFirst().map { try Webhook(line: $0) } == ["a", "b"].map { webhook($0, body: "ä\n\"\($0)\"") })
        #expect(throws: DecodingError.self) { try Webhook(line: lines[0]) }
        #expect(throws: DecodingError.self) { try Webhook(line: #"{"id": "a.b", "url": "https://example.org/", "body": "{}"}"#) }
    }

    @Test func `a webhook whose dead letter can't be written stays`() async throws {
        try FileManager.default.createSymbolicLink(
            at: file.appendingPathExtension("dead"), withDestinationURL: URL(fileURLWithPath: "/dev/full"))
        let journal = try Journal(at: file)
        _ = try await journal.accept(webhook("a"), at: date)
        await #expect(throws: (any Error).self) {
            try await journal.bury(Pending(webhook: webhook("a"), accepted: date, due: date), because: "status 500")
        }
        #expect(await journal.count == 1)
    }
}
