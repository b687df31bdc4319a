// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct DownloadTests {
    private let server: LoopbackServer
    private let manager = makeManager()
    private let directory: TemporaryDirectory

    init() throws {
        server = try LoopbackServer.standard()
        directory = try TemporaryDirectory()
    }

    @Test("a body is written to the file", arguments: [0, 1, 100_000, 20_000_000]) func body(_ count: Int) async throws {
        let target = directory.file("file")
        let response = await manager.download(server.url("/bytes/\(count)"), to: target).validate().serializingURL().response
        #expect(response.value == target)
        #expect(try target.resourceValues(forKeys: [.fileSizeKey]).fileSize == count)
        // Foundation on Linux leaks a page for each empty file it reads.
        if count > 0 { #expect(try GeneratedBody().matches(Data(contentsOf: target))) }
        #expect(try contents(of: directory) == ["file"])
    }

    @Test("a body of unknown length is written as well") func unknownLength() async throws {
        let response = await manager.download(server.url("/chunked/100000?size=777"), to: directory.file("file")).serializingData().response
        #expect(response.value == GeneratedBody().data(count: 100_000))
    }

    @Test("a closure chooses the destination") func destination() async throws {
        let target = directory.file("deep/er/file")
        let asked = Log<(exists: Bool, status: Int)>()
        let response = await manager.download(
            server.url("/bytes/1000"),
            to: { temporaryURL, response in
                asked.append((FileManager.default.fileExists(atPath: temporaryURL.path), response.statusCode))
                return (target, [.createIntermediateDirectories])
            }
        ).validate().serializingURL().response
        #expect(response.value == target)
        #expect(response.destinationURL == target)
        #expect(asked.elements.map(\.exists) == [true])
        #expect(asked.elements.map(\.status) == [200])
        #expect(try Data(contentsOf: target).count == 1000)
        let temporary = try #require(response.temporaryURL)
        #expect(!FileManager.default.fileExists(atPath: temporary.path))
    }

    @Test("without a destination the file stays where it was written") func temporaryFile() async throws {
        let manager = makeManager { $0.temporaryDirectory = directory.url }
        let response = await manager.download(server.url("/bytes/1000")).validate().serializingURL().response
        let file = try #require(response.value)
        #expect(file.deletingLastPathComponent().path == directory.url.path)
        #expect(try Data(contentsOf: file).count == 1000)
        #expect(response.destinationURL == nil)
    }

    @Test("an existing file is replaced only with removePreviousFile") func existingFile() async throws {
        let target = try directory.write(Data("old".utf8), to: "file")
        let refused = await manager.download(server.url("/bytes/1000"), to: target).serializingURL().response
        #expect((refused.error as? CocoaError)?.code == .fileWriteFileExists)
        #expect(try Data(contentsOf: target) == Data("old".utf8))
        let replaced = await manager.download(server.url("/bytes/1000"), to: target, options: .removePreviousFile).serializingURL().response
        #expect(replaced.error == nil)
        #expect(try Data(contentsOf: target).count == 1000)
        #expect(try contents(of: directory) == ["file"])
    }

    @Test("a missing directory is created only with createIntermediateDirectories") func missingDirectory()
        async throws
    {
        let target = directory.file("a/b/file")
        let refused = await manager.download(server.url("/bytes/1000"), to: target).serializingURL().response
        #expect(refused.error is CocoaError)
        let made = await manager.download(server.url("/bytes/1000"), to: target, options: .createIntermediateDirectories)
            .serializingURL().response
        #expect(made.error == nil)
        #expect(try Data(contentsOf: target).count == 1000)
    }

    @Test("a failed replacement keeps the old file") func failedReplacement() async throws {
        let target = try directory.write(Data("old".utf8), to: "file")
        let response = await manager.download(server.url("/cut-body?announce=100000"), to: target, options: .removePreviousFile)
            .serializingURL().response
        #expect(response.error?.transferFailure?.kind == .connectionLost)
        #expect(try Data(contentsOf: target) == Data("old".utf8))
        #expect(try contents(of: directory) == ["file"])
    }

    @Test(
        "a failed download leaves no file behind",
        arguments: ["/cut-body?announce=3000000&send=1000000", "/reset?send=1000000", "/cut-head", "/silent", "/status/404"])
    func failure(_ path: String) async throws {
        let manager = makeManager {
            $0.temporaryDirectory = directory.url
            $0.idleTimeout = .milliseconds(500)
        }
        let known = await manager.download(server.url(path), to: directory.file("file")).validate().serializingURL().response
        #expect(known.error != nil)
        #expect(try contents(of: directory) == [])
        guard path != "/status/404" else { return }
        let unknown = await manager.download(server.url(path)).validate().serializingURL().response
        #expect(unknown.error != nil)
        #expect(try contents(of: directory) == [])
    }

    @Test("the file gets its name only when it is complete") func nameOnlyWhenComplete() async throws {
        let (first, last) = (Gate(), Gate())
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            try connection.send(raw: Data(count: 500_000))
            connection.wait(until: first)
            try connection.send(raw: Data(count: 499_999))
            connection.wait(until: last)
            try connection.send(raw: Data(count: 1))
            return nil
        }
        let progress = Log<Int64>()
        let request = manager.download(server.url("/"), to: directory.file("file"))
            .downloadProgress { progress.append($0.completedUnitCount) }
        for (gate, count) in [(first, 500_000), (last, 999_999)] {
            #expect(await gate.arrivals())
            var seen = 0
            repeat {
                seen += 1
                await progress.wait(for: seen)
            } while progress.elements[seen - 1] < count
            let names = try contents(of: directory)
            // No name at all where the file system supports unnamed files.
            #expect(names.count <= 1)
            #expect(names.allSatisfy { $0.hasPrefix(".file.") && $0.hasSuffix(".part") })
            gate.open()
        }
        let response = await request.validate().serializingURL().response
        #expect(response.error == nil)
        #expect(try contents(of: directory) == ["file"])
    }

    @Test("progress reaches the total") func progress() async throws {
        // Calls that wait in the queue are one: the first comes before there is more.
        let first = Gate()
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 30000000\r\n\r\n")
            try connection.send(raw: Data(count: 15_000_000))
            connection.wait(until: first)
            try connection.send(raw: Data(count: 15_000_000))
            return nil
        }
        let progress = Log<(completed: Int64, total: Int64)>()
        let ended = Log<Void>()
        manager.download(server.url("/"), to: directory.file("file"))
            .downloadProgress {
                progress.append(($0.completedUnitCount, $0.totalUnitCount))
                first.open()
            }
            .response { _ in ended.append(()) }
        await ended.wait(for: 1)
        let completed = progress.elements.map(\.completed)
        #expect(completed.count > 1)
        #expect(completed == completed.sorted())
        #expect(completed.last == 30_000_000)
        #expect(progress.elements.allSatisfy { $0.total == 30_000_000 })
    }

    @Test("progress without a length has no total") func progressWithoutLength() async throws {
        let progress = Log<(completed: Int64, total: Int64)>()
        let ended = Log<Void>()
        manager.download(server.url("/chunked/100000"), to: directory.file("file"))
            .downloadProgress { progress.append(($0.completedUnitCount, $0.totalUnitCount)) }
            .response { _ in ended.append(()) }
        await ended.wait(for: 1)
        #expect(progress.elements.last?.completed == 100_000)
        #expect(progress.elements.last?.total == -1)
    }

    @Test("a range set by the request is downloaded") func range() async throws {
        let response = await manager.download(
            server.url("/bytes/1000000"), headers: ["Range": "bytes=1000-1999"], to: directory.file("part")
        ).validate().serializingData().response
        #expect(response.response?.statusCode == 206)
        #expect(response.response?.value(forHTTPHeaderField: "Content-Range") == "bytes 1000-1999/1000000")
        #expect(response.value == GeneratedBody().data(offset: 1000, count: 1000))
    }

    @Test("a range of nginx's file", .needsNginx) func nginxRange() async throws {
        let nginx = try Servers.nginx()
        let manager = makeManager { $0.tls.certificateAuthorityFile = nginx.authorities }
        for url in [nginx.http, nginx.tls, nginx.tlsHTTP1] {
            let response = await manager.download(
                url + "/big.bin", headers: ["Range": "bytes=1048576-3145727"], to: directory.file("part"), options: .removePreviousFile
            ).validate().serializingData().response
            #expect(response.response?.statusCode == 206)
            let data = try #require(response.value)
            #expect(data.count == 2 << 20)
            // Each MiB begins with its number.
            #expect(data.prefix(8) == Data([0, 0, 0, 0, 0, 0, 0, 1]))
            #expect(data.dropFirst(1 << 20).prefix(8) == Data([0, 0, 0, 0, 0, 0, 0, 2]))
        }
    }

    @Test("many concurrent downloads") func concurrent() async throws {
        let (manager, directory, server) = (manager, directory, server)
        let failures = await withTaskGroup(of: Bool.self) { group in
            for index in 1...100 {
                group.addTask {
                    let url = server.url("/bytes/\(index * 10_000)?seed=\(index)")
                    let response = await manager.download(url, to: directory.file("\(index)")).validate().serializingData().response
                    return response.value != GeneratedBody(seed: UInt64(index)).data(count: index * 10_000)
                }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(failures == 0)
        #expect(try contents(of: directory).count == 100)
    }
}
