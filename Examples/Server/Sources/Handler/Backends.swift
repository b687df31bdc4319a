// SPDX-License-Identifier: Apache-2.0
import Curlew

struct Customer: Codable, Sendable {
    let id: Int
    let name: String
}

struct Order: Codable, Sendable {
    let number: Int
}

// snippet: context
/// The id of the call that is being served.
enum CallID {
    @TaskLocal static var current: String?
}

/// Carries the id to the adapter, which a retry calls on another thread.
struct CallIDCarrier: ContextCarrier {
    func capture() -> String? { CallID.current }

    func restore<Value>(_ id: String, around body: () throws -> Value) rethrows -> Value {
        try CallID.$current.withValue(id, operation: body)
    }
}

struct CallIDAdapter: HeaderAdapter {
    func adapt(_ headers: inout HTTPHeaders, of method: HTTPMethod, to url: String) {
        headers["X-Call-ID"] = CallID.current
    }
}
// end

// snippet: backends
struct Backends: Sendable {
    let customersURL: String
    let ordersURL: String
    let manager: SessionManager

    init(customersURL: String, ordersURL: String, configuration: SessionConfiguration = SessionConfiguration()) {
        self.customersURL = customersURL
        self.ordersURL = ordersURL
        var configuration = configuration
        configuration.contextCarriers = [CallIDCarrier()]
        let interceptor = Interceptor(adapter: CallIDAdapter(), retrier: RetryPolicy())
        manager = SessionManager(configuration: configuration, interceptor: interceptor)
    }

    func customer(_ id: Int) async throws -> Customer {
        try await get("\(customersURL)/customers/\(id)", as: "GET /customers/{id}")
    }

    func orders(of customer: Int) async throws -> [Order] {
        try await get("\(ordersURL)/orders?customer=\(customer)", as: "GET /orders")
    }

    private func get<Value: Decodable & Sendable>(_ url: String, as name: String) async throws -> Value {
        // The deadline is the task's; the seconds that are left of it are sent in this field.
        let options = RequestOptions(deadlineHeader: "X-Deadline", name: name)
        return try await manager.request(url, options: options).validate().serializingDecodable(Value.self).value
    }
}
// end
