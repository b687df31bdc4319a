// SPDX-License-Identifier: Apache-2.0
import Curlew
import HTTPTypes
import Hummingbird

// Curlew's `Request` has Alamofire's name, and Hummingbird has one, too: this line says which one is meant in this file.
private typealias Request = Hummingbird.Request

struct User: ResponseCodable {
    let id: Int
    let name: String
}

struct Order: ResponseCodable {
    let number: Int
}

struct Page: ResponseCodable {
    let user: User
    let orders: [Order]
}

extension HTTPField.Name {
    /// The seconds that the caller will wait.
    static var deadline: Self { Self("X-Deadline") ?? .expect }
}

/// A service whose handler calls two others at the same time, and gives them the time that its own caller has left for it.
@main
enum Program {
    static func main() async throws {
        try await withService(users()) { users in
            try await withService(orders()) { orders in
                try await withService(pages(Backends(users: users, orders: orders))) { try await call($0) }
            }
        }
    }

    // MARK: The services that are called

    private static func users() -> Router<BasicRequestContext> {
        let router = Router()
        router.get("users/:id") { request, context -> User in
            try checkDeadline(request)
            return User(id: try context.parameters.require("id", as: Int.self), name: "Emma")
        }
        return router
    }

    private static func orders() -> Router<BasicRequestContext> {
        let router = Router()
        router.get("orders") { request, _ -> [Order] in
            try checkDeadline(request)
            // Longer than the second caller has: the task is cancelled when its connection closes, or at the end of the program.
            if request.uri.queryParameters["user"] == "8" { try await Task.sleep(for: .seconds(30)) }
            return [Order(number: 1), Order(number: 2)]
        }
        return router
    }

    /// Refuses what its caller no longer waits for.
    private static func checkDeadline(_ request: Request) throws {
        if let seconds = request.headers[.deadline].flatMap(Double.init), seconds <= 0 { throw HTTPError(.gatewayTimeout) }
    }

    // MARK: The service with the handler

    private static func pages(_ backends: Backends) -> Router<BasicRequestContext> {
        let router = Router()
        router.get("pages/:id") { request, context -> Page in
            let id = try context.parameters.require("id", as: Int.self)
            let seconds = request.headers[.deadline].flatMap(Double.init) ?? 10
            do {
                async let user = backends.user(id, within: .seconds(seconds))
                async let orders = backends.orders(of: id, within: .seconds(seconds))
                return try await Page(user: user, orders: orders)
            } catch CurlewError.transferFailed(let failure) where failure.isTimeout {
                throw HTTPError(.gatewayTimeout)
            }
        }
        return router
    }

    // MARK: Its callers

    private static func call(_ url: String) async throws {
        let page = try await manager.request("\(url)/pages/7").validate().serializingDecodable(Page.self).value
        guard page.user.name == "Emma", page.orders.count == 2 else { throw HTTPError(.internalServerError) }
        print("In time: \(page.user.name), \(page.orders.count) orders")
    }
}

/// One for the process: its connections are kept for later requests.
let manager: SessionManager = {
    var configuration = SessionConfiguration()
    configuration.proxy = .none
    return SessionManager(configuration: configuration)
}()

/// The services that the handler calls.
struct Backends: Sendable {
    let users: String
    let orders: String

    func user(_ id: Int, within time: Duration) async throws -> User {
        try await manager.request("\(users)/users/\(id)", options: options("GET /users/{id}", time)).validate().serializingDecodable().value
    }

    func orders(of id: Int, within time: Duration) async throws -> [Order] {
        try await manager.request("\(orders)/orders?user=\(id)", options: options("GET /orders", time)).validate()
            .serializingDecodable().value
    }

    private func options(_ name: String, _ time: Duration) -> RequestOptions {
        var options = RequestOptions(deadline: time, name: name)
        options.deadlineHeader = "X-Deadline"
        return options
    }
}
