// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@testable import CurlewEncoding

@Suite(.timeLimit(.minutes(1))) final class MultipartFormDataTests {
    private let directory: URL

    init() throws {
        directory = FileManager.default.temporaryDirectory.appendingPathComponent("curlew-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: directory)
    }

    /// A form with the boundary `B`.
    private func form(_ fill: (MultipartFormData) throws -> Void) rethrows -> MultipartFormData {
        let form = MultipartFormData()
        form.boundary = "B"
        try fill(form)
        return form
    }

    private func text(_ form: MultipartFormData) throws -> String { String(decoding: try form.encode(), as: UTF8.self) }

    private func file(_ name: String, _ contents: Data = Data()) throws -> URL {
        let url = directory.appendingPathComponent(name)
        try contents.write(to: url)
        return url
    }

    private func written(_ form: MultipartFormData) throws -> Data {
        let url = directory.appendingPathComponent("written-\(UUID().uuidString)")
        try form.writeEncodedData(to: url)
        return try Data(contentsOf: url)
    }

    private func reason(_ body: () throws -> Void) -> CurlewError.MultipartEncodingFailureReason? {
        do {
            try body()
        } catch CurlewError.multipartEncodingFailed(let reason, _) {
            return reason
        } catch {
            Issue.record(error)
        }
        return nil
    }

    // MARK: Body

    @Test("the boundary is a prefix and 16 random hexadecimal digits, and part of the content type")
    func boundary() {
        let (one, other) = (MultipartFormData(), MultipartFormData())
        #expect(one.boundary != other.boundary)
        #expect(one.boundary.wholeMatch(of: /curlew\.boundary\.[0-9a-f]{16}/) != nil)
        #expect(one.contentType == "multipart/form-data; boundary=\(one.boundary)")
        one.boundary = "other"
        #expect(one.contentType == "multipart/form-data; boundary=other")
        one.boundary = "with space"
        #expect(one.contentType == "multipart/form-data; boundary=\"with space\"")
        one.contentType = "multipart/mixed; boundary=x"
        #expect(one.contentType == "multipart/mixed; boundary=x")
    }

    @Test("data parts: with a name, a type, a file name and a type")
    func dataParts() throws {
        let form = form {
            $0.append(Data("one".utf8), withName: "a")
            $0.append(Data("{}".utf8), withName: "b", mimeType: "application/json")
            $0.append(Data("GIF".utf8), withName: "c", fileName: "c.gif", mimeType: "image/gif")
        }
        #expect(form.contentLength == 8)
        let expected =
            "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\none"
            + "\r\n--B\r\nContent-Disposition: form-data; name=\"b\"\r\nContent-Type: application/json\r\n\r\n{}"
            + "\r\n--B\r\nContent-Disposition: form-data; name=\"c\"; filename=\"c.gif\"\r\nContent-Type: image/gif\r\n\r\nGIF"
            + "\r\n--B--\r\n"
        #expect(try text(form) == expected)
        #expect(try written(form) == Data(expected.utf8))
    }

    @Test("a form without parts, and one with an empty part")
    func empty() throws {
        #expect(try text(form { _ in }) == "--B--\r\n")
        let form = form { $0.append(Data(), withName: "a") }
        #expect(form.contentLength == 0)
        #expect(try text(form) == "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n--B--\r\n")
    }

    @Test("a file whose length the system reports as 0 is read when it is appended")
    func fileOfUnknownLength() throws {
        let file = URL(fileURLWithPath: "/proc/self/cmdline")
        let form = form { $0.append(file, withName: "a", fileName: "b", mimeType: "text/plain") }
        let contents = try Data(readingFrom: file)
        #expect(form.contentLength == contents.count && !contents.isEmpty)
        #expect(try form.encode().range(of: contents) != nil)
    }

    @Test("a file part has the file's name, and the type of its extension")
    func filePart() throws {
        let url = try file("bird.PNG", Data("png".utf8))
        let form = form { $0.append(url, withName: "photo") }
        #expect(form.contentLength == 3)
        let expected =
            "--B\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"bird.PNG\"\r\nContent-Type: image/png\r\n\r\npng\r\n--B--\r\n"
        #expect(try text(form) == expected)
        #expect(try text(form) == expected, "a file can be read again")
        let unknown = try file("bird.nobodyknows")
        let other = self.form { $0.append(unknown, withName: "x") }
        #expect(try text(other).contains("\r\nContent-Type: application/octet-stream\r\n"))
    }

    @Test("a file part with an explicit name and type needs no extension")
    func namedFilePart() throws {
        let url = try file("plain", Data("abc".utf8))
        let form = form { $0.append(url, withName: "f", fileName: "other.txt", mimeType: "text/x-own") }
        #expect(
            try text(form)
                == "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"other.txt\"\r\nContent-Type: text/x-own\r\n\r\nabc\r\n--B--\r\n"
        )
    }

    @Test("stream parts, by name and with custom headers")
    func streamParts() throws {
        func make() -> MultipartFormData {
            form {
                $0.append(InputStream(data: Data("one".utf8)), withLength: 3, name: "a", fileName: "a.bin", mimeType: "x/y")
                $0.append(InputStream(data: Data("two".utf8)), withLength: 3, headers: ["X-One": "1"])
                $0.append(InputStream(data: Data()), withLength: 0, headers: [:])
            }
        }
        #expect(make().contentLength == 6)
        let expected =
            "--B\r\nContent-Disposition: form-data; name=\"a\"; filename=\"a.bin\"\r\nContent-Type: x/y\r\n\r\none"
            + "\r\n--B\r\nX-One: 1\r\n\r\ntwo\r\n--B\r\n\r\n\r\n--B--\r\n"
        #expect(try text(make()) == expected)
        #expect(try written(make()) == Data(expected.utf8))
    }

    @Test("headers are in a fixed order: disposition, type, others as given")
    func headerOrder() throws {
        let headers: HTTPHeaders = ["X-B": "2", "content-type": "t/t", "X-A": "1", "Content-Disposition": "form-data"]
        for _ in 0..<20 {
            let form = form { $0.append(InputStream(data: Data()), withLength: 0, headers: headers) }
            #expect(
                try text(form)
                    == "--B\r\nContent-Disposition: form-data\r\ncontent-type: t/t\r\nX-B: 2\r\nX-A: 1\r\n\r\n\r\n--B--\r\n")
        }
    }

    @Test("large parts are the same in memory and on disk", arguments: [65_535, 65_536, 65_537, 262_144, 1_000_003])
    func largeParts(_ count: Int) throws {
        let bytes = Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
        let url = try file("large.bin", bytes)
        func make() throws -> MultipartFormData {
            form {
                $0.append(bytes, withName: "data")
                $0.append(Data("x".utf8), withName: "small")
                $0.append(url, withName: "file")
                $0.append(InputStream(data: bytes), withLength: UInt64(count), name: "s", fileName: "s", mimeType: "a/b")
                $0.append(bytes, withName: "last")
            }
        }
        let encoded = try make().encode()
        #expect(try written(make()) == encoded)
        #expect(try make().contentLength == UInt64(4 * count + 1))
        let start = Data("\r\n\r\n".utf8)
        let position = try #require(encoded.firstRange(of: start)).upperBound
        #expect(encoded[position..<(position + count)] == bytes)
    }

    @Test("excessive announced lengths do not overflow the content length")
    func lengthOverflow() {
        let form = form {
            $0.append(InputStream(data: Data()), withLength: .max, headers: [:])
            $0.append(Data("a".utf8), withName: "a")
        }
        #expect(form.contentLength == .max)
        guard case .bodyPartLengthMismatch(announced: .max, actual: 0) = reason({ _ = try form.encode() }) else {
            Issue.record("no mismatch")
            return
        }
    }

    // MARK: Injection

    @Test(
        "quotes and line breaks in names and file names are escaped, all else is UTF-8",
        arguments: [
            ("a\"b", "a%22b"), ("a\r\nb", "a%0D%0Ab"), ("a\nb", "a%0Ab"), ("a\rb", "a%0Db"),
            ("x\"\r\nContent-Type: text/html\r\n\r\n<script>", "x%22%0D%0AContent-Type: text/html%0D%0A%0D%0A<script>"),
            ("a\"; filename=\"b", "a%22; filename=%22b"), ("Größe 鳥 🐦", "Größe 鳥 🐦"), ("100%22", "100%22"), ("a\\b", "a\\b"), ("", ""),
            ("e\u{301}\u{2028}\u{85}", "e\u{301}\u{2028}\u{85}"), ("--B", "--B"),
        ])
    func escaping(_ name: String, _ expected: String) throws {
        let form = form { $0.append(Data(), withName: name, fileName: name, mimeType: "a/b") }
        let disposition = "Content-Disposition: form-data; name=\"\(expected)\"; filename=\"\(expected)\""
        #expect(try form.encode() == Data("--B\r\n\(disposition)\r\nContent-Type: a/b\r\n\r\n\r\n--B--\r\n".utf8))
    }

    @Test(
        "a header that could inject another is an error",
        arguments: [
            ("X-One", "1\r\nX-Two: 2"), ("X-One", "1\n"), ("X-One", "1\r"), ("X-One", "\0"), ("X One", "1"), ("X-One\r\nX-Two", "1"),
            ("", "1"), ("X-One:", "1"),
        ])
    func invalidHeaders(_ name: String, _ value: String) {
        let form = form { $0.append(InputStream(data: Data()), withLength: 0, headers: [name: value]) }
        guard case .bodyPartHeaderInvalid(name) = reason({ _ = try form.encode() }) else {
            Issue.record("\(name): \(value) was accepted")
            return
        }
    }

    @Test("a MIME type with a line break or a name with another control character is an error")
    func invalidNames() {
        let type = form { $0.append(Data(), withName: "a", mimeType: "text/plain\r\nX: 1") }
        guard case .bodyPartHeaderInvalid("Content-Type") = reason({ _ = try type.encode() }) else {
            Issue.record("the type was accepted")
            return
        }
        let name = form { $0.append(Data(), withName: "a\0b") }
        guard case .bodyPartHeaderInvalid("Content-Disposition") = reason({ _ = try name.encode() }) else {
            Issue.record("the name was accepted")
            return
        }
    }

    @Test(
        "a boundary that violates RFC 2046 is an error",
        arguments: ["", "a\r\nb", "ü", "a ", "a\"b", String(repeating: "a", count: 71)])
    func invalidBoundaries(_ boundary: String) {
        let form = form { $0.append(Data(), withName: "a") }
        form.boundary = boundary
        guard case .boundaryInvalid(boundary) = reason({ _ = try form.encode() }) else {
            Issue.record("the boundary was accepted")
            return
        }
    }

    // MARK: Invalid files

    /// Returns the failure reason, with its URL, as text.
    private func failure(of url: URL, named: Bool = false) -> String? {
        let form = form { form in
            if named { form.append(url, withName: "a", fileName: "a", mimeType: "a/b") } else { form.append(url, withName: "a") }
        }
        return reason { _ = try form.encode() }.map { name(of: $0) }
    }

    private func name(of reason: CurlewError.MultipartEncodingFailureReason) -> String {
        String("\(Mirror(reflecting: reason).children.first?.label ?? "")")
    }

    @Test("each kind of invalid file has its reason")
    func files() throws {
        let web = try #require(URL(string: "https://example.org/a.txt"))
        #expect(failure(of: web) == "bodyPartURLInvalid")
        #expect(failure(of: directory.appendingPathComponent("noextension")) == "bodyPartFileNotReachableWithError")
        #expect(failure(of: directory.appendingPathComponent("missing.txt")) == "bodyPartFileNotReachableWithError")
        #expect(failure(of: directory, named: true) == "bodyPartFileIsDirectory")
        #expect(failure(of: URL(fileURLWithPath: "/dev/null"), named: true) == "bodyPartFileSizeNotAvailable")
        let pipe = directory.appendingPathComponent("pipe.bin")
        #expect(mkfifo(pipe.path, 0o600) == 0)
        #expect(failure(of: pipe) == "bodyPartFileSizeNotAvailable")
        let dangling = directory.appendingPathComponent("link.bin")
        try FileManager.default.createSymbolicLink(at: dangling, withDestinationURL: directory.appendingPathComponent("nothing"))
        #expect(["bodyPartFileNotReachableWithError", "bodyPartFileSizeQueryFailedWithError"].contains(failure(of: dangling)))
    }

    @Test("a file without an extension is a sequence of bytes")
    func extensionless() throws {
        let url = try file("noextension", Data("a".utf8))
        let form = form { $0.append(url, withName: "a") }
        let text = String(decoding: try form.encode(), as: UTF8.self)
        #expect(text.contains("filename=\"noextension\"\r\nContent-Type: application/octet-stream\r\n\r\na\r\n"))
    }

    @Test("a file without read permission can't be opened", .enabled(if: geteuid() != 0, "root may read everything"))
    func unreadableFile() throws {
        let url = try file("secret.txt", Data("a".utf8))
        chmod(url.path, 0)
        #expect(failure(of: url) == "bodyPartInputStreamCreationFailed")
    }

    @Test("a file removed between append and encode can't be opened")
    func vanishedFile() throws {
        let url = try file("going.txt", Data("abc".utf8))
        let form = form { $0.append(url, withName: "a") }
        try FileManager.default.removeItem(at: url)
        guard case .bodyPartInputStreamCreationFailed(for: url) = reason({ _ = try form.encode() }) else {
            Issue.record("no error")
            return
        }
    }

    @Test("a file whose length changes is an error", arguments: [2, 4])
    func changedFile(_ length: Int) throws {
        let url = try file("changing.txt", Data("abc".utf8))
        let form = form { $0.append(url, withName: "a") }
        try Data(count: length).write(to: url)
        guard case .bodyPartLengthMismatch(announced: 3, actual: UInt64(length)) = reason({ _ = try form.encode() }) else {
            Issue.record("no error")
            return
        }
    }

    @Test("the first invalid part is reported, and invalid parts do not count towards the length")
    func firstError() throws {
        let missing = directory.appendingPathComponent("missing.txt")
        let form = form {
            $0.append(missing, withName: "a")
            $0.append(directory, withName: "b", fileName: "b", mimeType: "a/b")
            $0.append(Data("abc".utf8), withName: "c")
        }
        #expect(form.contentLength == 3)
        for _ in 0..<2 {
            #expect(reason { _ = try form.encode() }.map { name(of: $0) } == "bodyPartFileNotReachableWithError")
        }
        let target = directory.appendingPathComponent("target")
        #expect(reason { try form.writeEncodedData(to: target) }.map { name(of: $0) } == "bodyPartFileNotReachableWithError")
        #expect(!FileManager.default.fileExists(atPath: target.path))
    }

    // MARK: Wrong lengths

    @Test("a stream with fewer or more bytes than announced is an error", arguments: [0, 9, 11, 100, 1_000_000])
    func lyingStreams(_ count: Int) {
        func make() -> MultipartFormData {
            form { $0.append(InputStream(data: Data(count: count)), withLength: 10, name: "a", fileName: "a", mimeType: "a/b") }
        }
        let target = directory.appendingPathComponent("target")
        for reason in [reason({ _ = try make().encode() }), reason({ try make().writeEncodedData(to: target) })] {
            guard case .bodyPartLengthMismatch(announced: 10, let actual) = reason else {
                Issue.record("no mismatch")
                continue
            }
            #expect(actual == UInt64(min(count, 11)))
        }
        #expect(!FileManager.default.fileExists(atPath: target.path))
    }

    @Test("a stream can be read only once")
    func streamTwice() throws {
        let form = form { $0.append(InputStream(data: Data("a".utf8)), withLength: 1, name: "a", fileName: "a", mimeType: "a/b") }
        _ = try form.encode()
        guard case .bodyPartStreamConsumed = reason({ _ = try form.encode() }) else {
            Issue.record("the stream was read twice")
            return
        }
    }

    @Test("reading a stream of a missing file fails")
    func brokenStream() throws {
        let stream = try #require(InputStream(url: directory.appendingPathComponent("missing")))
        let form = form { $0.append(stream, withLength: 1, name: "a", fileName: "a", mimeType: "a/b") }
        guard case .inputStreamReadFailed = reason({ _ = try form.encode() }) else {
            Issue.record("no error")
            return
        }
    }

    @Test("a stream that is open is read from its position")
    func openStream() throws {
        let stream = InputStream(data: Data("abcdef".utf8))
        stream.open()
        var skipped = [UInt8](repeating: 0, count: 3)
        #expect(stream.read(&skipped, maxLength: 3) == 3)
        let form = form { $0.append(stream, withLength: 3, headers: [:]) }
        #expect(try text(form) == "--B\r\n\r\ndef\r\n--B--\r\n")
    }

    // MARK: Output files

    @Test("an existing file is never overwritten")
    func existingTarget() throws {
        let form = form { $0.append(Data("abc".utf8), withName: "a") }
        let target = try file("there", Data("old".utf8))
        let link = directory.appendingPathComponent("dangling")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: directory.appendingPathComponent("nothing"))
        for url in [target, directory, link] {
            guard case .outputStreamFileAlreadyExists(at: url) = reason({ try form.writeEncodedData(to: url) }) else {
                Issue.record("\(url) was accepted")
                continue
            }
        }
        #expect(try Data(contentsOf: target) == Data("old".utf8))
    }

    @Test("a form is empty until something is appended, even an invalid part")
    func emptiness() {
        #expect(MultipartFormData().isEmpty)
        #expect(!form { $0.append(Data(), withName: "a") }.isEmpty)
        #expect(!form { $0.append(URL(fileURLWithPath: "/nowhere/file.txt"), withName: "a") }.isEmpty)
    }

    @Test("a URL that is not a file URL, and one in a missing directory")
    func impossibleTargets() throws {
        let form = form { $0.append(Data("abc".utf8), withName: "a") }
        let web = try #require(URL(string: "https://example.org/surely/not/there"))
        guard case .outputStreamURLInvalid(url: web) = reason({ try form.writeEncodedData(to: web) }) else {
            Issue.record("the URL was accepted")
            return
        }
        let missing = directory.appendingPathComponent("missing/file")
        guard case .outputStreamCreationFailed(for: missing) = reason({ try form.writeEncodedData(to: missing) }) else {
            Issue.record("the URL was accepted")
            return
        }
    }
}
