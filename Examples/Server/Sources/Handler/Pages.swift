// SPDX-License-Identifier: Apache-2.0
import Curlew
import HTTPTypes
import Hummingbird

// snippet: request
// Curlew's `Request` has Alamofire's name, and Hummingbird has one, too: this line says which one the program means.
typealias Request = Hummingbird.Request
// end

struct Page: ResponseCodable {
    let customer: Customer
    let orders: [Order]
}

extension Customer: ResponseEncodable {}
extension Order: ResponseEncodable {}

extension HTTPField.Name {
    /// The seconds that the caller will wait.
    static var deadline: Self { Self("X-Deadline") ?? .expect }
    /// The call for which the caller works.
    static var callID: Self { Self("X-Call-ID") ?? .expect }
}

// snippet: handler
/// Takes over what the caller has sent: the id of its call, and the seconds that it will wait, 60 at most.
struct CallMiddleware<Context: RequestContext>: RouterMiddleware {
    func handle(_ request: Request, context: Context, next: (Request, Context) async throws -> Response) async throws -> Response {
        let seconds = request.headers[.deadline].flatMap(Double.init).map { $0 > 0 ? min($0, 60) : 0 } ?? 10
        do {
            return try await withDeadline(.seconds(seconds)) {
                try await CallID.$current.withValue(request.headers[.callID] ?? context.id) { try await next(request, context) }
            }
        } catch CurlewError.transferFailed(let failure) where failure.kind == .deadline {
            throw HTTPError(.gatewayTimeout)
        }
    }
}

func pages(of backends: Backends) -> Router<BasicRequestContext> {
    let router = Router()
    router.add(middleware: CallMiddleware())
    router.get("pages/:customer") { _, context -> Page in
        let id = try context.parameters.require("customer", as: Int.self)
        // Two calls at the same time, with all their retries in the caller's time.
        async let customer = backends.customer(id)
        async let orders = backends.orders(of: id)
        return try await Page(customer: customer, orders: orders)
    }
    return router
}
// end
