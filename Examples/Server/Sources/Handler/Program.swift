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
            // Longer than the second caller has. The task is cancelled with the service.
            if request.uri.queryParameters["user"] == "8" { try await Task.sleep(for: .seconds(30)) }
            return [Order(number: 1), Order(number: 2)]
        }
        return router
    }

    /// Every call says how long its caller will wait.
    private static func checkDeadline(_ request: Request) throws {
        guard let seconds = request.headers[.deadline].flatMap(Double.init), 0...60 ~= seconds else { throw HTTPError(.badRequest) }
    }

    // MARK: The service with the handler

    private static func pages(_ backends: Backends) -> Router<BasicRequestContext> {
        let router = Router()
        router.get("pages/:id") { request, context -> Page in
            let id = try context.parameters.require("id", as: Int.self)
            // What the caller has left, or 10 seconds: for both calls, with all their retries.
            let seconds = request.headers[.deadline].flatMap(Double.init) ?? 10
            do {
                return try await withDeadline(.seconds(seconds)) {
                    async let user = backends.user(id)
                    async let orders = backends.orders(of: id)
                    return try await Page(user: user, orders: orders)
                }
            } catch CurlewError.transferFailed(let failure) where failure.kind == .deadline {
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

        let start = ContinuousClock.now
        let late = await manager.request("\(url)/pages/8", headers: ["X-Deadline": "0.200"]).serializingData().response
        guard late.response?.statusCode == 504 else { throw HTTPError(.internalServerError) }
        print("Too late: 504 after \(start.duration(to: .now).formatted(.units(allowed: [.milliseconds])))")
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

    func user(_ id: Int) async throws -> User {
        try await manager.request("\(users)/users/\(id)", interceptor: RetryPolicy(), options: options("GET /users/{id}"))
            .validate().serializingDecodable().value
    }

    func orders(of id: Int) async throws -> [Order] {
        try await manager.request("\(orders)/orders?user=\(id)", interceptor: RetryPolicy(), options: options("GET /orders"))
            .validate().serializingDecodable().value
    }

    /// The deadline is that of the task; the services that are called read it in this field.
    private func options(_ name: String) -> RequestOptions {
        var options = RequestOptions(name: name)
        options.deadlineHeader = "X-Deadline"
        return options
    }
}
