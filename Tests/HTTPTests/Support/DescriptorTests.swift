// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@Suite struct DescriptorTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func open(_ flags: Int32 = O_RDWR | O_CREAT) throws -> Descriptor {
        try #require(Descriptor.open(directory.file("file").path, flags))
    }

    @Test func `bytes are read from the position, or at an offset, up to the end of the file`() throws {
        let file = try open()
        try file.write(Data("0123456789".utf8))
        #expect(try file.read(4).isEmpty)
        #expect(file.seek(to: 2) == 2)
        #expect(try file.read(3) == Data("234".utf8))
        #expect(try file.read(4, at: 8) == Data("89".utf8))
        #expect(try file.read(100) == Data("56789".utf8))
        #expect(try file.read(0, at: 3).isEmpty)
    }

    @Test(arguments: [(6, "012345"), (3, "012"), (2, "01")])
    func `what is known of the beginning is not read again`(_ count: Int, _ expected: String) throws {
        let file = try open()
        try file.write(Data("__2345".utf8))
        let bytes = try Array("x01?".utf8).withUnsafeBytes { try file.read(count, at: 0, beginningWith: $0[1..<3]) }
        #expect(bytes == Data(expected.utf8))
    }

    @Test func `bytes are written at the position, or at an offset, which leaves the position`() throws {
        let file = try open()
        try file.write(Array("abc".utf8))
        try file.write(Data("XY".utf8), at: 1)
        try file.write(Data("d".utf8))
        #expect(try file.read(10, at: 0) == Data("aXYd".utf8))
        #expect(file.truncate(to: 2) && file.status?.st_size == 2 && file.sync() && file.syncData())
    }

    @Test func `errors have the code of the system`() throws {
        try open().close()
        let file = try open(O_RDONLY)
        #expect(throws: SystemError(code: EBADF)) { try file.write(Data("a".utf8)) }
        #expect(throws: SystemError(code: EBADF)) { try file.write(Data("a".utf8), at: 0) }
        #expect(throws: SystemError(code: EISDIR)) { try #require(Descriptor.open(directory.url.path, O_RDONLY)).read(1) }
        #expect(Descriptor.open(directory.file("none").path, O_RDONLY) == nil && errno == ENOENT)
    }

    #if os(Linux)
    @Test func `a full disk is an error of the write`() throws {
        let file = try #require(Descriptor.open("/dev/full", O_WRONLY))
        #expect(throws: SystemError(code: ENOSPC)) { try file.write(Data("a".utf8)) }
    }
    #endif

    @Test func `a file is closed once, by the call or with the last reference`() throws {
        let file = try open()
        let number = file.number
        try file.close()
        #expect(file.number == -1 && fcntl(number, F_GETFD) == -1)
        try file.close()
        #expect(throws: SystemError(code: EBADF)) { try file.read(1) }
    }

    @Test func `a lock is kept until the last duplicate is closed`() throws {
        let file = try open()
        #expect(file.lock())
        let copy = try #require(file.duplicate())
        try file.close()
        let other = try open()
        #expect(!other.lock() && errno == EWOULDBLOCK)
        try copy.close()
        #expect(other.lock())
    }

    @Test func `the time of modification is set, and that of access is kept`() throws {
        let file = try open()
        let before = try #require(file.status)
        #expect(file.setModified(at: timespec(tv_sec: 1_000_000_000, tv_nsec: 5)))
        let after = try #require(file.status)
        #expect(after.modificationTime.tv_sec == 1_000_000_000 && after.modificationTime.tv_nsec == 5)
        #if os(Linux)
        #expect(after.st_atim.tv_sec == before.st_atim.tv_sec && after.st_atim.tv_nsec == before.st_atim.tv_nsec)
        #endif
    }
}
