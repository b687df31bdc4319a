// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewCaching
import Foundation

// The code of Caching.md, region by region: the lines between `// snippet: NAME` and `// end` are the same in both files, up to indentation.
// `CachingGuideTests` checks that, and runs the code.

enum CachingGuideSnippets {
    static func memory() -> SessionManager {
        // snippet: memory
        var configuration = SessionConfiguration()
        configuration.cache = .memory(capacity: 64 << 20)
        let manager = SessionManager(configuration: configuration)
        // end
        return manager
    }

    static func disk(_ configuration: inout SessionConfiguration, _ directory: URL) {
        // snippet: disk
        configuration.cache = .disk(directory: directory, capacity: 1 << 30)
        // end
    }

    static func metrics(_ manager: SessionManager, _ url: String, print: (String, String) -> Void) async {
        // snippet: metrics
        let response = await manager.request(url).serializingData().response
        let metrics = response.metrics.last
        print(metrics?.cacheOutcome?.rawValue ?? "-", metrics?.cacheReason?.rawValue ?? "-")
        // end
    }

    static func removing(print: (String, Date) -> Void) throws {
        // snippet: removing
        let cache = ResponseCache(storage: MemoryCacheStorage(), tagHeader: "Cache-Tag")
        try cache.remove("https://api.example.org/users/7")
        try cache.remove(tag: "users")
        try cache.remove { $0.url.hasPrefix("https://old.example.org/") }
        for entry in try cache.entries() { print(entry.url, entry.expirationDate) }
        // end
    }
}
