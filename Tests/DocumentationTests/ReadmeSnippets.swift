// SPDX-License-Identifier: Apache-2.0
import Curlew

// The code of README.md, in the form of Snippets.swift; `ReadmeTests` runs it.

enum ReadmeSnippets {
    /// What the initializer is in the snippet: a session whose requests go to a server on loopback.
    @TaskLocal static var transport: LoopbackTransport?

    // swift-format-ignore: AlwaysUseLowerCamelCase
    private static func SessionManager(interceptor: any RequestInterceptor) -> Curlew.SessionManager {
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        return Curlew.SessionManager(configuration: configuration, interceptor: interceptor, transport: transport ?? CurlTransport())
    }

    static func program(print: (String) -> Void) async throws {
        // snippet: program
        struct Repository: Decodable, Sendable {
            let name: String
            let description: String
        }

        let manager = SessionManager(interceptor: RetryPolicy())  // keep it: its connections are pooled
        let swift = "https://api.github.com/repos/swiftlang/swift"
        let options = RequestOptions(deadline: .seconds(10))
        let repository = try await manager.request(swift, headers: [.userAgent("hello")], options: options)
            .validate().serializingDecodable(Repository.self).value
        print("\(repository.name): \(repository.description)")
        // end
    }
}
