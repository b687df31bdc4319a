// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewLifecycle
import ExampleService
import HTTPTypes
import Hummingbird
import Synchronization

/// A service whose handler calls two others at the same time, and passes on the id of the call that it serves and the time that is left.
@main
enum Program {
    static func main() async throws {
        let journal = Journal()
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        try await withService(customers(journal)) { [configuration] customersURL in
            try await withService(orders(journal)) { ordersURL in
                let backends = Backends(customersURL: customersURL, ordersURL: ordersURL, configuration: configuration)
                // snippet: service
                // Shut down after the server, so that handlers finish: then the requests that are still in flight.
                let service = SessionManagerService(backends.manager, gracePeriod: .seconds(20))
                // end
                try await withService(pages(of: backends), services: [service]) { url in
                    try await call(url, by: SessionManager(configuration: configuration))
                }
            }
        }
        // The first call of the orders was refused and retried, on another thread.
        try expect(journal.entries == ["customers call-7", "customers call-8", "orders call-7", "orders call-7", "orders call-8"], journal)
        print("Both services have seen the calls' ids, the orders also at the retry")
    }

    // MARK: The services that are called

    private static func customers(_ journal: Journal) -> Router<BasicRequestContext> {
        let router = Router()
        router.get("customers/:id") { request, context -> Customer in
            try journal.note("customers", request)
            return Customer(id: try context.parameters.require("id", as: Int.self), name: "Emma")
        }
        return router
    }

    private static func orders(_ journal: Journal) -> Router<BasicRequestContext> {
        let router = Router()
        router.get("orders") { request, _ -> [Order] in
            let count = try journal.note("orders", request)
            if count == 1 { throw HTTPError(.serviceUnavailable, headers: [.retryAfter: "0"]) }
            // Longer than the second caller waits. The task is cancelled with the service.
            if request.uri.queryParameters["customer"] == "8" { try await Task.sleep(for: .seconds(30)) }
            return [Order(number: 1), Order(number: 2)]
        }
        return router
    }

    // MARK: Its callers

    private static func call(_ url: String, by manager: SessionManager) async throws {
        let page = try await manager.request("\(url)/pages/7", headers: ["X-Call-ID": "call-7"]).validate()
            .serializingDecodable(Page.self).value
        try expect(page.customer.name == "Emma" && page.orders.count == 2, page)
        print("In time: \(page.customer.name), \(page.orders.count) orders")

        let start = ContinuousClock.now
        let late = await manager.request("\(url)/pages/8", headers: ["X-Call-ID": "call-8", "X-Deadline": "0.200"]).serializingData()
            .response
        try expect(late.response?.statusCode == 504, late)
        print("Too late: 504 after \(start.duration(to: .now).formatted(.units(allowed: [.milliseconds])))")
    }

    private static func expect(_ isRight: Bool, _ value: Any) throws {
        guard isRight else { throw HTTPError(.internalServerError, message: "\(value)") }
    }
}

/// The calls that the services have seen. Every call has an id, and says how long its caller will wait.
final class Journal: Sendable, CustomStringConvertible {
    private let state = Mutex<[String]>([])

    /// In alphabetical order.
    var entries: [String] { state.withLock { $0.sorted() } }

    var description: String { "\(entries)" }

    /// Returns how many calls the service has seen, this one included.
    @discardableResult
    func note(_ service: String, _ request: Request) throws -> Int {
        guard let id = request.headers[.callID], let seconds = request.headers[.deadline].flatMap(Double.init), 0...60 ~= seconds else {
            throw HTTPError(.badRequest)
        }
        return state.withLock { entries in
            entries.append("\(service) \(id)")
            return entries.count { $0.hasPrefix(service) }
        }
    }
}
