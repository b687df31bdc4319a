// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

private func codeOf(_ error: (any Error)?) -> CocoaError.Code? { (error as? CocoaError)?.code }

@Suite(.timeLimit(.minutes(1))) struct PartFileTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func write(_ text: String, for name: String, isNamed: Bool = true) throws -> PartFile {
        let file = try PartFile(in: directory.url, for: name, isNamed: isNamed)
        try Data(text.utf8).withUnsafeBytes { try file.write($0) }
        try file.close()
        return file
    }

    @Test(
        "a file is hidden until it is whole, whatever its name",
        arguments: [
            "file.txt", "with spaces", "naïve-日本語.txt", String(repeating: "n", count: 255), String(repeating: "é", count: 127), ".dot",
        ], [true, false])
    func names(_ name: String, isNamed: Bool) throws {
        let file = try write("text", for: name, isNamed: isNamed)
        let parts = try contents(of: directory.url)
        #expect(parts.count == (file.isNamed ? 1 : 0) && parts.allSatisfy { $0.hasPrefix(".") && $0.hasSuffix(".part") })
        let target = directory.file(name)
        try file.move(to: target, replacing: false, creatingDirectories: false)
        #expect(try contents(of: directory.url) == [name])
        #expect(try String(contentsOf: target, encoding: .utf8) == "text")
    }

    @Test("a file without a name gets a hidden one that is free, and can lose it again", arguments: [true, false])
    func hiddenName(isNamed: Bool) throws {
        let file = try write("text", for: "file", isNamed: isNamed)
        // Somebody else's is not replaced.
        if !file.isNamed { try Data("other".utf8).write(to: file.url) }
        let others = try contents(of: directory.url).filter { $0 != file.url.lastPathComponent || !file.isNamed }
        try file.giveName()
        #expect(try contents(of: directory.url).count == others.count + 1)
        #expect(try String(contentsOf: file.url, encoding: .utf8) == "text")
        #expect(PartFile.isName(file.url.lastPathComponent))
        file.takeName()
        #expect(try contents(of: directory.url) == others)
        #expect(file.length == 4)
        file.resume()
        #expect(file.offset == 4)
        try Data("more".utf8).withUnsafeBytes { try file.write($0) }
        try file.close()
        // What has lost its name is copied.
        try file.giveName()
        #expect(try String(contentsOf: file.url, encoding: .utf8) == "textmore")
        file.discard()
        #expect(try contents(of: directory.url) == others)
    }

    @Test("a file without a name that can't get one says so, and leaves nothing")
    func noName() throws {
        let place = directory.file("place")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: false)
        let file = try PartFile(in: place, for: "file")
        file.takeName()
        try FileManager.default.removeItem(at: place)
        let error = #expect(throws: CocoaError.self) { try file.giveName() }
        #expect(codeOf(error) == .fileNoSuchFile)
        #expect(!file.isNamed)
        file.discard()
    }

    @Test("what is there stays unless it is to be replaced", arguments: [true, false])
    func existing(isNamed: Bool) throws {
        let target = try directory.write(Data("old".utf8), to: "file")
        let file = try write("new", for: "file", isNamed: isNamed)
        let error = #expect(throws: CocoaError.self) { try file.move(to: target, replacing: false, creatingDirectories: false) }
        #expect(codeOf(error) == .fileWriteFileExists)
        #expect(try String(contentsOf: target, encoding: .utf8) == "old")
        try file.move(to: target, replacing: true, creatingDirectories: false)
        #expect(try String(contentsOf: target, encoding: .utf8) == "new")
        #expect(try contents(of: directory.url) == ["file"])
    }

    @Test("a directory at the destination is an error and stays", arguments: [false, true], [false, true])
    func existingDirectory(isReplaced: Bool, isNamed: Bool) throws {
        let target = directory.file("sub")
        try FileManager.default.createDirectory(at: target, withIntermediateDirectories: true)
        let file = try write("new", for: "sub", isNamed: isNamed)
        let error = #expect(throws: CocoaError.self) {
            try file.move(to: target, replacing: isReplaced, creatingDirectories: false)
        }
        #expect(codeOf(error) == .fileWriteFileExists)
        #expect(try contents(of: target).isEmpty)
    }

    @Test("directories are made only when asked for", arguments: [true, false])
    func directories(isNamed: Bool) throws {
        let target = directory.url.appendingPathComponent("a/b/file")
        let file = try write("new", for: "file", isNamed: isNamed)
        let error = #expect(throws: CocoaError.self) { try file.move(to: target, replacing: false, creatingDirectories: false) }
        #expect(codeOf(error) == .fileNoSuchFile)
        try file.move(to: target, replacing: false, creatingDirectories: true)
        #expect(try String(contentsOf: target, encoding: .utf8) == "new")
    }

    @Test("a directory that is none, or not there, is an error with its path", arguments: ["file", "none"])
    func badDirectory(_ name: String) throws {
        try directory.write(Data(), to: "file")
        let error = #expect(throws: CocoaError.self) { _ = try PartFile(in: directory.file(name)) }
        #expect(codeOf(error) == .fileNoSuchFile)
        #expect(error?.userInfo["NSFilePath"] as? String == directory.file(name).path)
    }

    @Test("large pieces and small ones make one file", arguments: [true, false])
    func pieces(isNamed: Bool) throws {
        let file = try PartFile(in: directory.url, isNamed: isNamed)
        var expected = Data()
        for count in [1, 300_000, 17, 262_144, 262_143, 5, 0] {
            let piece = Data(repeating: UInt8(truncatingIfNeeded: count), count: count)
            expected += piece
            try piece.withUnsafeBytes { try file.write($0) }
        }
        try file.close()
        try file.giveName()
        #expect(try Data(contentsOf: file.url) == expected)
        file.discard()
        #expect(try contents(of: directory.url).isEmpty)
    }

    @Test("what has come is in the file before long, also if no more comes")
    func flushInterval() async throws {
        let file = try PartFile(in: directory.url)
        for count in [1, 300_000, 5] {
            let before = file.length
            try Data(repeating: 7, count: count).withUnsafeBytes { try file.write($0) }
            #expect(await eventually { file.length == before + Int64(count) })
        }
        file.discard()
        #expect(try contents(of: directory.url).isEmpty)
    }

    #if os(Linux)
    @Test("an error of bytes that had waited is thrown by the next write, once, and ends the writing")
    func lateError() async throws {
        let file = try PartFile(in: directory.url, isNamed: true)
        let descriptor = try #require(
            try contents(of: URL(fileURLWithPath: "/proc/self/fd")).compactMap { Int32($0) }.first { descriptor in
                let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
                return target == file.url.path
            })
        let full = open("/dev/full", O_WRONLY)
        #expect(full >= 0 && dup2(full, descriptor) == descriptor)
        close(full)
        let byte = Data([7])
        try byte.withUnsafeBytes { try file.write($0) }
        var error: (any Error)?
        let hasThrown = await eventually {
            // Adds nothing: more bytes would be written, and fail, without having waited.
            do { try Data().withUnsafeBytes { try file.write($0) } } catch let thrown { error = thrown }
            return error != nil
        }
        #expect(hasThrown && codeOf(error) == .fileWriteOutOfSpace)
        #expect((error as? CocoaError)?.userInfo["NSFilePath"] as? String == file.url.path)
        try byte.withUnsafeBytes { try file.write($0) }
        try file.close()
        #expect(file.length == 0)
    }
    #endif

    private func mode(_ url: URL) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: url.path)[.posixPermissions] as? Int
    }

    @Test(
        "a file is its owner's only until it is at its destination, where it has the rights of new files, also one that had lost its name",
        arguments: [true, false], [true, false])
    func permissions(isNamed: Bool, hasLostName: Bool) throws {
        let place = directory.file("place")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: false)
        #expect(FileManager.default.createFile(atPath: directory.file("other").path, contents: Data()))
        for (target, replacing) in [("file", false), ("file", true), ("place/file", false), ("place/file", true)] {
            let file = try write("text", for: "file", isNamed: isNamed)
            if hasLostName { file.takeName() }
            try file.giveName()
            #expect(try mode(file.url) == 0o600)
            try file.move(to: directory.file(target), replacing: replacing, creatingDirectories: false)
            #expect(try mode(directory.file(target)) == mode(directory.file("other")))
        }
        let unnamed = try write("text", for: "file", isNamed: false)
        try unnamed.move(to: directory.file("unnamed"), replacing: false, creatingDirectories: false)
        #expect(try mode(directory.file("unnamed")) == mode(directory.file("other")))
        let record = try PartFile(in: directory.url, for: "record", isPrivate: true, isNamed: isNamed)
        try record.close()
        try record.move(to: directory.file("record"), replacing: true, creatingDirectories: false)
        #expect(try mode(directory.file("record")) == 0o600)
        #expect(try contents(of: directory.url) == ["file", "other", "place", "record", "unnamed"])
    }

    @Test("a part file that a later process continues is its owner's only, and another user's is not continued")
    func planted() throws {
        let url = directory.file(".file.part")
        #expect(PartFile(continuing: url, isMade: true) != nil)
        #expect(try mode(url) == 0o600)
        // Only root can give files away.
        guard geteuid() == 0 else { return }
        #expect(chown(url.path, 12_345, 0) == 0)
        #expect(PartFile(continuing: url, isMade: true) == nil)
    }

    @Test(
        "a file is copied to another file system", .enabled(if: FileManager.default.fileExists(atPath: "/dev/shm")),
        arguments: [true, false], [true, false])
    func otherFileSystem(_ replacing: Bool, isNamed: Bool) throws {
        let elsewhere = URL(fileURLWithPath: "/dev/shm/curlew-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: elsewhere, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: elsewhere) }
        let text = String(repeating: "text", count: 200_000)
        let target = elsewhere.appendingPathComponent("file")
        try Data("old".utf8).write(to: target)
        let file = try write(text, for: "file", isNamed: isNamed)
        if replacing {
            try file.move(to: target, replacing: true, creatingDirectories: false)
            #expect(try contents(of: directory.url).isEmpty)
            #expect(try String(contentsOf: target, encoding: .utf8) == text)
        } else {
            let error = #expect(throws: CocoaError.self) { try file.move(to: target, replacing: false, creatingDirectories: false) }
            #expect(codeOf(error) == .fileWriteFileExists)
            #expect(try String(contentsOf: target, encoding: .utf8) == "old")
        }
        #expect(try contents(of: elsewhere) == ["file"])
    }

    @Test("a file that was left is gone on with, by one at a time")
    func continued() throws {
        let url = try write("half", for: "file").url
        var file = PartFile(continuing: url)
        #expect(file?.length == 4)
        #expect(file?.offset == 4)
        #expect(PartFile(continuing: url) == nil)
        try Data("rest".utf8).withUnsafeBytes { try file?.write($0) }
        try file?.close()
        // Closed is not moved.
        #expect(PartFile(continuing: url) == nil)
        #expect(file?.length == 8)
        try file?.move(to: directory.file("file"), replacing: false, creatingDirectories: false)
        file = nil
        #expect(try String(contentsOf: directory.file("file"), encoding: .utf8) == "halfrest")
    }

    @Test("what is no plain file is not gone on with", arguments: ["none", "directory", "link", "pipe"])
    func notContinued(_ kind: String) throws {
        let url = directory.file(".file.part")
        switch kind {
        case "directory": try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
        case "link": try FileManager.default.createSymbolicLink(at: url, withDestinationURL: directory.write(Data(), to: "target"))
        case "pipe": #expect(mkfifo(url.path, 0o600) == 0)
        default: break
        }
        #expect(PartFile(continuing: url) == nil)
        let made = PartFile(continuing: url, isMade: true)
        #expect((made != nil) == (kind == "none"))
        try Data("text".utf8).withUnsafeBytes { try made?.write($0) }
        try made?.truncate()
        try made?.close()
        #expect(made.map(\.length) ?? 0 <= 4)
    }
}
