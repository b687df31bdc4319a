// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHAR
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct HARRecorderTests {
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer.standard()
    }

    /// The entries of an archive, after a check against the format's required names and types.
    private func entries(_ data: Data?) throws -> [[String: Any]] {
        let data = try #require(data)
        let archive = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        let log = try #require(archive["log"] as? [String: Any])
        #expect(log["version"] as? String == "1.2")
        let creator = try #require(log["creator"] as? [String: Any])
        #expect(creator["name"] is String && creator["version"] is String)
        let entries = try #require(log["entries"] as? [[String: Any]])
        for entry in entries { try check(entry) }
        return entries
    }

    /// By the specification's tables of required fields (HAR 1.2).
    private func check(_ entry: [String: Any]) throws {
        #expect((entry["startedDateTime"] as? String)?.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z/) != nil)
        let request = try #require(entry["request"] as? [String: Any])
        let response = try #require(entry["response"] as? [String: Any])
        for (object, texts) in [(request, ["method", "url", "httpVersion"]), (response, ["statusText", "httpVersion", "redirectURL"])] {
            for name in texts { #expect(object[name] is String, "\(name)") }
            for name in ["headersSize", "bodySize"] { #expect(object[name] is Int, "\(name)") }
            for name in ["headers", "cookies"] {
                let fields = try #require(object[name] as? [[String: Any]])
                #expect(fields.allSatisfy { $0["name"] is String && $0["value"] is String })
            }
        }
        #expect(request["queryString"] is [[String: Any]])
        #expect(response["status"] is Int)
        let content = try #require(response["content"] as? [String: Any])
        #expect(content["size"] is Int && content["mimeType"] is String)
        #expect(entry["cache"] is [String: Any])
        let timings = try #require(entry["timings"] as? [String: Double])
        let time = try #require(entry["time"] as? Double)
        #expect(Set(timings.keys) == ["blocked", "dns", "connect", "ssl", "send", "wait", "receive"])
        #expect(timings.values.allSatisfy { $0 >= 0 || $0 == -1 })
        #expect(["send", "wait", "receive"].allSatisfy { timings[$0] ?? -1 >= 0 })
        // The time is the sum of the phases that took place; TLS is a part of connecting.
        let sum = timings.filter { $0.key != "ssl" && $0.value > 0 }.reduce(0) { $0 + $1.value }
        #expect(abs(sum - time) < 0.02, "\(timings) \(time)")
    }

    private func request(_ entry: [String: Any]) -> [String: Any] { entry["request"] as? [String: Any] ?? [:] }
    private func response(_ entry: [String: Any]) -> [String: Any] { entry["response"] as? [String: Any] ?? [:] }

    @Test func `each exchange is an entry with its phases, sizes, address and connection`() async throws {
        let recorder = HARRecorder()
        let manager = makeManager { $0.eventMonitors = [recorder] }
        let done = manager.request(server.url("/redirect/1?page=2&q=a%20b"), options: RequestOptions(name: "redirected"))
        _ = try await done.serializingData().value
        _ = await manager.request(server.url("/cut-body")).serializingData().result
        _ = await manager.request(server.url("/status/404")).validate().serializingData().result
        _ = try await manager.upload(Data(count: 300), to: server.url("/body")).serializingData().value
        #expect(await eventually { recorder.count == 5 })
        let entries = try entries(recorder.data)
        #expect(entries.map { response($0)["status"] as? Int } == [302, 200, 200, 404, 200])
        #expect(entries.map { $0["_reason"] as? String } == ["first", "redirect", "first", "first", "first"])
        #expect(entries[0]["_requestID"] as? UInt64 == done.id && entries[1]["_requestID"] as? UInt64 == done.id)
        #expect(entries[0]["_name"] as? String == "redirected" && entries[1]["_exchange"] as? Int == 2)
        #expect(
            (request(entries[0])["queryString"] as? [[String: String]]) == [
                ["name": "page", "value": "2"], ["name": "q", "value": "a b"],
            ])
        #expect(response(entries[0])["redirectURL"] as? String == "/json")
        #expect(entries.allSatisfy { $0["serverIPAddress"] as? String == "127.0.0.1" && $0["connection"] is String })
        #expect((response(entries[2])["_error"] as? String)?.contains("connectionLost") == true)
        #expect(response(entries[3])["_error"] == nil)
        #expect(request(entries[4])["bodySize"] as? Int == 300 && response(entries[4])["bodySize"] as? Int == 300)
        #expect(request(entries[4])["method"] as? String == "POST")
    }

    @Test func `retries, failures without a response and responses from the cache are entries`() async throws {
        let cached = try LoopbackServer { _, _ in
            ServerResponse(status: 200, headers: [ServerField("Cache-Control", "max-age=100")], body: .data(Data("x".utf8)))
        }
        let recorder = HARRecorder()
        let manager = makeManager {
            $0.eventMonitors = [recorder]
            $0.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        }
        for _ in 0..<2 { _ = try await manager.request(cached.url("/")).serializingData().value }
        let url = cached.url("/x")
        cached.stop()
        manager.retrier = Retrier { _, request, _, completion in completion(request.retryCount == 0, 0) }
        _ = await manager.request(url).serializingData().result
        #expect(await eventually { recorder.count == 4 })
        let entries = try entries(recorder.data)
        #expect(entries.map { $0["_fromCache"] as? Bool } == [false, true, false, false])
        #expect(entries.suffix(2).map { response($0)["status"] as? Int } == [0, 0])
        #expect(entries.map { $0["_attempt"] as? Int } == [1, 1, 1, 2])
    }

    @Test func `secrets are redacted unless that is turned off`() async throws {
        let redacted = HARRecorder()
        let open = HARRecorder(redacting: false)
        let manager = makeManager {
            $0.eventMonitors = [redacted, open]
            $0.redaction.queryItems = ["code"]
        }
        let url = "http://u:s3cret@127.0.0.1:\(server.port)/cookies/set?access_token=s3cret&code=s3cret"
        _ = try await manager.request(url, headers: ["Authorization": "Bearer s3cret"]).serializingData().value
        #expect(await eventually { redacted.count == 1 && open.count == 1 })
        let text = String(decoding: try #require(redacted.data), as: UTF8.self)
        #expect(!text.contains("s3cret") && text.contains("<hidden>"))
        #expect(String(decoding: try #require(open.data), as: UTF8.self).contains("Bearer s3cret"))
    }

    @Test func `a file is a complete archive after each entry, and readable by its user only`() async throws {
        let directory = try TemporaryDirectory()
        let file = directory.url.appendingPathComponent("session.har")
        try Data(count: 100_000).write(to: file)
        let recorder = try HARRecorder(file: file)
        #expect(try entries(Data(contentsOf: file)).isEmpty)
        let manager = makeManager { $0.eventMonitors = [recorder] }
        for count in 1...3 {
            _ = try await manager.request(server.url("/json")).serializingData().value
            #expect(await eventually { recorder.count == count })
            #expect(try entries(Data(contentsOf: file)).count == count)
        }
        #expect(recorder.data == nil && recorder.error == nil)
        recorder.close()
        _ = try await manager.request(server.url("/json")).serializingData().value
        manager.invalidateAndCancel()
        #expect(try entries(Data(contentsOf: file)).count == 3)
        #expect(throws: (any Error).self) { try HARRecorder(file: directory.url) }
    }

    @Test func `exchanges of many requests at once are all recorded`() async throws {
        let directory = try TemporaryDirectory()
        let file = directory.url.appendingPathComponent("session.har")
        let recorder = try HARRecorder(file: file)
        let managers = (0..<3).map { _ in makeManager { $0.eventMonitors = [recorder] } }
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<60 {
                group.addTask { [server] in _ = await managers[number % 3].request(server.url("/redirect/1")).serializingData().result }
            }
        }
        #expect(await eventually { recorder.count == 120 })
        #expect(try entries(Data(contentsOf: file)).count == 120)
    }

    @Test func `a symbolic link is not followed, and what it leads to keeps contents and mode`() throws {
        let directory = try TemporaryDirectory()
        let target = try directory.write(Data("target".utf8), to: "target")
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: target.path)
        for (name, destination) in [("link", target), ("dangling", directory.file("none"))] {
            try FileManager.default.createSymbolicLink(at: directory.file(name), withDestinationURL: destination)
            let error = #expect(throws: POSIXError.self) { try HARRecorder(file: directory.file(name)) }
            #expect(error?.code == .ELOOP)
        }
        #expect(try String(contentsOf: target, encoding: .utf8) == "target")
        #expect(try FileManager.default.attributesOfItem(atPath: target.path)[.posixPermissions] as? Int == 0o644)
        #expect(try contents(of: directory) == ["dangling", "link", "target"])
    }

    @Test func `a file that exists is readable by its user only from then on, and is one recorder's`() throws {
        let directory = try TemporaryDirectory()
        let file = directory.url.appendingPathComponent("session.har")
        try Data("old".utf8).write(to: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file.path)
        let old = try FileHandle(forReadingFrom: file)
        let recorder = try HARRecorder(file: file)
        #expect(try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int == 0o600)
        // A process that has opened it before reads nothing of the new one.
        #expect(try old.readToEnd() == Data("old".utf8))
        #expect(try contents(of: directory) == ["session.har"])
        let error = #expect(throws: POSIXError.self) { try HARRecorder(file: file) }
        #expect(error?.code == .EWOULDBLOCK)
        #expect(try entries(Data(contentsOf: file)).isEmpty)
        recorder.close()
        try HARRecorder(file: file).close()
    }

    #if os(Linux)
    @Test func `a file without space for an entry stays a complete archive`() async throws {
        // A file in memory that may not grow: memfd_create(2) with MFD_ALLOW_SEALING, sealed with F_ADD_SEALS and F_SEAL_GROW, whose
        // names Swift does not import.
        typealias Create = @convention(c) (UnsafePointer<CChar>, UInt32) -> Int32
        let symbol = try #require(dlsym(nil, "memfd_create"))
        let descriptor = unsafeBitCast(symbol, to: Create.self)("session.har", 2)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        let file = URL(fileURLWithPath: "/proc/self/fd/\(descriptor)")
        let recorder = try HARRecorder(descriptor: Descriptor(dup(descriptor)))
        let manager = makeManager { $0.eventMonitors = [recorder] }
        _ = try await manager.request(server.url("/json")).serializingData().value
        #expect(await eventually { recorder.count == 1 })
        // A page has space for the first part of the next entry.
        try #require(ftruncate(descriptor, 4096) == 0)
        try #require(fcntl(descriptor, 1033, 4) == 0)
        let long = String(repeating: "x", count: 5000)
        _ = try await manager.request(server.url("/json"), headers: ["X-Long": long]).serializingData().value
        #expect(await eventually { recorder.error != nil })
        #expect(recorder.count == 1)
        #expect(try entries(Data(contentsOf: file)).count == 1)
        manager.invalidateAndCancel()
    }
    #endif

    // MARK: The waterfall

    @Test func `the waterfall is well-formed, and has a row for each exchange`() async throws {
        let recorder = HARRecorder()
        let manager = makeManager { $0.eventMonitors = [recorder] }
        _ = try await manager.request(server.url("/redirect/2")).serializingData().value
        _ = await manager.request(server.url("/cut-body?a=1&b=2")).serializingData().result
        #expect(await eventually { recorder.count == 4 })
        let waterfall = try Waterfall(archive: #require(recorder.data))
        let svg = Elements(waterfall.svg)
        #expect(svg.isWellFormed)
        #expect(svg.names.first == "svg" && svg.rows == 4)
        #expect(waterfall.svg.contains("↳ GET 127.0.0.1") && waterfall.svg.contains("connectionLost"))
        let page = waterfall.html.replacingOccurrences(of: "<!DOCTYPE html>", with: "")
        let html = Elements(page)
        #expect(html.isWellFormed && html.rows == 4)
        // Self-contained: nothing is loaded, and nothing runs.
        #expect(!page.contains("<script") && !page.contains("href") && !page.contains("url("))
    }

    @Test func `an empty archive has an empty picture, other data none`() throws {
        let waterfall = try Waterfall(archive: #require(HARRecorder().data))
        #expect(Elements(waterfall.svg).isWellFormed)
        #expect(throws: DecodingError.self) { try Waterfall(archive: Data("{}".utf8)) }
    }
}
