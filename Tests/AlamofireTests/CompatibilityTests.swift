// SPDX-License-Identifier: Apache-2.0
import CurlewAlamofire
import CurlewTestSupport
import Foundation
import Testing

/// Names of Alamofire's that are not covered by another suite.
@Suite(.timeLimit(.minutes(2))) struct CompatibilityTests {
    private let server: LoopbackServer
    private let manager = SessionManager()

    init() throws {
        server = try LoopbackServer.standard()
    }

    // MARK: Values

    @Test("the module shows all of Curlew, its caches and cookies too") func exports() {
        var configuration = SessionConfiguration()
        configuration.cache = ResponseCache.memory()
        configuration.cookies = CookieStore()
        #expect(configuration.cache != nil && configuration.cookies != nil)
    }

    @Test("queryComponents and escape") func queryComponents() {
        let components = URLEncoding.default.queryComponents(fromKey: "k", value: ["n": [1, 2]])
        #expect(components.map(\.0) == ["k%5Bn%5D%5B%5D", "k%5Bn%5D%5B%5D"])
        #expect(components.map(\.1) == ["1", "2"])
        #expect(URLEncoding.default.escape("a b/?&") == "a%20b/?%26")
    }

    @Test("a timeline describes itself: durations, and the times when debugging") func timelineDescriptions() {
        let timeline = Timeline(
            requestStartTime: 1.0, initialResponseTime: 1.5, requestCompletedTime: 2.25, serializationCompletedTime: 2.5)
        for text in ["0.500 secs", "1.250 secs", "0.250 secs", "1.500 secs"] {
            #expect(timeline.description.contains(text))
            #expect(timeline.debugDescription.contains(text))
        }
        #expect(timeline.debugDescription.contains("2.250") && !timeline.description.contains("2.250"))
        #expect(Timeline().totalDuration == 0)
    }

    @Test("download options are an option set") func downloadOptions() {
        let both: DownloadRequest.DownloadOptions = [.createIntermediateDirectories, .removePreviousFile]
        #expect(both.rawValue == 3)
        #expect(DownloadRequest.DownloadOptions(rawValue: 2) == .removePreviousFile)
    }

    @Test(
        "the suggested destination is a user directory, with the response's suggested file name",
        arguments: [
            ("attachment; filename=\"report.txt\"", "report.txt"), ("ATTACHMENT; FileName*=UTF-8''r%C3%A9sum%C3%A9", "résumé"),
            (nil, "report"),
            ("attachment; filename=\"\"", "report"), ("attachment; filename=\"..\"", "report"), ("attachment", "report"),
        ])
    func suggestedDestination(_ field: String?, _ name: String) throws {
        let url = try "https://example.org/report".asURL()
        let fields = field.map { ["Content-Disposition": $0] } ?? [:]
        let response = try #require(HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields))
        let temporary = URL(fileURLWithPath: "/tmp/x")
        let (target, options) = DownloadRequest.suggestedDownloadDestination(for: .cachesDirectory)(temporary, response)
        let directory = try #require(FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first)
        #expect(target.deletingLastPathComponent().path == directory.path)
        #expect(target.lastPathComponent == name)
        #expect(options == [])
    }

    // MARK: Responses

    @Test("data responses are initialized from their parts") func responses() throws {
        let request = try URLRequest(url: server.url("/json"), method: .get)
        let response = HTTPURLResponse(url: try server.url("/json").asURL(), statusCode: 201, httpVersion: "HTTP/1.1", headerFields: nil)
        let metrics = TaskMetrics(transactionMetrics: [TransferMetrics()])
        let plain = DefaultDataResponse(
            request: request, response: response, data: Data([1]), error: TestError("given"), timeline: Timeline(), metrics: metrics)
        #expect(plain.request == request && plain.response?.statusCode == 201 && plain.data == Data([1]))
        #expect(plain.error is TestError && plain.timeline == Timeline() && plain.metrics == metrics)
        let value = DataResponse<Int>(request: request, response: response, data: nil, result: .success(7))
        #expect(value.request == request && value.response?.statusCode == 201 && value.data == nil)
        #expect(value.value == 7 && value.error == nil && value.result.isSuccess && value.timeline == Timeline())
        #expect(value.mapError { _ in TestError("other") }.value == 7)
        let failed = DataResponse<Int>(request: nil, response: nil, data: nil, result: .failure(TestError("given")))
        #expect(failed.flatMapError { _ in TestError("other") }.error as? TestError == TestError("other"))
    }

    @Test("download responses are initialized from their parts") func downloadResponses() throws {
        let request = try URLRequest(url: server.url("/json"), method: .get)
        let (here, there) = (URL(fileURLWithPath: "/tmp/here"), URL(fileURLWithPath: "/tmp/there"))
        let plain = DefaultDownloadResponse(
            request: request, response: nil, temporaryURL: here, destinationURL: there, error: TestError("given"))
        #expect(plain.request == request && plain.response == nil && plain.temporaryURL == here && plain.destinationURL == there)
        #expect(plain.error is TestError && plain.timeline == Timeline() && plain.metrics == TaskMetrics())
        let value = DownloadResponse<Int>(
            request: request, response: nil, temporaryURL: here, destinationURL: there, result: .success(7))
        #expect(value.value == 7 && value.error == nil)
        #expect(value.map { $0 + 1 }.value == 8)
        #expect(value.flatMap { _ -> Int in throw TestError("thrown") }.error is TestError)
        #expect(value.mapError { _ in TestError("other") }.value == 7)
        #expect(value.flatMapError { _ in TestError("other") }.destinationURL == there)
        #expect(value.metrics == TaskMetrics())
        #expect(value.description == "SUCCESS: 7")
        #expect(value.debugDescription.contains("/tmp/here") && value.debugDescription.contains("/tmp/there"))
    }

    @Test("each handler serializes a download") func downloadHandlers() async {
        func made(_ path: String) -> DownloadRequest {
            manager.download(server.url(path), to: { temporary, _ in (temporary, []) })
        }
        let data: DownloadResponse<Data> = await outcome {
            made("/json").responseData(queue: callbackQueue, completionHandler: $0)
        }
        #expect(data.value?.isEmpty == false)
        let text: DownloadResponse<String> = await outcome {
            made("/json").responseString(queue: callbackQueue, completionHandler: $0)
        }
        #expect(text.value?.contains("curlew") == true)
        let json: DownloadResponse<Any> = await outcome {
            made("/json").responseJSON(queue: callbackQueue, completionHandler: $0)
        }
        #expect((json.value as? [String: Any])?.count == 3)
        let list: DownloadResponse<Any> = await outcome {
            made("/status/200").responsePropertyList(queue: callbackQueue, completionHandler: $0)
        }
        #expect(list.value as? String == "200")
    }

    @Test("a file that can't be moved leaves an error and both URLs") func failedMove() async throws {
        let directory = try TemporaryDirectory()
        let target = try directory.write(Data("old".utf8), to: "target")
        let response = await manager.download(server.url("/bytes/10"), to: { _, _ in (target, []) }).plainResponse()
        #expect((response.error as? CocoaError)?.code == .fileWriteFileExists)
        #expect(response.destinationURL == target)
        let temporary = try #require(response.temporaryURL)
        #expect(try Data(contentsOf: temporary).count == 10)
        #expect(try Data(contentsOf: target) == Data("old".utf8))
        try FileManager.default.removeItem(at: temporary)
    }

    // MARK: Custom serializers

    @Test("types and closures that serialize data and files, as written for Alamofire") func customSerializers() async {
        struct Count: DataResponseSerializerProtocol {
            var serializeResponse: (URLRequest?, HTTPURLResponse?, Data?, Error?) -> Result<Int> {
                { _, _, data, error in error.map { .failure($0) } ?? .success(data?.count ?? 0) }
            }
        }
        struct FileCount: DownloadResponseSerializerProtocol {
            var serializeResponse: (URLRequest?, HTTPURLResponse?, URL?, Error?) -> Result<Int> = { _, _, url, error in
                if let error = error { return .failure(error) }
                return Result { try Data(contentsOf: url!).count }
            }
        }
        let count: DataResponse<Int> = await outcome {
            manager.request(server.url("/bytes/10")).response(queue: callbackQueue, responseSerializer: Count(), completionHandler: $0)
        }
        #expect(count.value == 10)
        let fileCount: DownloadResponse<Int> = await outcome {
            manager.download(server.url("/bytes/20"))
                .response(queue: callbackQueue, responseSerializer: FileCount(), completionHandler: $0)
        }
        #expect(fileCount.value == 20)
        let length = DownloadResponseSerializer<Int> { _, response, _, _ in .success(Int(response?.expectedContentLength ?? -1)) }
        let announced: DownloadResponse<Int> = await outcome {
            manager.download(server.url("/bytes/30")).response(queue: callbackQueue, responseSerializer: length, completionHandler: $0)
        }
        #expect(announced.value == 30)
    }

    // MARK: Requests

    @Test("a task has its request, response, counts and state") func task() async throws {
        let upload = manager.upload(Data(repeating: 1, count: 1000), to: server.url("/body"))
        _ = await upload.plainResponse()
        let task = try #require(upload.task)
        #expect(task.state == .completed && task.taskIdentifier > 0)
        #expect(task.originalRequest?.httpMethod == "POST" && task.currentRequest?.url == task.originalRequest?.url)
        #expect(task.response?.statusCode == 200)
        #expect(task.countOfBytesSent == 1000 && task.countOfBytesExpectedToSend == 1000)
        #expect(task.countOfBytesReceived == 1000 && task.countOfBytesExpectedToReceive == 1000)
        #expect(upload.uploadProgress.fractionCompleted == 1)
        let waiting = SessionManager()
        waiting.startRequestsImmediately = false
        let request = waiting.request(server.url("/json"))
        #expect(request.task?.state == .suspended)
        #expect(request.task?.response == nil && request.task?.countOfBytesReceived == 0 && request.task?.countOfBytesSent == 0)
        #expect(request.task?.countOfBytesExpectedToSend == 0 && request.task?.countOfBytesExpectedToReceive == -1)
    }

    @Test("a request describes itself by method, URL and status") func requestDescription() async {
        let request = manager.download(server.url("/json"))
        let response = await request.plainResponse()
        #expect(request.description == "GET \(server.url("/json")) (200)")
        #expect(request.request?.url?.absoluteString == server.url("/json"))
        if let file = response.temporaryURL { try? FileManager.default.removeItem(at: file) }
    }

    @Test("a manager has its session and its delegate, and finds the request of a task") func delegate() async {
        let delegate = SessionDelegate()
        let manager = SessionManager(delegate: delegate)
        manager.startRequestsImmediately = false
        let request = manager.request(server.url("/json"))
        #expect(manager.delegate === delegate && request.session === manager.session)
        #expect(request.task.flatMap { delegate[$0] } === request)
        request.resume()
        _ = await request.plainResponse()
        #expect(request.task.flatMap { delegate[$0] } == nil)
        #expect(request.delegate.data?.isEmpty == false && request.delegate.error == nil)
    }

    @Test("a request that was not started finishes with its manager") func managerReleased() async {
        var manager: SessionManager? = SessionManager()
        manager?.startRequestsImmediately = false
        let request = manager?.request(server.url("/json"))
        manager = nil
        let response = await request?.plainResponse()
        #expect((response?.error as? URLError)?.code == .cancelled)
        #expect(request?.task?.state == .completed)
    }
}
