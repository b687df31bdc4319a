// SPDX-License-Identifier: Apache-2.0
import CurlewServices

/// The API as it runs: at an address, with a token that is renewed when it has expired.
struct ProductionService: HTTPService {
    /// What programs that use the API get in place of statuses.
    enum RequestError: Error {
        case noSuchBird
        case other(ServiceError)
    }

    let apiURL: any URLConvertible
    let tokens: Tokens
    // The server of the example has no certificate.
    let usesSecureProtocol: Bool? = false

    var header: HTTPHeaders { ["Accept-Language": "en"] }

    /// Asked for each attempt: the second one has the token that the retrier has brought.
    var asyncHeader: HTTPHeaders {
        get async { [.authorization(bearerToken: await tokens.current)] }
    }

    var retrierFactory: any ServiceRetrierFactory {
        AnyServiceRetrierFactory { [tokens] _ in RefreshingRetrier(tokens: tokens) }
    }

    func mapError(_ error: ServiceError) -> RequestError {
        if case .requestFailed(statusCode: 404, _, _) = error { .noSuchBird } else { .other(error) }
    }
}

/// Has the token renewed after a 401, once a request.
struct RefreshingRetrier: ServiceRetrier {
    let tokens: Tokens

    func retry<Request: ServiceRequest>(_ request: Request, failingWith error: ServiceError) async -> Bool {
        guard case .requestFailed(statusCode: 401, _, _) = error else { return false }
        return await tokens.renew()
    }
}

/// The token of all requests. However many find it expired at once, one asks for another.
actor Tokens {
    private(set) var current = "expired long ago"
    private(set) var renewals = 0
    private let response: @Sendable () -> ServiceResponse<TokenRequest, AnyHTTPService>
    private var renewal: Task<Bool, Never>?

    init(apiURL: String) {
        response = { TokenRequest().schedule(with: AnyHTTPService(at: apiURL, usesSecureProtocol: nil)) }
    }

    func renew() async -> Bool {
        if let renewal { return await renewal.value }
        let renewal = Task { [response] in
            let token = try? await response().value.accessToken
            // Stored before the waiting requests resume, which send it.
            if let token { current = token }
            renewals += 1
            self.renewal = nil
            return token != nil
        }
        self.renewal = renewal
        return await renewal.value
    }
}
