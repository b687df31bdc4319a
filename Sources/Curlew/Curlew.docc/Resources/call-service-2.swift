import Curlew
import Foundation

struct Price: Codable, Sendable, Equatable {
    let article: String
    let cents: Int
}

struct Prices: Sendable {
    let url: String
    let manager: SessionManager

    func price(of article: String) async throws -> Price {
        let options = RequestOptions(deadline: .milliseconds(800), name: "GET /prices/{article}")
        return try await manager.request("\(url)/prices/\(article)", options: options)
            .validate().serializingDecodable(Price.self).value
    }
}

extension Prices {
    /// The settings of this peer: short timeouts inside one data center, and bodies of a size that can be held.
    static var configuration: SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.headers = [.userAgent("shop/1.0")]
        configuration.connectTimeout = .milliseconds(300)
        configuration.idleTimeout = .seconds(2)
        configuration.maximumConnectionsPerHost = 32
        configuration.maximumBodySize = 1 << 20
        return configuration
    }
}
