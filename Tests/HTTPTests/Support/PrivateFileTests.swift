// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@Suite struct PrivateFileTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func mode(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    @Test func `files and directories are accessible to their owner only`() throws {
        let (_, path) = try #require(PrivateFile.create(in: directory.url.path, named: ".a.", ".part"))
        #expect(try mode(path) == 0o600)
        let file = directory.file("file").path
        try PrivateFile.replace(file, with: Data("text".utf8))
        #expect(try mode(file) == 0o600)
        let deep = directory.file("a/b/c").path
        try PrivateFile.makeDirectory(deep)
        try PrivateFile.makeDirectory(deep)
        for name in ["a", "a/b", "a/b/c"] { #expect(try mode(directory.file(name).path) == 0o700) }
        #expect(throws: CocoaError.self) { try PrivateFile.makeDirectory(file) }
    }

    @Test func `a file is replaced by a new one, and a symbolic link in its place is not followed`() throws {
        let target = try directory.write(Data("target".utf8), to: "target")
        let link = directory.file("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: target)
        #expect(PrivateFile.open(link.path, O_WRONLY | O_CREAT) == nil && errno == ELOOP)
        try PrivateFile.replace(link.path, with: Data("new".utf8))
        #expect(try String(contentsOf: target, encoding: .utf8) == "target")
        #expect(try String(contentsOf: link, encoding: .utf8) == "new")
        #expect(try contents(of: directory) == ["link", "target"])
        let place = directory.file("place")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: false)
        #expect(throws: CocoaError.self) { try PrivateFile.replace(place.path, with: Data()) }
        #expect(try contents(of: directory) == ["link", "place", "target"])
    }

    @Test func `only regular files up to a limit are read, and a pipe is not waited for`() throws {
        let file = try directory.write(Data("text".utf8), to: "file")
        #expect(try PrivateFile.read(file.path, upTo: 4) == Data("text".utf8))
        #expect(throws: CocoaError.self) { try PrivateFile.read(file.path, upTo: 3) }
        let link = directory.file("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
        let pipe = directory.file("pipe").path
        #expect(mkfifo(pipe, 0o600) == 0)
        for path in [link.path, pipe, directory.url.path, directory.file("none").path] {
            #expect(throws: CocoaError.self, "\(path)") { try PrivateFile.read(path) }
        }
    }

    // Only root can give files away.
    @Test(.enabled(if: geteuid() == 0)) func `a file of neither this user nor the owner of its directory is another user's`() throws {
        let file = try directory.write(Data(), to: "file")
        var status = stat()
        for (owner, isForeign) in [(uid_t(0), false), (12_345, true)] {
            #expect(chown(file.path, owner, 0) == 0 && stat(file.path, &status) == 0)
            #expect(PrivateFile.isForeign(status, in: directory.url.path) == isForeign)
        }
        #expect(chown(directory.url.path, 12_345, 0) == 0)
        #expect(!PrivateFile.isForeign(status, in: directory.url.path))
    }
}
