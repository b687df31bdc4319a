// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewEvents
import CurlewJSON
import CurlewOperations
import CurlewRequests
import CurlewServices
import CurlewWebSocket

// The code of articles about the other products, in the same form as Snippets.swift; `LayerSnippetTests` runs it.

// snippet: sign-up
final class SignUp: BaseRequest, @unchecked Sendable {  // immutable
    private let name: String

    init(name: String) { self.name = name }

    override func requestUrl() -> String { "users" }
    override func requestMethod() -> HTTPMethod { .post }
    override func requestArgument() -> Any? { ["name": name] }
    override func requestSerializerType() -> RequestSerializerType { .json }
    override func jsonValidator() -> Any? { ["id": Int.self] }
}
// end

// snippet: service
struct UserRequest: JSONServiceRequest {
    typealias Result = User
    let id: Int
    var routes: HTTPRoute { ["users", id] }
}

struct UserService: HTTPService {
    let apiURL: any URLConvertible
    let usesSecureProtocol: Bool? = nil  // as the URL says
    let sessionManager: SessionManager
}
// end

enum LayerSnippets {
    static func services(_ manager: SessionManager, _ apiURL: String) async throws -> User {
        // snippet: services
        let service = UserService(apiURL: apiURL, sessionManager: manager)
        let response = UserRequest(id: 7).schedule(with: service)
        let user = try await response.value  // one request, however many ask for its value
        // end
        return user
    }

    static func requests() async throws -> [BaseRequest] {
        // snippet: requests
        RequestsConfiguration.shared.baseUrl = "https://api.example.org/"
        let ada = try await SignUp(name: "Ada").response()
        let others = try await BatchRequest(requestArray: [SignUp(name: "Grace"), SignUp(name: "Edsger")]).responses()
        // end
        return [ada] + others
    }

    static func operations(_ indexURL: URL, _ archiveURL: URL, to directory: URL) async throws -> HTTPRequestOperation {
        // snippet: operations
        let index = HTTPRequestOperation(request: URLRequest(url: indexURL))
        let archive = HTTPRequestOperation(request: URLRequest(url: archiveURL))
        archive.outputFile = directory.appendingPathComponent("archive.tar")
        archive.addDependency(index)

        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 4
        queue.addOperation(index)
        queue.addOperation(archive)
        archive.pause()  // what has come stays
        archive.resume()  // asks for the rest
        _ = try await archive.value
        // end
        return index
    }

    static func streams(
        _ manager: SessionManager, _ socketURL: String, _ eventsURL: String, _ url: String, print: (Any) -> Void
    ) async throws -> User {
        // snippet: streams
        let socket = manager.webSocket(socketURL)
        try await socket.send("Hello")
        for try await message in socket.messages {
            print(message)
            break
        }
        for try await event in manager.eventStream(eventsURL) {
            print("\(event.type): \(event.data)")
            break
        }
        let user = try await manager.request(url).validate().serializingDecodable(User.self, decoder: FastJSONDecoder()).value
        // end
        return user
    }
}
