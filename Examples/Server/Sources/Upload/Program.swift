// SPDX-License-Identifier: Apache-2.0
import Curlew
import ExampleServer

/// Uploads a sequence that is made while it is sent, and a form with files, neither of which is ever in memory as a whole.
@main
enum Program {
    static func main() async throws {
        let refused = Log<String>()
        let server = try LoopbackServer(bodies: { _ in .counted }) { request, _ in
            if request.path == "/records", refused.count == 0 {
                refused.append(request.path)
                return ServerResponse(status: 503, headers: [ServerField("Retry-After", "0")])
            }
            let announced = request.header("Content-Length") ?? "null"
            return ServerResponse(
                status: 200, body: .data(Data(#"{"received": \#(request.bodyLength), "announced": \#(announced)}"#.utf8)))
        }
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        let uploads = Uploads(url: server.url(""), manager: SessionManager(configuration: configuration))

        // Each time the network takes more bytes, the next line is made.
        let records = try await uploads.send {
            AsyncStream(unfolding: { [numbers = Numbers(256)] in await numbers.next().map { Data("record \($0)\n".utf8) } })
        }
        let length = (0..<256).reduce(0) { $0 + "record \($1)\n".utf8.count }
        try check(records, records.received == length && records.announced == nil)

        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let photos = try (1...2).map { number in
            try directory.write(GeneratedBody(seed: UInt64(number)).data(count: 4 << 20), to: "photo-\(number).jpg")
        }
        let form = try await uploads.send(photos, title: "Curlew")
        try check(form, form.received > 8 << 20 && form.announced == form.received)
    }

    private static func check(_ receipt: Receipt, _ isRight: Bool) throws {
        guard isRight else { throw TestError("\(receipt)") }
        print("\(receipt.received) bytes received, \(receipt.announced.map { "Content-Length: \($0)" } ?? "chunked")")
    }
}

/// The numbers from 0, one after the other.
actor Numbers {
    private var rest: Range<Int>

    init(_ count: Int) {
        rest = 0..<count
    }

    func next() -> Int? { rest.popFirst() }
}
