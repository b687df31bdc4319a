// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Dispatch
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct DownloadResumptionTests {
    private static let head: HTTPHeaders = ["ETag": "\"v1\"", "Content-Length": "8", "Content-Type": "text/plain"]
    private static let cut: [MockTransport.Step] = [
        .head(200, head), .bytes(Data("half".utf8)), .complete(CurlewError.failure(.connectionLost)),
    ]
    private static let rest: [MockTransport.Step] = .response(
        206, ["ETag": "\"v1\"", "Content-Range": "bytes 4-7/8", "Content-Length": "4"], "rest")

    private let directory: TemporaryDirectory
    private let temporary: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        temporary = try TemporaryDirectory()
    }

    private func manager(_ mock: MockTransport, _ change: (inout SessionConfiguration) -> Void = { _ in }) -> SessionManager {
        let url = temporary.url
        return SessionManager(mock: mock) {
            $0.temporaryDirectory = url
            change(&$0)
        }
    }

    private func resumeData(_ manager: SessionManager) async throws -> Data {
        try #require(await manager.download("http://mock/").serializingData().response.resumeData)
    }

    @Test("the rest is asked for and put behind what has come") func rest() async throws {
        let mock = MockTransport.answering(inTurn: [Self.cut, Self.rest])
        let manager = manager(mock)
        let data = try await resumeData(manager)
        let response = await manager.download(resumingWith: data, to: directory.file("file")).validate(contentType: ["text/plain"])
            .serializingString().response
        #expect(response.value == "halfrest")
        #expect(response.response?.statusCode == 206)
        #expect(response.resumeData == nil)
        let headers = await mock.started[1].request.headers
        #expect(headers["Range"] == "bytes=4-" && headers["If-Range"] == "\"v1\"" && headers["Accept-Encoding"] == "identity")
        #expect(try contents(of: directory.url) == ["file"])
        #expect(try contents(of: temporary.url).isEmpty)
    }

    /// A download whose file has a hidden name while it is written, or, where the file system can, none.
    private func download(
        _ manager: SessionManager, isNamed: Bool, to url: URL? = nil, options: DownloadRequest.DownloadOptions = []
    ) -> DownloadRequest {
        manager.startRequestsImmediately = false
        let request = url.map { manager.download("http://mock/", to: $0, options: options) } ?? manager.download("http://mock/")
        request.receiver.namesFiles = isNamed
        request.resume()
        return request
    }

    @Test("a failed download has a file when its resume data is read, and none before", arguments: [true, false], [true, false])
    func ownership(_ isTaken: Bool, isNamed: Bool) async throws {
        let mock = MockTransport.answering(inTurn: [Self.cut, Self.rest])
        let manager = manager(mock)
        let left = Inbox<Int>()
        var data: Data?
        do {
            let request = download(manager, isNamed: isNamed)
            request.response { [temporary] _ in left.put((try? contents(of: temporary.url).count) ?? -1) }
            let response = await request.serializingData().response
            #expect(await left[0] == 0)
            #expect(try contents(of: temporary.url).isEmpty)
            #expect(response.debugDescription.contains("[ResumeData]: "))
            if isTaken {
                let taken = try #require(response.resumeData)
                data = taken
                let names = try contents(of: temporary.url)
                #expect(try names.map { try String(contentsOf: temporary.file($0), encoding: .utf8) } == ["half"])
                #expect(response.resumeData == taken && request.resumeData == taken)
            }
        }
        guard let data else { return #expect(await eventually { (try? contents(of: temporary.url).isEmpty) == true }) }
        manager.startRequestsImmediately = true
        #expect(await manager.download(resumingWith: data).serializingString().response.value == "halfrest")
    }

    @Test(
        "a retry resumes from a file without a name, and from one that the retrier has named",
        arguments: [true, false], [true, false])
    func retried(isTaken: Bool, isNamed: Bool) async throws {
        let mock = MockTransport.answering(inTurn: [Self.cut, Self.rest])
        let manager = manager(mock)
        let taken = Inbox<Data?>()
        manager.retrier = Retrying { request, _, completion in
            if isTaken { taken.put((request as? DownloadRequest)?.resumeData) }
            completion(true, 0)
        }
        let request = download(manager, isNamed: isNamed, to: directory.file("file"))
        #expect(await request.serializingString().response.value == "halfrest")
        #expect(await mock.started[1].request.headers["Range"] == "bytes=4-")
        #expect(try contents(of: directory.url) == ["file"])
        #expect(!isTaken || taken.all.compactMap { $0 }.count == 1)
        #expect(request.resumeData == nil)
    }

    @Test(
        "an error page between two attempts does not affect the part file",
        arguments: ["known", "asked", "none"], [true, false])
    func pageBetween(_ kind: String, isNamed: Bool) async throws {
        let mock = MockTransport.answering(inTurn: [Self.cut, .response(503, [:], "page"), Self.rest])
        let manager = manager(mock)
        manager.retrier = Retrying { _, _, completion in completion(true, 0) }
        manager.startRequestsImmediately = false
        let target = directory.file("file")
        let request =
            switch kind {
            case "known": manager.download("http://mock/", to: target)
            case "asked": manager.download("http://mock/") { _, _ in (target, []) }
            default: manager.download("http://mock/")
            }
        request.receiver.namesFiles = isNamed
        request.validate()
        request.resume()
        let response = await request.serializingString().response
        #expect(response.value == "halfrest")
        #expect(await mock.started[2].request.headers["Range"] == "bytes=4-")
        #expect(try contents(of: directory.url) == (kind == "none" ? [] : ["file"]))
        #expect(try contents(of: temporary.url).count == (kind == "none" ? 1 : 0))
    }

    @Test("an accepted error page completes the download and leaves no other file", arguments: [true, false], [true, false])
    func pageAtEnd(isNamed: Bool, isStable: Bool) async throws {
        let mock = MockTransport.answering(inTurn: [Self.cut, .response(503, [:], "page")])
        let manager = manager(mock)
        manager.retrier = Retrying { _, _, completion in completion(true, 0) }
        let options: DownloadRequest.DownloadOptions = isStable ? .resumePreviousDownload : []
        let request = download(manager, isNamed: isNamed, to: directory.file("file"), options: options)
        let response = await request.serializingString().response
        #expect(response.value == "page")
        #expect(response.resumeData == nil)
        #expect(try contents(of: directory.url) == ["file"])
    }

    @Test("without a validator, of a coded body and of other methods there is no resume data")
    func none() async throws {
        let cases: [(HTTPMethod, HTTPHeaders)] = [
            (.get, [:]), (.get, ["ETag": "W/\"v1\""]), (.get, ["ETag": "\"v1\"", "Content-Encoding": "gzip"]), (.post, ["ETag": "\"v1\""]),
        ]
        for (method, headers) in cases {
            let manager = manager(MockTransport { _ in [.head(200, headers), .bytes(Data("half".utf8))] + .failure(.connectionLost) })
            let response = await manager.download("http://mock/", method: method).serializingData().response
            #expect(response.error != nil)
            #expect(response.resumeData == nil)
            #expect(try contents(of: temporary.url).isEmpty)
        }
    }

    @Test("a range of the user's own is left alone") func ownRange() async throws {
        let mock = MockTransport { _ in [.head(206, ["ETag": "\"v1\""]), .bytes(Data("half".utf8))] + .failure(.connectionLost) }
        let manager = manager(mock)
        let response = await manager.download("http://mock/", headers: ["Range": "bytes=1-5"]).serializingData().response
        #expect(response.resumeData == nil)
        #expect(await mock.started[0].request.headers["Range"] == "bytes=1-5")
    }

    @Test("data that is none fails the request, and says so") func garbage() async throws {
        let mock = MockTransport.answering()
        let manager = manager(mock)
        let request = manager.download(resumingWith: Data("garbage".utf8), to: directory.file("file"))
        let error = await request.serializingURL().response.error
        guard case .resumeDataInvalid(.notResumeData, _)? = error as? CurlewError else {
            return #expect(Bool(false), "\(String(describing: error))")
        }
        request.cancel()
        request.cancel(createResumeData: false)
        #expect(request.resumeData == nil)
        #expect(mock.started.count == 0)
    }

    @Test(
        "a part file that is gone, empty, too long, a link, or in use is not gone on with",
        arguments: ["gone", "empty", "long", "link", "used"])
    func unusable(_ state: String) async throws {
        let mock = MockTransport.answering(inTurn: [Self.cut, .response(200, Self.head, "allofit.")])
        let manager = manager(mock)
        let data = try await resumeData(manager)
        let part = URL(fileURLWithPath: try ResumeRecord(data).partFile)
        var other: PartFile?
        switch state {
        case "gone": try FileManager.default.removeItem(at: part)
        case "empty": try Data().write(to: part)
        case "long": try Data("more than eight".utf8).write(to: part)
        case "link":
            let target = directory.file("precious")
            try FileManager.default.moveItem(at: part, to: target)
            try FileManager.default.createSymbolicLink(at: part, withDestinationURL: target)
        default: other = PartFile(continuing: part)
        }
        let response = await manager.download(resumingWith: data, to: directory.file("file")).serializingString().response
        #expect(response.value == "allofit.")
        #expect(await mock.started[1].request.headers["Range"] == nil)
        if state == "link" { #expect(try String(contentsOf: directory.file("precious"), encoding: .utf8) == "half") }
        #expect((other == nil) == (state != "used"))
    }

    @Test("a part file that is shorter goes on from its end") func shorter() async throws {
        let mock = MockTransport.answering(inTurn: [
            Self.cut, .response(206, ["ETag": "\"v1\"", "Content-Range": "bytes 2-7/8"], "LFREST"),
        ])
        let manager = manager(mock)
        let data = try await resumeData(manager)
        try Data("ha".utf8).write(to: URL(fileURLWithPath: try ResumeRecord(data).partFile))
        #expect(await manager.download(resumingWith: data).serializingString().response.value == "haLFREST")
    }

    @Test("a retry goes on where the last attempt ended") func retry() async throws {
        let mock = MockTransport.answering(inTurn: [Self.cut, Self.rest])
        let manager = manager(mock)
        manager.retrier = Retrying { _, _, completion in completion(true, 0) }
        let response = await manager.download("http://mock/", to: directory.file("file")).serializingString().response
        #expect(response.value == "halfrest")
        #expect(await mock.started[1].request.headers["Range"] == "bytes=4-")
        #expect(try contents(of: directory.url) == ["file"])
    }

    @Test("a retry after a refused file starts anew") func refusedRetry() async throws {
        let mock = MockTransport.answering(inTurn: [.response(200, Self.head, "badbadba"), .response(200, Self.head, "halfrest")])
        let manager = manager(mock)
        manager.retrier = Retrying { _, _, completion in completion(true, 0) }
        let response = await manager.download("http://mock/").validate { _, _, url, _ in
            let text = url.flatMap { try? String(contentsOf: $0, encoding: .utf8) }
            return text == "badbadba" ? .failure(UserError()) : .success
        }.serializingString().response
        #expect(response.value == "halfrest")
        #expect(await mock.started[1].request.headers["Range"] == nil)
    }

    @Test("an error in answer to the rest leaves what has come alone", arguments: [true, false]) func aside(_ isRetried: Bool) async throws
    {
        let mock = MockTransport.answering(inTurn: [Self.cut, .response(503, [:], "Come later"), Self.rest])
        let manager = manager(mock)
        if isRetried { manager.retrier = Retrying { _, _, completion in completion(true, 0) } }
        // A request that is under way already could end without its validation.
        manager.startRequestsImmediately = false
        func load(_ request: DownloadRequest) async -> DownloadResponse<String> {
            request.validate()
            request.resume()
            return await request.serializingString().response
        }
        let response = await load(manager.download("http://mock/"))
        guard !isRetried else { return #expect(response.value == "halfrest") }
        let again = await load(manager.download(resumingWith: try #require(response.resumeData)))
        #expect(statusOf(again.error) == 503)
        let last = await load(manager.download(resumingWith: try #require(again.resumeData)))
        #expect(last.value == "halfrest")
    }

    @Test("what does not fit is asked for as a whole, once", arguments: [true, false]) func misfit(_ isGood: Bool) async throws {
        let misfit: [MockTransport.Step] = .response(206, ["ETag": "\"v1\"", "Content-Range": "bytes 0-7/8"], "halfrest")
        let mock = MockTransport.answering(inTurn: [Self.cut, misfit, isGood ? .response(200, Self.head, "halfrest") : misfit])
        let manager = manager(mock)
        let data = try await resumeData(manager)
        let response = await manager.download(resumingWith: data).serializingString().response
        #expect(mock.started.count == 3)
        let last = await mock.started[2].request.headers
        #expect(last["Range"] == nil && last["If-Range"] == nil)
        // A server that sends a part unasked sends what it likes.
        #expect(response.value == "halfrest")
        #expect(try contents(of: temporary.url).count == 1)
    }

    @Test("a body that is longer or shorter than its range says is an error", arguments: ["res", "rest and more"])
    func lengths(_ body: String) async throws {
        let mock = MockTransport.answering(inTurn: [Self.cut, .response(206, ["ETag": "\"v1\"", "Content-Range": "bytes 4-7/8"], body)])
        let manager = manager(mock)
        let data = try await resumeData(manager)
        let response = await manager.download(resumingWith: data, to: directory.file("file")).serializingString().response
        #expect(kindOf(response.error) == .protocolViolation)
        #expect(response.resumeData == nil)
        #expect(try contents(of: directory.url).isEmpty)
        #expect(try contents(of: temporary.url).isEmpty)
    }

    @Test("when all is there already the download is a success") func complete() async throws {
        let whole: [MockTransport.Step] = [.head(200, ["ETag": "\"v1\"", "Content-Type": "text/plain"]), .bytes(Data("halfrest".utf8))]
        let mock = MockTransport.answering(
            inTurn: [
                whole + .failure(.connectionLost),
                .response(416, ["Content-Range": "bytes */8", "Content-Type": "text/html"], "No such range"),
            ])
        let manager = manager(mock)
        let data = try await resumeData(manager)
        let response = await manager.download(resumingWith: data).validate().validate(contentType: ["text/plain"]).serializingString()
            .response
        #expect(response.value == "halfrest")
        #expect(await mock.started[1].request.headers["Range"] == "bytes=8-")
    }

    @Test("cancelling with and without resume data", arguments: [true, false]) func cancelled(_ isWanted: Bool) async throws {
        let mock = MockTransport()
        let manager = manager(mock)
        let request = manager.download("http://mock/")
        let exchange = await mock.started[0]
        exchange.perform(.head(200, Self.head), .bytes(Data("half".utf8)))
        #expect(await eventually { exchange.actions.count == 2 })
        #expect(request.resumeData == nil)
        if isWanted { request.cancel() } else { request.cancel(createResumeData: false) }
        let response = await request.serializingURL().response
        #expect(isCancelled(response.error))
        #expect((response.resumeData != nil) == isWanted)
        #expect((request.resumeData != nil) == isWanted)
        #expect((request.delegate.data != nil) == isWanted)
        // The data was read.
        #expect(try contents(of: temporary.url).count == (isWanted ? 1 : 0))
        request.cancel(createResumeData: false)
        #expect(try contents(of: temporary.url).count == (isWanted ? 1 : 0))
    }

    @Test("cancelling while a retry is due", arguments: [true, false], [true, false])
    func cancelledBetween(_ isWanted: Bool, isStable: Bool) async throws {
        let manager = manager(.answering(inTurn: [Self.cut]))
        let asked = Inbox<Void>()
        manager.retrier = Retrying { _, _, _ in asked.put(()) }
        let request =
            (isStable
            ? manager.download("http://mock/", to: directory.file("file"), options: .resumePreviousDownload)
            : manager.download("http://mock/")).response { _ in }
        _ = await asked[0]
        request.cancel(createResumeData: isWanted)
        #expect(isCancelled(await request.serializingURL().response.error))
        #expect((request.resumeData != nil) == isWanted)
        #expect(try contents(of: temporary.url).count == (isWanted && !isStable ? 1 : 0))
        #expect(try contents(of: directory.url) == (isWanted && isStable ? [".file.part", ".file.part.json"] : []))
    }

    @Test("a cancellation while a retry is due leaves another download the file that it has taken over", arguments: [true, false])
    func takenOver(isStable: Bool) async throws {
        let manager = manager(.answering(inTurn: [Self.cut]))
        let asked = Inbox<Void>()
        manager.retrier = Retrying { _, _, _ in asked.put(()) }
        let target = directory.file("file")
        let request = manager.download("http://mock/", to: target, options: isStable ? .resumePreviousDownload : []).response { _ in }
        _ = await asked[0]
        let mock = MockTransport()
        let resuming = self.manager(mock)
        let data = isStable ? nil : request.resumeData
        let other =
            if let data {
                resuming.download(resumingWith: data, to: target)
            } else {
                resuming.download("http://mock/", to: target, options: .resumePreviousDownload)
            }
        let exchange = await mock.started[0]
        #expect(exchange.request.headers["Range"] == "bytes=4-")
        request.cancel(createResumeData: false)
        #expect(isCancelled(await request.serializingURL().response.error))
        exchange.perform(.head(206, ["ETag": "\"v1\"", "Content-Range": "bytes 4-7/8"]), .bytes(Data("rest".utf8)), .complete())
        #expect(await other.serializingString().response.value == "halfrest")
        #expect(try contents(of: directory.url) == ["file"])
    }

    @Test("cancelling a request that could not be made does nothing") func withoutTask() async {
        let manager = manager(.answering())
        let request = manager.download("no url")
        request.cancel()
        request.cancel(createResumeData: true)
        request.cancel(createResumeData: false)
        #expect(request.resumeData == nil)
        #expect(await request.serializingURL().response.error is CurlewError)
    }

    @Test("the adapter takes part, and says what the data leaves out") func adapted() async throws {
        let mock = MockTransport.answering(inTurn: [Self.cut, Self.rest])
        let manager = manager(mock)
        manager.adapter = Adapting { request in
            var request = request
            request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
            return request
        }
        let first = await manager.download("http://mock/", headers: ["X-Kept": "yes", "Cookie": "a=secret"]).serializingData().response
        let data = try #require(first.resumeData)
        #expect(!String(decoding: data, as: UTF8.self).contains("secret"))
        _ = await manager.download(resumingWith: data).serializingData().response
        let headers = await mock.started[1].request.headers
        #expect(headers["Authorization"] == "Bearer secret" && headers["X-Kept"] == "yes" && headers["Cookie"] == nil)
    }

    @Test("a response made of its parts has the resume data it was given") func parts() {
        let data = Data("data".utf8)
        let plain = DefaultDownloadResponse(
            request: nil, response: nil, temporaryURL: nil, destinationURL: nil, resumeData: data, error: UserError())
        #expect(plain.resumeData == data)
        let serialized = DownloadResponse<Int>(
            request: nil, response: nil, temporaryURL: nil, destinationURL: nil, resumeData: data, result: .failure(UserError()))
        #expect(serialized.resumeData == data)
        #expect(serialized.map { $0 + 1 }.resumeData == data)
        #expect(serialized.debugDescription.contains("[ResumeData]: 4 bytes"))
    }

    // MARK: By the destination

    @Test("the next download to the same place goes on, with a record beside the file") func stable() async throws {
        let target = directory.file("file")
        let mocks = [MockTransport.answering(inTurn: [Self.cut]), .answering(inTurn: [Self.rest])]
        for (mock, expected) in zip(mocks, [nil, "halfrest"]) {
            let manager = manager(mock)
            let response = await manager.download("http://mock/", to: target, options: .resumePreviousDownload).serializingString().response
            #expect(response.value == expected)
            #expect(try contents(of: directory.url) == (expected == nil ? [".file.part", ".file.part.json"] : ["file"]))
        }
        let headers = await (mocks[0].started[0].request.headers, mocks[1].started[0].request.headers)
        #expect(headers.0["Range"] == nil && headers.0["Accept-Encoding"] == "identity")
        #expect(headers.1["Range"] == "bytes=4-" && headers.1["If-Range"] == "\"v1\"")
    }

    @Test(
        "what is left of another URL, another version, or without its record is not gone on with",
        arguments: ["url", "version", "record", "json", "server"])
    func stale(_ kind: String) async throws {
        let mock = MockTransport.answering(inTurn: [Self.cut, .response(200, ["ETag": "\"v2\""], "whole")])
        let manager = manager(mock)
        let target = directory.file("file")
        _ = await manager.download("http://mock/", to: target, options: .resumePreviousDownload).serializingString().response
        let record = directory.file(".file.part.json")
        if kind == "record" { try FileManager.default.removeItem(at: record) }
        if kind == "json" { try Data("{".utf8).write(to: record) }
        let url = kind == "url" ? "http://mock/other" : "http://mock/"
        // Of a session that trusts another server with the URL.
        let other = kind == "server" ? self.manager(mock) { $0.connectTo = ["mock": "other"] } : manager
        let response = await other.download(url, to: target, options: .resumePreviousDownload).serializingString().response
        #expect(response.value == "whole")
        #expect((await mock.started[1].request.headers["Range"] != nil) == (kind == "version"))
        #expect(try contents(of: directory.url) == ["file"])
    }

    private static let dates: HTTPHeaders = ["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT", "Date": "Mon, 07 Nov 1994 08:49:37 GMT"]

    @Test(
        "what another user has begun is continued only by its strong entity tag, at the same place",
        arguments: ["date", "cookie", "signer", "tag", "place", "416", "same user", "same signer"])
    func otherUser(_ kind: String) async throws {
        let isTagged = ["tag", "place", "416"].contains(kind)
        @Sendable func fields(_ more: HTTPHeaders) -> HTTPHeaders {
            var headers: HTTPHeaders = isTagged ? ["ETag": "\"v1\""] : Self.dates
            headers.merge(more)
            return headers
        }
        let count = Lock(0)
        let mock = MockTransport { request in
            // A user's file is at a place of its own.
            if kind == "place", request.url == "http://mock/" {
                return .response(302, ["Location": "/\(request.headers["Authorization"]?.hasSuffix("a") == true ? "a" : "b")"])
            }
            let number = count.withLock { count in
                count += 1
                return count
            }
            switch number {
            case 1:
                let head = fields(kind == "416" ? [:] : ["Content-Length": "8"])
                return [.head(200, head), .bytes(Data("half".utf8)), .complete(CurlewError.failure(.connectionLost))]
            case 2 where kind == "416": return .response(416, ["Content-Range": "bytes */4"])
            case 2: return .response(206, fields(["Content-Range": "bytes 4-7/8", "Content-Length": "4"]), "rest")
            default: return .response(200, fields([:]), "whole")
            }
        }
        let manager = manager(mock)
        let target = directory.file("file")
        func download(_ user: String) async -> String? {
            let headers: HTTPHeaders = kind == "cookie" ? ["Cookie": "id=\(user)"] : ["Authorization": "Bearer \(user)"]
            let isSigned = kind.hasSuffix("signer")
            let options = RequestOptions(signer: isSigned ? SignedResponseTests.Signer(identity: user) : nil)
            return await manager.download(
                "http://mock/", headers: isSigned ? nil : headers, requestOptions: options, to: target, options: .resumePreviousDownload
            ).serializingString().response.value
        }
        #expect(await download("a") == nil)
        let record = try String(contentsOf: directory.file(".file.part.json"), encoding: .utf8)
        #expect(!record.contains("Bearer") && !record.contains("id=a"))
        let isSame = kind.hasPrefix("same")
        let value = await download(isSame ? "a" : "b")
        #expect(value == (isSame || kind == "tag" ? "halfrest" : "whole"))
        #expect(try contents(of: directory.url) == ["file"])
    }

    @Test("a finished download that was sent to a user is another's only by a strong entity tag", arguments: ["date", "weak", "tag"])
    func finishedOfOther(_ kind: String) async throws {
        let validator: HTTPHeaders = kind == "date" ? Self.dates : ["ETag": kind == "weak" ? "W/\"v1\"" : "\"v1\""]
        let mock = MockTransport { request in
            let isAsked = request.headers["If-None-Match"] != nil || request.headers["If-Modified-Since"] != nil
            return isAsked ? .response(304, validator) : .response(200, validator, request.headers["Authorization"] ?? "")
        }
        let manager = manager(mock)
        var values: [String?] = []
        for user in ["a", "b"] {
            let request = manager.download(
                "http://mock/", headers: ["Authorization": user], to: directory.file("file"),
                options: [.resumePreviousDownload, .removePreviousFile])
            values.append(await request.serializingString().response.value)
        }
        // Where the file system has no attributes, nothing is known of a finished file.
        let isAsked = mock.started.all[1].request.headers["If-None-Match"] != nil
        #expect(values == ["a", kind == "tag" && isAsked ? "a" : "b"])
    }

    @Test("what a session with another trust policy has begun is not continued") func otherTrust() async throws {
        let mock = MockTransport.answering(inTurn: [Self.cut, .response(200, Self.head, "whole123")])
        let target = directory.file("file")
        var managers: [SessionManager] = []
        for policies in [["mock": ServerTrustPolicy.disableEvaluation], [:]] {
            var configuration = SessionConfiguration()
            configuration.callbackQueue = DispatchQueue(label: "callbacks")
            configuration.temporaryDirectory = temporary.url
            managers.append(
                SessionManager(
                    configuration: configuration, serverTrustPolicyManager: ServerTrustPolicyManager(policies: policies), transport: mock))
        }
        var values: [String?] = []
        for manager in managers {
            let request = manager.download("https://mock/", to: target, options: .resumePreviousDownload)
            values.append(await request.serializingString().response.value)
        }
        #expect(values == [nil, "whole123"])
        #expect(await mock.started[1].request.headers["Range"] == nil)
    }

    @Test("of two at once each has its own file") func together() async throws {
        let mocks = [MockTransport(), MockTransport()]
        let managers = mocks.map { manager($0) }
        let target = directory.file("file")
        let options: DownloadRequest.DownloadOptions = [.resumePreviousDownload, .removePreviousFile]
        let requests = managers.map { $0.download("http://mock/", to: target, options: options) }
        for index in 0..<2 {
            let exchange = await mocks[index].started[0]
            exchange.perform(.head(200, Self.head), .bytes(Data("\(index)\(index)\(index)\(index)".utf8)))
            #expect(await eventually { exchange.actions.count == 2 })
        }
        // The other one's file has no name, where the file system can do that.
        let isNamed = try PartFile(in: temporary.url).isNamed
        #expect(try contents(of: directory.url).count == (isNamed ? 3 : 2))
        for index in 0..<2 {
            await mocks[index].started[0].perform(.bytes(Data("rest".utf8)), .complete())
            let text = "\(index)\(index)\(index)\(index)rest"
            #expect(await requests[index].serializingString().response.value == text)
        }
        #expect(try contents(of: directory.url) == ["file"])
    }

    @Test("a refused file leaves nothing, nor does a cancellation that wants nothing", arguments: [true, false])
    func nothingLeft(_ isRefused: Bool) async throws {
        let mock = MockTransport()
        let manager = manager(mock)
        let request = manager.download("http://mock/", to: directory.file("file"), options: .resumePreviousDownload)
        request.validate { _, _, _, _ in .failure(UserError()) }
        let exchange = await mock.started[0]
        exchange.perform(.head(200, Self.head), .bytes(Data("half".utf8)))
        #expect(await eventually { exchange.actions.count == 2 })
        #expect(try contents(of: directory.url) == [".file.part", ".file.part.json"])
        if isRefused { exchange.perform(.complete()) } else { request.cancel(createResumeData: false) }
        #expect(await request.serializingURL().response.error != nil)
        #expect(try contents(of: directory.url).isEmpty)
    }

    @Test("resume data of such a download does not go on with what took its file's place") func replaced() async throws {
        let cutAgain: [MockTransport.Step] = [.head(200, ["ETag": "\"v2\""]), .bytes(Data("HALF".utf8))] + .failure(.connectionLost)
        let mock = MockTransport.answering(inTurn: [Self.cut, cutAgain, .response(200, Self.head, "halfrest")])
        let manager = manager(mock)
        let target = directory.file("file")
        let first = await manager.download("http://mock/", to: target, options: .resumePreviousDownload).serializingString().response
        let data = try #require(first.resumeData)
        _ = await manager.download("http://mock/", to: target, options: .resumePreviousDownload).serializingString().response
        #expect(await manager.download(resumingWith: data).serializingString().response.value == "halfrest")
        #expect(await mock.started[2].request.headers["Range"] == nil)
        #expect(try contents(of: directory.url) == [".file.part", ".file.part.json"])
    }

    @Test("progress begins where the file does, without a call") func progress() async throws {
        let mock = MockTransport.answering(inTurn: [Self.cut])
        let manager = manager(mock)
        let data = try await resumeData(manager)
        let second = MockTransport()
        let resuming = SessionManager(mock: second)
        let told = Inbox<(Int64, Int64)>()
        resuming.delegate.downloadTaskDidResumeAtOffset = { _, _, offset, total in told.put((offset, total)) }
        let calls = Inbox<Int64>()
        let request = resuming.download(resumingWith: data).downloadProgress { calls.put($0.completedUnitCount) }
        let exchange = await second.started[0]
        exchange.perform(.head(206, ["ETag": "\"v1\"", "Content-Range": "bytes 4-7/8"]))
        #expect(await told[0] == (4, 8))
        #expect(await eventually { exchange.actions.count == 1 && !exchange.isPaused })
        #expect(request.progress.fractionCompleted == 0.5)
        #expect(calls.count == 0)
        exchange.perform(.bytes(Data("rest".utf8)), .complete())
        #expect(await request.serializingString().response.value == "halfrest")
        #expect(request.progress.fractionCompleted == 1)
        #expect(await calls[0] > 4)
    }
}
