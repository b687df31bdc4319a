// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct FormBodyTests {
    private let directory: TemporaryDirectory
    private let readable = Inbox<Void>()

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func form(_ fill: (MultipartFormData) -> Void) -> MultipartFormData {
        let form = MultipartFormData()
        form.boundary = "B"
        fill(form)
        return form
    }

    private func readAll(_ body: any BodySource, by size: Int) async -> (Data, (any Error)?) {
        var bytes = Data()
        var buffer = [UInt8](repeating: 0, count: size)
        while true {
            let before = readable.count
            switch buffer.withUnsafeMutableBytes({ body.read(into: $0) }) {
            case .bytes(let count): bytes += buffer[..<count]
            case .unavailable: _ = await readable.first(before + 1)
            case .end: return (bytes, nil)
            case .failed(let error): return (bytes, error)
            }
        }
    }

    private func prepare(_ body: any BodySource) { body.prepare { [readable] in readable.put(()) } }

    @Test("the body is what encoding gives, whatever it is read by", arguments: [1, 10, 1000, 200_000])
    func content(_ size: Int) async throws {
        let large = GeneratedBody().data(count: size == 1 ? 3_000 : 150_000)
        let files = try (0..<4).map { try directory.write($0 == 2 ? Data() : large, to: "file\($0)") }
        let fill: (MultipartFormData) -> Void = { form in
            form.append(Data("value".utf8), withName: "a")
            form.append(Data(), withName: "empty")
            for file in files { form.append(file, withName: "file") }
            form.append(InputStream(data: large), withLength: UInt64(large.count), name: "b", fileName: "b", mimeType: "a/b")
            form.append(files[0], withName: "again")
        }
        let body = try UploadForm(form(fill)).body
        let whole = try form(fill).encode()
        #expect(body.length == Int64(whole.count))
        prepare(body)
        let (bytes, error) = await readAll(body, by: size)
        #expect(bytes == whole && error == nil)
    }

    @Test("a form without streams is read again after it was rewound, during the transfer and after it", arguments: [true, false])
    func rewinding(_ isDuringTransfer: Bool) async throws {
        let file = try directory.write(GeneratedBody().data(count: 100_000), to: "file")
        let made = Inbox<Void>()
        let form = form { form in
            form.append(file, withName: "a")
            form.append(
                {
                    made.put(())
                    return AsyncStream(pieces: [Data("se".utf8), Data("quence".utf8)])
                }, withLength: 8, name: "s", fileName: "s", mimeType: "a/b")
            form.append(file, withName: "b")
        }
        let upload = try UploadForm(form)
        let body = upload.body
        prepare(body)
        let (first, _) = await readAll(body, by: 1000)
        #expect(body.length == Int64(first.count))
        #expect(upload.isRepeatable && body.rewind())
        if !isDuringTransfer {
            body.transferDidComplete()
            prepare(body)
        }
        let (second, error) = await readAll(body, by: 3000)
        #expect(second == first && error == nil)
        #expect(made.count == 2)
        upload.finish()
        #expect(!upload.isRepeatable)
    }

    @Test("a form with a stream can be sent once, and its stream belongs to the upload") func streams() async throws {
        let form = form { $0.append(InputStream(data: Data("abc".utf8)), withLength: 3, name: "s", fileName: "s", mimeType: "a/b") }
        let upload = try UploadForm(form)
        #expect(upload.isRepeatable)
        let body = upload.body
        prepare(body)
        #expect(await readAll(body, by: 1000).1 == nil)
        #expect(!upload.isRepeatable && !body.rewind())
        #expect(throws: CurlewError.self) { try UploadForm(form) }
        #expect(throws: CurlewError.self) { try form.encode() }
    }

    @Test("a sequence that can be read once belongs to one upload, and can't be encoded") func sequences() async throws {
        let form = form {
            $0.append(AsyncStream(pieces: [Data("abc".utf8)]), withLength: 3, name: "s", fileName: "s", mimeType: "a/b")
        }
        #expect(form.contentLength == 3)
        #expect(throws: CurlewError.self) { try form.encode() }
        let body = try UploadForm(form).body
        prepare(body)
        let text = String(decoding: await readAll(body, by: 5).0, as: UTF8.self)
        #expect(text.hasSuffix("Content-Type: a/b\r\n\r\nabc\r\n--B--\r\n"))
        #expect(throws: CurlewError.self) { try UploadForm(form) }
    }

    @Test("a source with another length fails with both", arguments: [2, 4], ["stream", "sequence", "made"])
    func lengths(_ announced: UInt64, _ kind: String) async throws {
        let bytes = Data("abc".utf8)
        let form = form { form in
            switch kind {
            case "stream": form.append(InputStream(data: bytes), withLength: announced, name: "s", fileName: "s", mimeType: "a/b")
            case "made":
                form.append({ AsyncStream(pieces: [bytes]) }, withLength: announced, name: "s", fileName: "s", mimeType: "a/b")
            default: form.append(AsyncStream(pieces: [bytes]), withLength: announced, name: "s", fileName: "s", mimeType: "a/b")
            }
        }
        let body = try UploadForm(form).body
        prepare(body)
        guard case CurlewError.multipartEncodingFailed(.bodyPartLengthMismatch(announced, 3), _)? = await readAll(body, by: 100).1 else {
            Issue.record("no error")
            return
        }
    }

    enum Change: CaseIterable {
        case truncated, extended, removed
    }

    @Test("a file that changes before it is sent, or while it is, fails the body", arguments: Change.allCases, [true, false])
    func changedFile(_ change: Change, _ isBeforeOpening: Bool) async throws {
        let file = try directory.write(Data(count: 100_000), to: "file")
        let upload = try UploadForm(form { $0.append(file, withName: "a") })
        let apply: () throws -> Void = {
            switch change {
            case .truncated: #expect(truncate(file.path, 50_000) == 0)
            case .extended: #expect(truncate(file.path, 150_000) == 0)
            case .removed: try FileManager.default.removeItem(at: file)
            }
        }
        if isBeforeOpening {
            try apply()
            let error = (upload.body as? UnreadableBody)?.error
            switch error {
            case CurlewError.multipartEncodingFailed(.bodyPartLengthMismatch(100_000, let actual), _)?:
                #expect(actual == (change == .truncated ? 50_000 : 150_000))
            case CurlewError.multipartEncodingFailed(.bodyPartInputStreamCreationFailed(for: file), _)?: #expect(change == .removed)
            default: Issue.record("\(String(describing: error))")
            }
            return
        }
        let body = upload.body
        prepare(body)
        _ = await readable.first(1)
        try apply()
        switch await readAll(body, by: 1000).1 {
        case nil: #expect(change == .removed)
        case CurlewError.multipartEncodingFailed(.bodyPartLengthMismatch(100_000, let actual), _)?:
            #expect(actual == (change == .truncated ? 50_000 : 150_000))
        case let error?: Issue.record(error)
        }
    }

    @Test("at most two files are open at a time, and none after the transfer") func descriptors() async throws {
        let files = try (0..<50).map { try directory.write(Data(count: 5_000), to: "file\($0)") }
        let body = try UploadForm(form { form in for file in files { form.append(file, withName: "a") } }).body
        let openFiles: () -> [String: String] = {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
            let links = names.map { name in (name, try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")) }
            return Dictionary(uniqueKeysWithValues: links).compactMapValues { $0 }.filter { $0.value.hasPrefix(directory.url.path) }
        }
        prepare(body)
        var most = 0
        var buffer = [UInt8](repeating: 0, count: 4_000)
        var count = 0
        while count < 120_000 {
            let before = readable.count
            switch buffer.withUnsafeMutableBytes({ body.read(into: $0) }) {
            case .bytes(let size): count += size
            default: _ = await readable.first(before + 1)
            }
            // A listing isn't of one moment. Two that are the same are, as each file is opened once.
            var files = openFiles()
            while case let later = openFiles(), later != files { files = later }
            most = max(most, files.count)
        }
        #expect(most > 0 && most <= 2)
        body.transferDidComplete()
        #expect(await eventually { openFiles().isEmpty })
    }

    @Test("files that are held open are sent after they were removed by name", .enabled(if: HeldFile.isSupported))
    func heldFiles() async throws {
        let file = try directory.write(Data("held".utf8), to: "file")
        let form = form { $0.append(file, withName: "a") }
        let upload = try UploadForm(form, holdsFiles: true)
        try FileManager.default.removeItem(at: file)
        for _ in 0..<2 {
            let body = upload.body
            prepare(body)
            #expect(await readAll(body, by: 1000).0.firstRange(of: Data("\r\n\r\nheld\r\n".utf8)) != nil)
        }
        #expect(throws: CurlewError.self) { try UploadForm(form, holdsFiles: true) }
    }

    @Test("later changes of the form have no effect, and its first failure is the request's error") func snapshot() async throws {
        let mock = MockTransport { _ in .response(200, readsBody: true) }
        let manager = SessionManager(mock: mock)
        let form = form { $0.append(Data("first".utf8), withName: "a") }
        manager.startRequestsImmediately = false
        let request = manager.upload(form, to: "http://mock/", headers: ["Content-Type": "a/b"])
        form.append(Data("second".utf8), withName: "b")
        form.boundary = "C"
        request.resume()
        #expect(await request.serializingData().response.error == nil)
        #expect(mock.started.all.first?.request.headers["Content-Type"] == "multipart/form-data; boundary=B")
        #expect(mock.started.all.first?.sentBody == (try self.form { $0.append(Data("first".utf8), withName: "a") }.encode()))

        manager.startRequestsImmediately = true
        form.append(directory.file("missing"), withName: "c")
        let response = await manager.upload(form, to: "http://mock/").serializingData().response
        guard case CurlewError.multipartEncodingFailed(.bodyPartFileNotReachableWithError, _)? = response.error else {
            Issue.record("\(String(describing: response.error))")
            return
        }
        #expect(mock.started.count == 1)
    }
}
