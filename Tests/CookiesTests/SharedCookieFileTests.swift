// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Foundation
import Testing

@testable import CurlewCookies

/// A file of cookies, and one of hosts, that several processes change, that are killed, or find no room on the disk.
@Suite(.timeLimit(.minutes(3))) struct SharedCookieFileTests {
    private let directory: TemporaryDirectory
    private let file: URL

    init() throws {
        directory = try TemporaryDirectory()
        file = directory.file("cookies.txt")
    }

    /// The generation of the cookies, all of which one change sets; 0 without a file.
    private func generation() throws -> Int {
        guard FileManager.default.fileExists(atPath: file.path) else { return 0 }
        let bytes = [UInt8](try Data(contentsOf: file))
        let read = NetscapeFormat.read(bytes, now: Date())
        #expect(read.hasHeader && read.unread.isEmpty && bytes.last == 0x0A)
        #expect(read.cookies.count == JarGeneration.count)
        let values = Set(read.cookies.map(\.value))
        #expect(values.count == 1)
        return try #require(values.first.flatMap { Int($0) })
    }

    private enum JarGeneration {
        /// What the probe sets at once.
        static let count = 40
    }

    // Only root can give files away.
    @Test("another user's symbolic link in the place of the file is not followed", .enabled(if: geteuid() == 0)) func foreignLink() throws {
        let target = try directory.write(Data("target".utf8), to: "target")
        for file in [file, directory.file("hosts")] {
            try FileManager.default.createSymbolicLink(at: file, withDestinationURL: target)
            #expect(lchown(file.path, 12_345, 12_345) == 0)
        }
        try Data().write(to: target)
        let cookies = CookieStore.file(file)
        #expect(throws: CocoaError.self) {
            try cookies.set(Cookie(name: "a", value: "1", domain: "example.org", expirationDate: .distantFuture))
        }
        var status = stat()
        // Foundation leaks when it reads an empty file.
        #expect(stat(target.path, &status) == 0 && status.st_size == 0)
        #expect(lstat(file.path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
    }

    @Test("what several processes set at once is all there") func processes() async throws {
        let names = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
        let processes = try names.map { try Probe.start("jar", file.path, $0, "12") }
        for process in processes { #expect(await process.finish().status == 0) }
        let cookies = try CookieStore.file(file).cookies()
        #expect(cookies.count == names.count * 12)
        #expect(Set(cookies.map(\.value)) == Set(names))
        #expect(try HSTSStore.file(directory.file("cookies.txt.hsts")).hosts().count == names.count * 12)
        let left = [".cookies.txt.hsts.lock", ".cookies.txt.lock", "cookies.txt", "cookies.txt.hsts"]
        #expect(try contents(of: directory) == left)
    }

    @Test("a process that is killed at any moment leaves the old or the new file") func killed() async throws {
        let rounds = TestLength.value(8, long: 100)
        var random = SplitMix(state: 23)
        var last = 0
        for _ in 0..<rounds {
            let process = try Probe.start("jar-fill", file.path, "\(last)")
            // Once it has told of one, it writes all the time.
            _ = await process.readLine()
            try await Task.sleep(for: .microseconds(Int.random(in: 0..<20_000, using: &random)))
            process.send(SIGKILL)
            _ = await process.finish()
            let found = try generation()
            #expect(found > last)
            last = found
        }
        // What was abandoned is no obstacle.
        try CookieStore.file(file).removeAll()
        #expect(try contents(of: directory).contains(".cookies.txt.new") == false)
    }

    @Test("a full disk leaves the old file, and the error tells") func fullDisk() async throws {
        let first = try await Probe.run("jar-fill", file.path, "0", "1000000", "1")
        #expect(first["failed"] == 0)
        let old = try Data(contentsOf: file)
        #expect(try generation() == 1)
        // At the first byte, in the middle, and before the last one.
        for limit in [0, 1, 100, old.count / 2, old.count - 1] {
            let report = try await Probe.run("jar-fill", file.path, "1", "\(limit)", "1")
            #expect(report["failed"] == 1)
            #expect(report["held"] == 1)
            #expect(try Data(contentsOf: file) == old)
            #expect(try contents(of: directory) == [".cookies.txt.lock", "cookies.txt"])
        }
        #expect(try await Probe.run("jar-fill", file.path, "1", "1000000", "1")["failed"] == 0)
        #expect(try generation() == 2)
    }
}
