// SPDX-License-Identifier: Apache-2.0
import Curlew

// snippet: fan-out
struct PriceList {
    let url: String
    let manager: SessionManager

    init(url: String, configuration: SessionConfiguration = SessionConfiguration()) {
        self.url = url
        var configuration = configuration
        configuration.maximumConnectionsPerHost = 50  // requests to this host at a time; the others wait
        manager = SessionManager(configuration: configuration)
    }

    func prices(of articles: some Sequence<Int>) async throws -> [Int: Int] {
        // For all requests; an error cancels those in flight and those that wait.
        try await withDeadline(.seconds(20)) {
            try await withThrowingTaskGroup(of: (Int, Int).self) { group in
                for article in articles {
                    group.addTask {
                        let price = manager.request("\(url)/\(article)").validate().serializingDecodable(Int.self)
                        return (article, try await price.value)
                    }
                }
                return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
            }
        }
    }
}
// end
