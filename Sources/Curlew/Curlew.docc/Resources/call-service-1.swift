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
