// SPDX-License-Identifier: Apache-2.0
import CurlewURLSession
import Foundation

// Two uploads, as they are written for Apple's systems: a stream, which a redirect has sent again, and a form with a file.

/// Opens the stream whenever it is needed, and shows how much was sent.
final class StreamUpload: NSObject, URLSessionDataDelegate, @unchecked Sendable {  // what changes does so on the session's queue
    private let file: URL
    private var answer = Data()
    private var continuation: CheckedContinuation<Data, any Error>?
    private(set) var openedStreams = 0
    private(set) var bytesSent: Int64 = 0

    init(_ file: URL) {
        self.file = file
    }

    func send(to url: URL) async throws -> Data {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let session = URLSession(configuration: .ephemeral, delegate: self, delegateQueue: queue)
        defer { session.finishTasksAndInvalidate() }
        var request = URLRequest(url: url)
        request.httpMethod = "PUT"
        request.setValue("application/octet-stream", forHTTPHeaderField: "Content-Type")
        let task = session.uploadTask(withStreamedRequest: request)
        return try await withCheckedThrowingContinuation { continuation in
            queue.addOperation {
                self.continuation = continuation
                task.resume()
            }
        }
    }

    // MARK: URLSessionDataDelegate

    func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        openedStreams += 1
        completionHandler(InputStream(url: file))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        self.bytesSent = totalBytesSent
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        answer.append(data)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        continuation?.resume(with: error.map { .failure($0) } ?? .success(answer))
        continuation = nil
    }
}

/// A form in `multipart/form-data` (RFC 7578).
struct Form {
    let boundary = "form-\(UUID().uuidString)"
    private(set) var body = Data()

    mutating func add(_ value: String, as name: String) {
        add(Data(value.utf8), "form-data; name=\"\(name)\"", type: nil)
    }

    mutating func add(_ data: Data, as name: String, file: String, type: String) {
        add(data, "form-data; name=\"\(name)\"; filename=\"\(file)\"", type: type)
    }

    private mutating func add(_ data: Data, _ disposition: String, type: String?) {
        body += Data("--\(boundary)\r\nContent-Disposition: \(disposition)\r\n".utf8)
        if let type { body += Data("Content-Type: \(type)\r\n".utf8) }
        body += Data("\r\n".utf8) + data + Data("\r\n".utf8)
    }

    mutating func end() { body += Data("--\(boundary)--\r\n".utf8) }
}

let server = try UploadServer()
defer { server.stop() }

let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).bin")
try Data(repeating: 0x5A, count: 3_000_000).write(to: file)
defer { try? FileManager.default.removeItem(at: file) }
let upload = StreamUpload(file)
let answer = String(decoding: try await upload.send(to: server.url.appendingPathComponent("moved")), as: UTF8.self)
print("stream: \(answer), opened \(upload.openedStreams) times")

var form = Form()
form.add("Eurasian curlew", as: "name")
form.add(Data(repeating: 0xFF, count: 1_000), as: "picture", file: "curlew.jpg", type: "image/jpeg")
form.end()
var request = URLRequest(url: server.url.appendingPathComponent("form"))
request.httpMethod = "POST"
request.setValue("multipart/form-data; boundary=\(form.boundary)", forHTTPHeaderField: "Content-Type")
let (data, response) = try await URLSession.shared.upload(for: request, from: form.body)
let status = (response as? HTTPURLResponse)?.statusCode ?? 0
print("form: \(status), \(String(decoding: data, as: UTF8.self))")

guard answer == "3000000 bytes", upload.openedStreams == 2, status == 201, String(decoding: data, as: UTF8.self) == "name, picture" else {
    exit(1)
}
