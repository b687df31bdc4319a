// SPDX-License-Identifier: Apache-2.0
import CurlewCaching
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import CurlewTransport
import Foundation
import Testing

@testable import CurlewCore

/// Downloads of what the store on disk has: copied from its file, without passing through memory where the system can do that. Requests whose
/// body stays in memory read it to there.
@Suite(.timeLimit(.minutes(1))) struct CachedDownloadTests {
    private let directory: TemporaryDirectory
    /// More than is copied at once.
    private let body = Data((0..<2_500_001).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })

    init() throws { directory = try TemporaryDirectory() }

    // MARK: Ranges of files

    /// Opens a file with a body that begins at an offset.
    private func source(_ offset: Int) throws -> FileHandle {
        try FileHandle(forReadingFrom: directory.write(Data(count: offset) + body, to: "source\(offset)"))
    }

    private func append(_ text: String, to file: PartFile) throws {
        try Data(text.utf8).withUnsafeBytes { try file.write($0) }
    }

    /// As on file systems that share blocks, that only copy, and that can do neither.
    @Test(
        arguments: [[.clone, .kernel], .clone, .kernel, []] as [PartFile.CopyWays], [(0, ""), (4096, ""), (4096, "head"), (77, "head")])
    func `A range of a file is appended in the way that the file system can, or refused`(
        _ ways: PartFile.CopyWays, _ place: (offset: Int, beginning: String)
    ) throws {
        let (offset, beginning) = place
        let source = try source(offset)
        let file = try PartFile(in: directory.url, for: "file")
        file.copyWays = ways
        try append(beginning, to: file)
        var count: Int64 = 0
        var expected = Data(beginning.utf8)
        while count < Int64(body.count) {
            let left = Int64(body.count) - count
            let range = FileRange(descriptor: source.fileDescriptor, offset: Int64(offset) + count, count: left)
            guard let taken = try file.append(range) else { break }
            // All at once only by sharing blocks.
            #expect(taken > 0 && taken <= left && (taken <= 1 << 20 || ways.contains(.clone)))
            count += taken
        }
        expected += body.prefix(Int(count))
        if ways.isEmpty { #expect(count == 0) }
        if ways.contains(.kernel) { #expect(count == Int64(body.count)) }
        try append("tail", to: file)
        expected += Data("tail".utf8)
        try file.close()
        let target = directory.file("target")
        try file.move(to: target, replacing: true, creatingDirectories: false)
        #expect(try Data(contentsOf: target) == expected)
        // The source is as it was.
        #expect(try Data(contentsOf: directory.file("source\(offset)")) == Data(count: offset) + body)
    }

    @Test func `What can't be copied from is refused, and leaves the file as it is`() throws {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        let file = try PartFile(in: directory.url, for: "file")
        try append("head", to: file)
        #expect(try file.append(FileRange(descriptor: ends[0], offset: 0, count: 10)) == nil)
        let source = try source(0)
        // Behind the end.
        #expect(try file.append(FileRange(descriptor: source.fileDescriptor, offset: Int64(body.count), count: 10)) == nil)
        try append("tail", to: file)
        try file.close()
        let target = directory.file("target")
        try file.move(to: target, replacing: true, creatingDirectories: false)
        #expect(try Data(contentsOf: target) == Data("headtail".utf8))
    }

    @Test(arguments: [0, 77]) func `A body in memory is read from a file to where it stays`(_ offset: Int) throws {
        let source = try source(offset)
        let receiver = DataReceiver(limit: body.count)
        let progress = receiver.downloadProgress.progress
        var count: Int64 = 0
        while count < Int64(body.count) {
            let range = FileRange(descriptor: source.fileDescriptor, offset: Int64(offset) + count, count: Int64(body.count) - count)
            let taken = try #require(try receiver.receive(range))
            // Not all at once, which would delay others.
            try #require(taken > 0 && taken < 1 << 20)
            count += taken
            #expect(receiver.receivedCount == count && progress.completedUnitCount == count)
        }
        #expect(receiver.data == body)
    }

    @Test func `What can't be read to memory leaves the body as it is`() throws {
        let source = try source(0)
        let whole = FileRange(descriptor: source.fileDescriptor, offset: 0, count: Int64(body.count))
        let receiver = DataReceiver(limit: body.count + 3)
        #expect(try Data("head".utf8).withUnsafeBytes { try receiver.receive($0) } == .proceed)
        // Over the limit, partly behind the end, and not open.
        #expect(try receiver.receive(whole) == nil)
        #expect(try receiver.receive(FileRange(descriptor: source.fileDescriptor, offset: Int64(body.count) - 5, count: 10)) == nil)
        #expect(try receiver.receive(FileRange(descriptor: -1, offset: 0, count: 10)) == nil)
        #expect(receiver.data == Data("head".utf8) && receiver.receivedCount == 4)
        // For a reader, and where the first piece is validated.
        let reading = DataReceiver(limit: .max)
        _ = reading.makeBuffer {}
        #expect(try reading.receive(whole) == nil && reading.receivedCount == 0)
        #expect(try DataReceiver(limit: .max, waitsForReader: true).receive(whole) == nil)
    }

    // MARK: Requests

    @Test func `A request of what is stored has its bytes, as far as its limit allows`() async throws {
        let (manager, mock) = manager()
        let url = "http://mock/a"
        #expect(await manager.request(url).serializingData().response.value == body)
        for (range, expected) in [("bytes=100000-1999999", body[100_000..<2_000_000]), ("bytes=0-", body[...])] {
            let request = manager.request(url, headers: ["Range": range])
            #expect(await request.serializingData().response.value == Data(expected))
            #expect(request.progress.completedUnitCount == Int64(expected.count))
        }
        var streamed = Data()
        for try await piece in manager.streamRequest(url).bodyStream() { streamed += piece }
        #expect(streamed == body)
        let limited = manager.request(url, options: RequestOptions(maximumBodySize: 1_000_000))
        #expect(kindOf(await limited.serializingData().response.error) == .tooLarge)
        for _ in 0..<10 {
            let cancelled = manager.request(url)
            cancelled.cancel()
            let response = await cancelled.serializingData().response
            #expect(isCancelled(response.error) || response.value == body)
        }
        #expect(mock.requests.count == 1)
    }

    // MARK: Downloads

    private func manager(_ name: String = "cache") -> (SessionManager, CurlewTesting.MockTransport) {
        let mock = CurlewTesting.MockTransport(.data(body).header("Cache-Control", "max-age=3600").header("ETag", "\"1\""))
        return (SessionManager(mock: mock) { $0.cache = .disk(directory: directory.file(name)) }, mock)
    }

    @Test(arguments: [true, false]) func `A download of what is stored is its file`(_ isStoredByDownload: Bool) async throws {
        let (manager, mock) = manager()
        let url = "http://mock/a"
        let first = directory.file("first")
        if isStoredByDownload {
            #expect(await manager.download(url, to: first).serializingData().response.value == body)
        } else {
            #expect(await manager.request(url).serializingData().response.value == body)
        }
        for name in ["second", "third"] {
            let target = directory.file(name)
            let request = manager.download(url, to: target)
            let response = await request.serializingURL().response
            #expect(response.value == target && response.metrics.last?.cacheOutcome == .hit)
            #expect(try Data(contentsOf: target) == body)
            #expect(request.progress.completedUnitCount == Int64(body.count))
        }
        // The copies are files of their own.
        try Data("changed".utf8).write(to: directory.file("second"))
        #expect(await manager.request(url).serializingData().response.value == body)
        #expect(mock.requests.count == 1)
    }

    @Test func `A download of a range of what is stored is that range`() async throws {
        let (manager, mock) = manager()
        let url = "http://mock/a"
        #expect(await manager.request(url).serializingData().response.value == body)
        for (range, expected) in [
            ("bytes=100000-1999999", body[100_000..<2_000_000]), ("bytes=4096-", body[4096...]), ("bytes=-5", body.suffix(5)),
        ] {
            let response = await manager.download(url, headers: ["Range": range]).serializingData().response
            #expect(response.value == Data(expected) && response.response?.statusCode == 206, "\(range)")
        }
        #expect(mock.requests.count == 1)
    }

    @Test func `A download is suspended, resumed and cancelled while it is copied`() async throws {
        let (manager, _) = manager()
        let url = "http://mock/a"
        #expect(await manager.request(url).serializingData().response.value == body)
        let suspended = manager.download(url, to: directory.file("suspended"))
        suspended.suspend()
        suspended.resume()
        #expect(await suspended.serializingData().response.value == body)
        // Whether it is complete before it is cancelled is a matter of threads; half a file it never is.
        for round in 0..<10 {
            let file = directory.file("cancelled\(round)")
            let cancelled = manager.download(url, to: file)
            cancelled.cancel()
            if await cancelled.serializingData().response.error == nil {
                #expect(try Data(contentsOf: file) == body)
            } else {
                #expect(!FileManager.default.fileExists(atPath: file.path))
            }
        }
    }

    @Test func `An entry that was damaged after it was stored is loaded again`() async throws {
        let (manager, mock) = manager()
        let url = "http://mock/a"
        #expect(await manager.request(url).serializingData().response.value == body)
        let entries = directory.file("cache/v2")
        let large = try FileManager.default.contentsOfDirectory(at: entries, includingPropertiesForKeys: [.fileSizeKey]).filter {
            try $0.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0 > 1 << 20
        }
        let file = try FileHandle(forUpdating: #require(large.first))
        try file.seek(toOffset: 1_000_000)
        try file.write(contentsOf: Data("damage".utf8))
        try file.close()
        #expect(await manager.download(url).serializingData().response.value == body)
        #expect(mock.requests.count == 2)
    }
}
