// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewRequests
import DemoServer

/// Requests that are objects, against a server in this process. Exit status 0 only if all of it worked.
@main
enum Program {
    /// Asynchronous, so that the main queue runs, on which requests call back by default.
    static func main() async {
        do {
            let server = try LoopbackServer(route: answer)
            defer { server.stop() }
            // The one place that knows where the requests go.
            RequestsConfiguration.shared.baseUrl = server.url("/api/")
            RequestsConfiguration.shared.cdnUrl = server.url("/cdn/")
            RequestsConfiguration.shared.addUrlFilter(UrlArgumentsFilter(arguments: ["version": "1.0"]))
            try await signUpWithBlocks()
            try await signUpWithDelegate()
            try await askForFourAtOnce()
            try await chain(on: server)
            print("All of it worked.")
        } catch {
            print("requests: \(error)")
            exit(1)
        }
    }

    // MARK: One request

    private static func signUpWithBlocks() async throws {
        let ended = AsyncStream<SignUp?>.makeStream()
        let request = SignUp(name: "Ada")
        // The block may hold the request: both are let go of when it has run.
        request.startWithCompletionBlock(
            success: { _ in ended.continuation.yield(request) }, failure: { _ in ended.continuation.yield(nil) })
        let signedUp = await ended.stream.first { _ in true } ?? nil
        guard let id = signedUp?.userId else { throw Unexpected(what: "the sign-up with blocks") }
        print("Blocks: signed up as number \(id).")
    }

    private static func signUpWithDelegate() async throws {
        let ended = AsyncStream<BaseRequest>.makeStream()
        let watcher = Watcher(ended.continuation)
        let request = SignUp(name: "")
        request.delegate = watcher
        request.start()
        // The server takes nobody without a name.
        guard let failed = await ended.stream.first(where: { _ in true }), let error = failed.error else {
            throw Unexpected(what: "the sign-up with a delegate")
        }
        print("Delegate: refused as it has to be: \(error.localizedDescription).")
    }

    private final class Watcher: RequestDelegate {
        private let ended: AsyncStream<BaseRequest>.Continuation

        init(_ ended: AsyncStream<BaseRequest>.Continuation) { self.ended = ended }

        func requestFinished(_ request: BaseRequest) { ended.yield(request) }
        func requestFailed(_ request: BaseRequest) { ended.yield(request) }
    }

    // MARK: Several

    private static func askForFourAtOnce() async throws {
        let batch = BatchRequest(requestArray: (1...4).map { UserInfo(id: $0) })
        let names = try await batch.responses().compactMap { ($0 as? UserInfo)?.name }
        guard names.count == 4 else { throw Unexpected(what: "the batch") }
        print("Batch: \(names.joined(separator: ", ")).")
    }

    /// A → B and C → D: what the sign-up brings is needed by the two that follow, and both are needed by the last.
    private static func chain(on server: LoopbackServer) async throws {
        let chain = ChainRequest()
        let signUp = SignUp(name: "Grace")
        chain.addRequest(signUp) { chain, _ in
            let id = signUp.userId ?? 0
            let (info, picture) = (UserInfo(id: id), Picture(id: id))
            chain.addBatch(BatchRequest(requestArray: [info, picture])) { chain, _ in
                let text = "\(info.name ?? "?") joins us, in \(picture.responseData?.count ?? 0) bytes"
                chain.addRequest(Announcement(text: text))
            }
        }
        guard let last = try await chain.response()?.request as? Announcement, let answer = last.responseString else {
            throw Unexpected(what: "the chain")
        }
        let paths = server.requests.suffix(4).map(\.path)
        guard paths.first == "/api/users", paths.last == "/api/announcements" else { throw Unexpected(what: "the chain's order") }
        print("Chain: \(answer).")
    }

    // MARK: The server

    private static func answer(_ request: ServerRequest, _ connection: ServerConnection) throws -> ServerResponse {
        let parts = request.path.split(separator: "/")
        guard request.query("version") == "1.0", parts.count >= 2 else { return .status(400) }
        switch (request.method, parts[1]) {
        case ("POST", "users"):
            let body = try JSONDecoder().decode([String: String].self, from: request.body)
            return try .json(["id": 4], status: body["name"] == "" ? 422 : 200)
        case ("GET", "users"): return try .json(Person(id: Int(parts[2]) ?? 0, name: "user \(parts[2])"))
        case ("GET", "pictures"): return .ok(Data(repeating: 7, count: 512), type: "image/png")
        case ("POST", "announcements"): return .ok(String(decoding: request.body, as: UTF8.self))
        default: return .status(404)
        }
    }

    private struct Person: Encodable {
        let id: Int
        let name: String
    }

    private struct Unexpected: Error, CustomStringConvertible {
        let what: String
        var description: String { "\(what) went wrong" }
    }
}
