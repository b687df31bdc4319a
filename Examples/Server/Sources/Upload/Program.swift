// SPDX-License-Identifier: Apache-2.0
import Curlew
import ExampleServer

/// Uploads a sequence that is made while it is sent, and a form with files, neither of which is ever in memory as a whole.
@main
enum Program {
    private static let count = 256

    static func main() async throws {
        let server = try LoopbackServer(bodies: { _ in .counted }) { request, _ in
            let announced = request.header("Content-Length") ?? "null"
            return ServerResponse(
                status: 200, body: .data(Data(#"{"received": \#(request.bodyLength), "announced": \#(announced)}"#.utf8)))
        }
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        let manager = SessionManager(configuration: configuration)
        let options = RequestOptions(deadline: .seconds(20), name: "POST /records")

        // Each time the network takes more bytes, the next line is made. With `length:` they are sent with a Content-Length.
        let lines = AsyncStream(unfolding: { [numbers = Numbers(count)] in await numbers.next().map { Data("record \($0)\n".utf8) } })
        let records = try await manager.upload(lines, to: server.url("/records"), options: options).validate().serializingDecodable(
            Reply.self
        ).value
        let length = (0..<count).reduce(0) { $0 + "record \($1)\n".utf8.count }
        try check(records, records.received == length && records.announced == nil)

        // The files are read while they are sent: the form has its exact length, and is not copied.
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let form = MultipartFormData()
        form.append(Data("Curlew".utf8), withName: "title")
        for number in 1...2 {
            let file = try directory.write(GeneratedBody(seed: UInt64(number)).data(count: 4 << 20), to: "photo-\(number).jpg")
            form.append(file, withName: "photo-\(number)")
        }
        let photos = try await manager.upload(form, to: server.url("/photos"), options: options)
            .uploadProgress { progress in if progress.isFinished { print("All of the form is sent") } }
            .validate().serializingDecodable(Reply.self).value
        try check(photos, photos.received > 8 << 20 && photos.announced == photos.received)
    }

    private static func check(_ reply: Reply, _ isRight: Bool) throws {
        guard isRight else { throw TestError("\(reply)") }
        print("\(reply.received) bytes received, \(reply.announced.map { "Content-Length: \($0)" } ?? "chunked")")
    }
}

/// What the server has received.
struct Reply: Decodable, Sendable {
    let received: Int64
    let announced: Int64?
}

/// The numbers from 0, one after the other.
actor Numbers {
    private var rest: Range<Int>

    init(_ count: Int) {
        rest = 0..<count
    }

    func next() -> Int? { rest.popFirst() }
}
