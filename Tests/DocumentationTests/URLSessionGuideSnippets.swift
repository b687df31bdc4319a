// SPDX-License-Identifier: Apache-2.0
import CurlewCore
// snippet: import
import Foundation

#if canImport(CurlewURLSession)
import CurlewURLSession
#elseif canImport(FoundationNetworking)
import FoundationNetworking
#endif
// end

// The code of «Coming from URLSession», in the form of Snippets.swift; `URLSessionGuideTests` runs it.

// snippet: unchanged
struct Catalog {
    let session: URLSession

    func names(at url: URL) async throws -> [String] {
        let (data, response) = try await session.data(from: url)
        guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw URLError(.badServerResponse) }
        return try JSONDecoder().decode([String].self, from: data)
    }
}
// end

enum URLSessionGuideSnippets {
    static func configuration(_ write: @escaping @Sendable (String) -> Void) -> URLSessionConfiguration {
        // snippet: curlew-configuration
        let configuration = URLSessionConfiguration.default
        configuration.timeoutIntervalForRequest = 10
        configuration.curlew.addresses = .publicOnly  // checked for each connection, after the name was resolved
        configuration.curlew.tls.minimumVersion = .v1_3
        configuration.curlew.eventMonitors = [FailureLog(write: write)]
        // end
        return configuration
    }

    static func session(_ session: URLSession) async -> Int {
        // snippet: curlew-session
        session.curlew.adapter = TokenAdapter(token: "7f3a9c")  // for each task of the session
        let open = await session.curlew.connectionStatistics().connections.open
        // end
        return open
    }

    static func task(_ session: URLSession, _ url: URL) -> String? {
        // snippet: curlew-task
        let task = session.dataTask(with: url)
        task.resume()
        let command = task.curlew?.cURLDescription()
        // end
        task.cancel()
        return command
    }

    static func own(_ manager: SessionManager, _ url: URL) async throws -> (Data, HTTPURLResponse?) {
        // snippet: url-session
        // let (data, response) = try await URLSession.shared.data(from: url)
        let answer = await manager.request(url).serializingData().response
        let (data, response) = (try answer.result.get(), answer.response)
        // end
        return (data, response)
    }
}
