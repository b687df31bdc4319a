// SPDX-License-Identifier: Apache-2.0
import CurlewAlamofire
import Foundation

// A program written for Alamofire 4, but for its import line: it makes every kind of request of a server, and checks what it gets. The
// server's URL is the first argument. Prints a line for each check; the exit status is the number of those that failed.

let base = CommandLine.arguments.count > 1 ? CommandLine.arguments[1] : "http://127.0.0.1:8080"
let directory = FileManager.default.temporaryDirectory.appendingPathComponent("alamofire-sample-\(UUID().uuidString)")
try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
ShopRouter.baseURLString = base

setvbuf(stdout, nil, _IOLBF, 0)
var failures = 0

func check(_ name: String, _ condition: Bool) {
    if !condition { failures += 1 }
    print((condition ? "ok    " : "FAILED") + " " + name)
}

/// The steps, one after the other, each begun on the main queue.
var steps: [(@escaping () -> Void) -> Void] = []

func step(_ body: @escaping (@escaping () -> Void) -> Void) {
    steps.append(body)
}

func runSteps() {
    guard !steps.isEmpty else {
        try? FileManager.default.removeItem(at: directory)
        exit(Int32(failures))
    }
    steps.removeFirst()({ DispatchQueue.main.async { runSteps() } })
}

// MARK: - Data

step { done in
    let headers: HTTPHeaders = ["Accept": "application/json", "X-Client": "sample"]
    Alamofire.request(base + "/json", headers: headers)
        .validate(statusCode: 200..<300)
        .validate(contentType: ["application/json"])
        .responseJSON { response in
            check("JSON", (response.result.value as? [String: Any])?["name"] as? String == "curlew")
            check("request's header", response.request?.value(forHTTPHeaderField: "X-Client") == "sample")
            check("response's header", response.response?.allHeaderFields["Content-Type"] as? String == "application/json")
            check("timeline", response.timeline.totalDuration >= response.timeline.latency)
            done()
        }
}

step { done in
    Alamofire.request(ShopRouter.search(words: "sea birds & more", page: 2)).validate().responseString { response in
        switch response.result {
        case .success(let text):
            check("query", text.contains("page=2") && text.contains("sea%20birds%20%26%20more") && text.contains("sort%5B%5D=price"))
        case .failure:
            check("query", false)
        }
        done()
    }
}

step { done in
    var bookName: String?
    request(ShopRouter.book).responseBook { response in
        bookName = response.value?.name
        check("own serializer", bookName == "curlew" && response.result.value?.numbers == [1, 2, 3])
        check("map", response.map { $0.numbers.count }.value == 3)
        check("flatMap", response.flatMap { book -> Int in throw ShopError.soldOut(book.numbers.count) }.error is ShopError)
    }.response { response in
        check("handlers in order", bookName != nil && response.data != nil)
        done()
    }
}

step { done in
    Alamofire.request(ShopRouter.order(items: ["a", "b"])).responseJSON { response in
        let body = (response.result.value as? [String: Any])?["body"] as? String
        check("JSON body", body.flatMap { Data(base64Encoded: $0) } == Data(#"{"items":["a","b"]}"#.utf8))
    }
    Alamofire.request(base + "/body", method: .post, parameters: ["a": 1], encoding: PropertyListEncoding.default)
        .responsePropertyList { response in
            check("property list", (response.result.value as? [String: Int])?["a"] == 1)
        }
    Alamofire.request(base + "/body", method: .put, parameters: ["flag": true], encoding: URLEncoding(boolEncoding: .literal))
        .responseData { response in
            check("form", response.data == Data("flag=true".utf8))
        }
    Alamofire.request(base + "/bytes/0").response(responseSerializer: LineCountSerializer()) { response in
        check("serializer type", response.result.value == 1)
        done()
    }
}

// MARK: - Adapter and retrier

let tokenHandler = TokenHandler(baseURLString: base)
let tokenManager = SessionManager()
tokenManager.adapter = tokenHandler
tokenManager.retrier = tokenHandler

step { done in
    var left = 4
    for _ in 0..<4 {
        let token = tokenManager.request(base + "/auth-token", parameters: ["token": "fresh"])
        token.validate().responseString { response in
            check("retried with another token", response.result.isSuccess && token.isRetried)
            left -= 1
            guard left == 0 else { return }
            check("one refresh", tokenHandler.refreshCount == 1)
            check("retrier's errors", tokenHandler.errors.allSatisfy { ($0 as? AFError)?.responseCode == 401 })
            done()
        }
    }
}

// MARK: - Downloads

step { done in
    let target = directory.appendingPathComponent("a/b/book.bin")
    var fractions: [Double] = []
    Alamofire.download(base + "/bytes/300000", to: { _, _ in (target, [.createIntermediateDirectories, .removePreviousFile]) })
        .downloadProgress { progress in
            fractions.append(progress.fractionCompleted)
        }
        .validate { _, response, _, destinationURL in
            return response.statusCode == 200 && destinationURL == target ? .success : .failure(ShopError.unexpectedContent)
        }
        .responseData { response in
            check("download", response.result.value?.count == 300_000 && response.destinationURL == target)
            check("download progress", fractions.last == 1.0)
            done()
        }
}

step { done in
    let destination: DownloadRequest.DownloadFileDestination = { temporaryURL, response in
        (directory.appendingPathComponent(response.suggestedFilename ?? temporaryURL.lastPathComponent), [.removePreviousFile])
    }
    Alamofire.download(base + "/json", method: .get, headers: ["X-Client": "sample"], to: destination).validate().responseJSON { response in
        check("downloaded JSON", (response.result.value as? [String: Any])?.count == 3)
        check("suggested name", response.destinationURL?.lastPathComponent == response.response?.suggestedFilename)
        done()
    }
}

step { done in
    let url = base + "/bytes/3000000?etag=v1&seed=5"
    let target = directory.appendingPathComponent("resumed.bin")
    let destination: DownloadRequest.DownloadFileDestination = { _, _ in (target, [.removePreviousFile]) }
    weak var running: DownloadRequest?
    let download = Alamofire.download(url, to: destination)
    running = download
    download.downloadProgress { progress in
        if progress.completedUnitCount > 0 { running?.cancel() }
    }
    download.response { response in
        guard let resumeData = response.resumeData else {
            // The server was faster.
            check("resume", response.error == nil)
            return done()
        }
        check("cancelled download", (response.error as? URLError)?.code == .cancelled)
        Alamofire.download(resumingWith: resumeData, to: destination).validate().responseData { response in
            check("resume", response.result.value?.count == 3_000_000)
            done()
        }
    }
}

// MARK: - Uploads

step { done in
    let file = directory.appendingPathComponent("upload.bin")
    let body = Data(repeating: 65, count: 200_000)
    try? body.write(to: file)
    var sent: Int64 = 0
    Alamofire.upload(body, to: base + "/body", headers: ["Content-Type": "application/octet-stream"])
        .uploadProgress { sent = $0.completedUnitCount }
        .responseData { response in
            check("upload of data", response.data == body)
            check("upload progress", sent == 200_000)
        }
    Alamofire.upload(file, to: base + "/body", method: .put).responseData { check("upload of a file", $0.result.value == body) }
    Alamofire.upload(InputStream(data: body), to: base + "/body").responseData { response in
        check("upload of a stream", response.result.value == body)
        done()
    }
}

// MARK: - Forms

step { done in
    let picture = directory.appendingPathComponent("cover.png")
    try? Data(repeating: 7, count: 5000).write(to: picture)
    Alamofire.upload(
        multipartFormData: { form in
            form.append(Data("Gulls".utf8), withName: "title")
            form.append(picture, withName: "cover")
            form.append(InputStream(data: Data("text".utf8)), withLength: 4, name: "notes", fileName: "notes.txt", mimeType: "text/plain")
        },
        to: base + "/body",
        headers: ["X-Client": "sample"],
        encodingCompletion: { result in
            switch result {
            case .success(let upload, let streamingFromDisk, _):
                check("form in memory", !streamingFromDisk)
                upload.uploadProgress { _ in }.validate().responseData { response in
                    let text = String(decoding: response.data ?? Data(), as: UTF8.self)
                    check("form", text.contains("name=\"cover\"; filename=\"cover.png\"") && text.contains("image/png"))
                    done()
                }
            case .failure(let error):
                check("form: \(error)", false)
                done()
            }
        }
    )
}

step { done in
    tokenManager.upload(
        multipartFormData: { $0.append(Data(repeating: 1, count: 100_000), withName: "data") },
        usingThreshold: 1000,
        to: base + "/body",
        encodingCompletion: { result in
            guard case .success(let upload, true, let file?) = result else { return check("form from the disk", false) }
            upload.response { response in
                check("form from the disk", (response.data?.count ?? 0) > 100_000 && !FileManager.default.fileExists(atPath: file.path))
                done()
            }
        }
    )
}

step { done in
    Alamofire.upload(
        multipartFormData: { $0.append(directory, withName: "file", fileName: "file", mimeType: "text/plain") },
        to: base + "/body",
        encodingCompletion: { result in
            guard case .failure(let error) = result else { return check("a directory is no part", false) }
            check("a directory is no part", summary(of: error) == "multipart: no part")
            done()
        }
    )
}

// MARK: - Streams

step { done in
    var received = 0
    Alamofire.request(base + "/bytes/500000").stream { received += $0.count }.response { response in
        check("streamed body", received == 500_000 && response.data == nil)
        done()
    }
}

step { done in
    let port = URL(string: base)?.port ?? 80
    let connection = Alamofire.stream(withHostName: "127.0.0.1", port: port)
    check("raw connection", connection.task != nil)
    connection.cancel()
    done()
}

// MARK: - Credentials

step { done in
    let url = base + "/auth-basic?user=gull&password=fish"
    Alamofire.request(url).authenticate(user: "gull", password: "fish").validate().responseString { response in
        check("credential", response.result.isSuccess)
        Alamofire.request(url).authenticate(user: "gull", password: "bread").response { response in
            check("refused credential", response.response?.statusCode == 401 && response.error == nil)
            var headers: HTTPHeaders = [:]
            if let header = Request.authorizationHeader(user: "gull", password: "fish") { headers[header.key] = header.value }
            Alamofire.request(url, headers: headers).validate().response { response in
                check("authorization header", response.error == nil)
                done()
            }
        }
    }
}

// MARK: - Notifications, descriptions, reachability

var completionObserver: NSObjectProtocol?

step { done in
    let request = Alamofire.request(base + "/json", headers: ["X-Client": "sample"])
    let center = NotificationCenter.default
    completionObserver = center.addObserver(forName: Notification.Name.Task.DidComplete, object: nil, queue: .main) { note in
        // That of an earlier step's request may come late.
        guard note.userInfo?[Notification.Key.Task] as AnyObject === request.task, let observer = completionObserver else { return }
        center.removeObserver(observer)
        completionObserver = nil
        check("notification", note.userInfo?[Notification.Key.ResponseData] is Data)
        done()
    }
    // With the status, if the answer was faster.
    check("description", ["GET \(base)/json", "GET \(base)/json (200)"].contains(request.description))
    check("cURL", request.debugDescription.hasPrefix("$ curl -v") && request.debugDescription.contains("-H \"X-Client: sample\""))
    request.response { _ in }
}

step { done in
    let reachability = NetworkReachabilityManager(host: "127.0.0.1")
    var heard = false
    reachability?.listener = { status in
        guard !heard else { return }
        heard = true
        check("reachability", status != .notReachable)
        reachability?.stopListening()
        reachability?.listener = nil
        done()
    }
    check("listening", reachability?.startListening() == true)
}

// MARK: - Closures of the session

let delegateManager = SessionManager()

step { done in
    var hops: [String] = []
    var completed = 0
    delegateManager.delegate.taskWillPerformHTTPRedirection = { session, task, response, request in
        hops.append(request.url?.path ?? "")
        return request.url?.path == "/json" ? nil : request
    }
    delegateManager.delegate.taskDidComplete = { _, _, error in
        if error == nil { completed += 1 }
    }
    delegateManager.request(base + "/redirect/2").response { response in
        check("redirects are asked about", hops == ["/redirect/1", "/json"] && response.response?.statusCode == 302)
        check("the end is told", completed == 1)
        delegateManager.delegate.taskWillPerformHTTPRedirection = nil
        done()
    }
}

// MARK: - A session of its own

step { done in
    let configuration = URLSessionConfiguration.default
    configuration.httpAdditionalHeaders = ["X-Session": "yes"]
    configuration.timeoutIntervalForRequest = 0.3
    let manager = SessionManager(
        configuration: configuration, delegate: SessionDelegate(),
        serverTrustPolicyManager: ServerTrustPolicyManager(policies: ["example.org": .disableEvaluation]))
    manager.request(base + "/echo").responseString { response in
        check("session's header", response.result.value?.contains("X-Session") == true)
    }
    manager.request(base + "/silent").response { response in
        check("timeout", (response.error as? URLError)?.code == .timedOut)
        _ = manager
        done()
    }
}

// MARK: - Errors

step { done in
    var pending = 6
    func expect(_ name: String, _ error: Error?, _ expected: String) {
        let actual = summary(of: error)
        check("\(name): \(actual)", actual == expected)
        pending -= 1
        if pending == 0 { done() }
    }
    Alamofire.request("no URL").response { expect("URL", $0.error, "invalid URL no URL") }
    Alamofire.request(base + "/echo", method: .post, parameters: ["date": Date()], encoding: JSONEncoding.default)
        .responseJSON { expect("parameters", $0.error, "parameters: JSON") }
    Alamofire.request(base + "/status/404").validate().responseData { expect("status", $0.error, "validation: status 404") }
    Alamofire.request(base + "/json").validate(contentType: ["text/html"])
        .responseData { expect("type", $0.result.error, #"validation: type application/json, for ["text/html"]"#) }
    Alamofire.request(base + "/status/200").responseBook { expect("own", $0.error, "own: unexpectedContent") }
    let cancelled = Alamofire.request(base + "/silent").responseJSON { expect("cancelled", $0.error, "URL loading: -999") }
    cancelled.cancel()
}

DispatchQueue.main.async { runSteps() }
DispatchQueue.main.asyncAfter(deadline: .now() + 60) {
    check("all steps come to their end", false)
    exit(1)
}
RunLoop.main.run()
