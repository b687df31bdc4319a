// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewOperations
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct OutputFileTests {
    private let directory: TemporaryDirectory
    private let file: URL
    private let before = Data("before".utf8)
    /// How many names a body has before it is complete: none where the file system has files without names.
    private let partNames: Int

    init() throws {
        directory = try TemporaryDirectory()
        file = directory.file("body")
        let part = try PartFile(in: directory.url)
        partNames = part.isNamed ? 1 : 0
        part.discard()
    }

    private func operation(_ url: String) throws -> HTTPRequestOperation {
        let operation = try HTTPRequestOperation.make(url)
        operation.outputFile = file
        return operation
    }

    @Test("a body has no name, or a hidden one, until it is complete, also across a pause; then it replaces the existing file")
    func hidden() async throws {
        try directory.write(before, to: "body")
        let server = try HalfServer()
        let operation = try operation(server.url)
        operation.start()
        await operation.received(HalfServer.half - 1)
        let names = try contents(of: directory)
        #expect(names.count == 1 + partNames && names.filter { $0.hasPrefix(".body.") && $0.hasSuffix(".part") }.count == partNames)
        operation.pause()
        #expect(try contents(of: directory) == names && Data(contentsOf: file) == before)
        operation.resume()
        _ = try await operation.value
        #expect(try contents(of: directory) == ["body"] && Data(contentsOf: file) == HalfServer.body)
    }

    @Test("a process killed while it writes a body, or while its operation is paused, leaves no file", arguments: ["run", "pause"])
    func killed(_ moment: String) async throws {
        guard partNames == 0 else { return }
        try directory.write(before, to: "body")
        let server = try HalfServer()
        let process = try Probe.start("output", server.url, file.path)
        #expect(await process.readLine() == "received=1")
        if moment == "pause" {
            process.writeLine()
            #expect(await process.readLine() == "paused=1")
        }
        process.send(SIGKILL)
        #expect(await process.finish().status == -1)
        #expect(try contents(of: directory) == ["body"] && Data(contentsOf: file) == before)
    }

    @Test("an archive gives the partial file its hidden name, in which all bytes are")
    func archivedName() async throws {
        let server = try HalfServer()
        let operation = try operation(server.url)
        operation.start()
        await operation.received(HalfServer.half - 1)
        let archive = operation.archive()
        let names = try contents(of: directory)
        #expect(names.count == 1 && names.allSatisfy { $0.hasPrefix(".body.") && $0.hasSuffix(".part") })
        let part = try Data(contentsOf: directory.file(#require(names.first)))
        #expect(part == HalfServer.body.prefix(Int(HalfServer.half)) && archive.totalBytesRead == HalfServer.half)
        // Resumed, it writes to the file that the archive refers to.
        operation.resume()
        _ = try await operation.value
        #expect(try contents(of: directory) == ["body"] && Data(contentsOf: file) == HalfServer.body)
        #expect(server.requests.last?.header("Range") == "bytes=\(HalfServer.half)-")
    }

    @Test("the file is in place before the operation reports completion")
    func order() async throws {
        final class Reader: HTTPRequestOperation, @unchecked Sendable {  // the log is locked
            let bodies = Log<Data?>()

            override func connectionDidFinishLoading() {
                super.connectionDidFinishLoading()
                bodies.append(outputFile.flatMap { try? Data(contentsOf: $0) })
            }
        }
        let server = try LoopbackServer.standard()
        let operation = try Reader.make(server.url("/bytes/1000"))
        operation.outputFile = file
        try await operation.run()
        #expect(operation.bodies.elements == [GeneratedBody().data(count: 1000)])
    }

    enum Failure: CaseIterable, Sendable {
        case lostConnection, rejectedResponse, status, cancelled, cancelledWhilePaused, released, otherFile, baseClass
    }

    @Test("a failed replacement keeps the existing file and leaves no other", arguments: Failure.allCases)
    func failures(_ failure: Failure) async throws {
        try directory.write(before, to: "body")
        let server = try LoopbackServer { request, connection in
            if failure == .status || failure == .baseClass { return ServerResponse(status: 404, body: .data(Data("absent".utf8))) }
            if failure == .rejectedResponse { return .generated(length: 1000, for: request) }
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            try connection.send(raw: GeneratedBody().data(count: 500))
            if failure == .lostConnection { connection.close() } else { connection.waitUntilClosed() }
            return nil
        }
        var operation: URLConnectionOperation? =
            failure == .baseClass ? try URLConnectionOperation.make(server.url("/")) : try HTTPRequestOperation.make(server.url("/"))
        operation?.outputFile = file
        if failure == .rejectedResponse { (operation as? HTTPRequestOperation)?.responseSerializer.acceptance.statusCodes = [201] }
        operation?.start()
        switch failure {
        case .lostConnection, .rejectedResponse, .status, .baseClass: break
        case .cancelled:
            await operation?.received(499)
            #expect(try contents(of: directory).count == 1 + partNames)
            operation?.cancel()
        case .cancelledWhilePaused, .released, .otherFile:
            await operation?.received(499)
            operation?.pause()
        }
        switch failure {
        case .cancelledWhilePaused: operation?.cancel()
        case .released:
            operation = nil
            // Work left on its queue still retains it.
            while try contents(of: directory).count > 1 { await Task.yield() }
        case .otherFile:
            operation?.outputFile = directory.file("other")
            #expect(try contents(of: directory) == ["body"])
            operation?.cancel()
        default: break
        }
        await operation?.waitForEnd()
        #expect(failure == .baseClass || failure == .released || operation?.error != nil)
        #expect(try contents(of: directory) == ["body"] && Data(contentsOf: file) == before)
    }

    @Test("a destination that can't be replaced fails the operation and is kept", arguments: ["directory", "missing"])
    func irreplaceable(_ kind: String) async throws {
        let server = try LoopbackServer.standard()
        let operation = try HTTPRequestOperation.make(server.url("/bytes/1000"))
        if kind == "directory" {
            try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
            operation.outputFile = file
        } else {
            operation.outputFile = directory.file("missing/body")
        }
        await operation.runToEnd()
        #expect((operation.error as? CocoaError)?.code == (kind == "directory" ? .fileWriteFileExists : .fileNoSuchFile))
        #expect(try contents(of: directory) == (kind == "directory" ? ["body"] : []))
    }

    @Test("a destination that can't be replaced at the end is reported as the error")
    func irreplaceableAtTheEnd() async throws {
        let server = try HalfServer()
        let operation = try operation(server.url)
        operation.start()
        await operation.received(HalfServer.half - 1)
        operation.pause()
        try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
        operation.resume()
        await operation.waitForEnd()
        #expect((operation.error as? CocoaError) != nil && operation.responseObject == nil)
        #expect(try contents(of: directory) == ["body"])
    }

    @Test("a symbolic link is replaced, and its target is kept")
    func link() async throws {
        let target = try directory.write(before, to: "target")
        try FileManager.default.createSymbolicLink(at: file, withDestinationURL: target)
        let server = try LoopbackServer.standard()
        try await operation(server.url("/bytes/1000")).run()
        #expect(try Data(contentsOf: target) == before && Data(contentsOf: file).count == 1000)
    }

    @Test("an archive keeps its partial file until the operation resumes; a restored operation that fails removes it")
    func archives() async throws {
        let gate = Gate()
        let server = try LoopbackServer { request, connection in
            if request.header("Range") != nil {
                connection.wait(until: gate)
                return .status(503)
            }
            try connection.send(raw: "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 1000\r\n\r\n")
            try connection.send(raw: GeneratedBody().data(count: 500))
            connection.waitUntilClosed()
            return nil
        }
        var archive: OperationArchive?
        do {
            let operation = try operation(server.url("/"))
            operation.start()
            await operation.received(499)
            archive = operation.archive()
            operation.cancel()
            await operation.waitForEnd()
        }
        #expect(try contents(of: directory).count == 1)
        let kept = try #require(archive)
        do {
            // Restored, but released without being started.
            _ = try HTTPRequestOperation(archive: kept).request
        }
        #expect(try contents(of: directory).count == 1)
        let restored = try HTTPRequestOperation(archive: kept)
        restored.session = makeSession()
        restored.start()
        #expect(await server.waitForRequests(2))
        // A second operation from the same archive does not write to the same file.
        let other = try HTTPRequestOperation(archive: kept)
        other.session = makeSession()
        let pieces = Log<Int64>()
        other.setDownloadProgressBlock { _, total, _ in pieces.append(total) }
        other.start()
        await pieces.wait(for: 1)
        #expect(try contents(of: directory).count == 1 + partNames)
        #expect(server.requests.last?.header("Range") == nil)
        other.cancel()
        await other.waitForEnd()
        #expect(try contents(of: directory).count == 1)
        gate.open()
        await restored.waitForEnd()
        #expect(restored.urlErrorCode == .badServerResponse)
        #expect(try contents(of: directory).isEmpty)
    }

    @Test("an archive of an operation that is then resumed has no partial file of its own")
    func archivedAndResumed() async throws {
        let server = try HalfServer { _ in .status(503) }
        let operation = try operation(server.url)
        operation.start()
        await operation.received(HalfServer.half - 1)
        let archive = operation.archive()
        operation.resume()
        await operation.waitForEnd()
        #expect(try contents(of: directory).isEmpty)
        let restored = try HTTPRequestOperation(archive: archive)
        restored.session = makeSession()
        try await restored.run()
        #expect(try Data(contentsOf: file) == HalfServer.body && server.requests.last?.header("Range") == nil)
    }
}
