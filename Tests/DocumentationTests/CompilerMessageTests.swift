// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Testing

/// A wrong value does not compile, and the message names the types.
@Suite(.timeLimit(.minutes(2)), .enabled(if: SwiftCompiler.isInstalled)) struct CompilerMessageTests {
    @Test func `a wrong value or member of a configuration is named with its type`() async throws {
        let wrong = [
            ("tls = 5", "cannot assign value of type 'Int' to type 'TLSOptions'"),
            ("tls = .strict", "type 'TLSOptions' has no member 'strict'"),
            ("tls.minimumVersion = \"1.2\"", "cannot assign value of type 'String' to type 'TLSOptions.Version'"),
            ("tls.minimumVersion = .tlsv12", "type 'TLSOptions.Version' has no member 'tlsv12'"),
            ("tls.minimumTLSVersion = .v1_2", "value of type 'TLSOptions' has no member 'minimumTLSVersion'"),
            ("idleTimeout = 5", "cannot assign value of type 'Int' to type 'Duration'"),
            ("proxy = \"http://a.example\"", "cannot assign value of type 'String' to type 'ProxyPolicy'"),
            ("maximumConnectionsPerHost = \"5\"", "cannot assign value of type 'String' to type 'Int'"),
            ("requestTimeout = 5", "value of type 'SessionConfiguration' has no member 'requestTimeout'"),
        ]
        let lines =
            ["import Curlew", "func change(_ configuration: inout SessionConfiguration) {"] + wrong.map { "configuration.\($0.0)" } + ["}"]
        let errors = try await SwiftCompiler.errors(in: lines.joined(separator: "\n"))
        for (number, (assignment, message)) in wrong.enumerated() {
            #expect(errors.contains("\(number + 3): \(message)"), "\(assignment): \(errors.filter { $0.hasPrefix("\(number + 3): ") })")
        }
    }

    @Test func `a right program has no errors`() async throws {
        let program = """
            import Curlew
            func change(_ configuration: inout SessionConfiguration) {
                configuration.tls.minimumVersion = .v1_3
                configuration.idleTimeout = .seconds(5)
                configuration.options.idleTimeout = configuration.idleTimeout
            }
            """
        #expect(try await SwiftCompiler.errors(in: program) == [])
    }

    @Test func `a type that only adapts or only retries must have the method`() async throws {
        let program = """
            import Curlew
            struct Adapts: RequestAdapter { func adapt(_ request: URLRequest, for manager: SessionManager) throws -> URLRequest { request } }
            struct Retries: RequestRetrier { func retry(_ request: Request, dueTo error: any Error) {} }
            """
        let errors = try await SwiftCompiler.errors(in: program)
        #expect(errors.contains("2: type 'Adapts' does not conform to protocol 'RequestAdapter'"), "\(errors)")
        #expect(errors.contains("3: type 'Retries' does not conform to protocol 'RequestRetrier'"), "\(errors)")
    }
}
