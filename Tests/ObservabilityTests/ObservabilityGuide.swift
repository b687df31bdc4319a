// SPDX-License-Identifier: Apache-2.0
#if Observability
import Curlew
import CurlewObservability
import Logging

// The code of ObservingASession.md; `ObservabilityGuideTests` compares and runs it.

struct User: Codable {
    let id: Int
    let name: String
}

enum ObservabilityGuide {
    static func manager(_ logger: Logger) -> SessionManager {
        // snippet: manager
        var configuration = SessionConfiguration()
        configuration.instruments.append(TracingInstrument())
        configuration.instruments.append(MetricsInstrument())
        configuration.instruments.append(LoggingInstrument(logger: logger))
        let manager = SessionManager(configuration: configuration)
        // end
        return manager
    }

    static func user(_ id: Int, of api: String, with manager: SessionManager) async throws -> User {
        // snippet: name
        let options = RequestOptions(name: "GET /users/{id}")
        let user = try await manager.request("\(api)/users/\(id)", options: options).serializingDecodable(User.self).value
        // end
        return user
    }

    static func tracing() -> TracingInstrument {
        // snippet: tracing
        var tracing = TracingInstrument()
        tracing.recordsRequests = true
        tracing.responseHeaders = ["X-Request-Id"]
        tracing.propagates = { $0.host.hasSuffix(".example.org") }
        // end
        return tracing
    }

    static func measuring() -> MetricsInstrument {
        // snippet: measuring
        let measuring = MetricsInstrument(optional: [.activeRequests, .connections])
        // end
        return measuring
    }

    static func logging(_ configuration: inout SessionConfiguration) {
        // snippet: logging
        configuration.instruments.append(LoggingInstrument())
        // end
    }
}
#endif
