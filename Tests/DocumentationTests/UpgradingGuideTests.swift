// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Foundation
import Testing

/// What «Upgrading from 0.9» says of the compiler is what it says, and the diff leads to the example as it is.
@Suite(.timeLimit(.minutes(5))) struct UpgradingGuideTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..")
        .standardizedFileURL

    private static func page() throws -> String {
        try String(contentsOf: root.appendingPathComponent("Sources/Curlew/Curlew.docc/UpgradingFrom09.md"), encoding: .utf8)
    }

    /// Programs for 0.9, each with what it imports and the beginning of the message, as the article has it.
    private static let programs: [(imports: [String], program: String, message: String)] = [
        (
            ["Curlew"], "func use(_ session: URLSession) {}",
            "'URLSession' is unavailable: This type has moved to the FoundationNetworking module"
        ),
        (["Curlew"], "func use(_ url: String) { streamRequest(url) }", "cannot find 'streamRequest' in scope"),
        (["CurlewDownloads"], "let type = SuggestedFileName.self", "cannot find 'SuggestedFileName' in scope"),
        (
            ["CurlewRequests"], "func use(_ request: BaseRequest, _ priority: RequestPriority) {}",
            "cannot find type 'RequestPriority' in scope"
        ),
        (
            ["CurlewRequests", "CurlewServices"], "func use(_ request: BaseRequest) { let priority: RequestPriority = .high }",
            "type 'RequestPriority' has no member 'high'"
        ),
        (
            ["CurlewServices"], "func use(_ error: ServiceError) { if case .requestFailed(statusCode: 404, _) = error {} }",
            "failed to produce diagnostic for expression"
        ),
        (
            ["CurlewRedis"], "func use(_ error: RedisError) { if case .tlsUnavailable = error {} }",
            "type 'RedisError' has no member 'tlsUnavailable'"
        ),
        (
            ["CurlewRedis"],
            "func use(_ address: RedisConfiguration.Address) -> Int { switch address { case .tcp: 1; case .unix: 2 } }",
            "switch must be exhaustive"
        ),
        (
            ["Curlew"],
            """
            struct Metered: Transport {
                func start(_ request: TransferRequest, id: Int, observer: any TransferObserver) {}
                func cancel(_ id: Int) {}
                func setSuspended(_ suspended: Bool, of id: Int) {}
                func resumeReceiving(_ id: Int) {}
                func openStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) {}
                func send(_ bytes: Data, endOfStream: Bool, on id: Int) {}
                func shutDown() {}
            }
            """, "type 'Metered' does not conform to protocol 'Transport'"
        ),
        (
            ["Curlew", "CurlewTesting"],
            "func use(_ mock: MockTransport, _ request: TransferRequest, _ observer: any TransferObserver) {"
                + " mock.start(request, id: 1, observer: observer) }", "value of type 'MockTransport' has no member 'start'"
        ),
        (
            ["Curlew"],
            """
            final class Opened: StreamTransferObserver {
                func streamDidOpen(_ id: Int) {}
                func stream(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction { .proceed }
                func stream(_ id: Int, didSend count: Int64) {}
                func streamDidEndReceiving(_ id: Int) {}
                func stream(_ id: Int, didComplete completion: TransferCompletion) {}
            }
            """, "type 'Opened' does not conform to protocol 'StreamTransferObserver'"
        ),
        (
            ["CurlewResilience"],
            """
            final class Published: SharedPolicyState {
                func tell(_ change: SharedChange) {}
                func subscribe(_ receive: @escaping @Sendable (SharedChange) -> Void) -> any AnyObject & Sendable { self }
            }
            """, "type 'Published' does not conform to protocol 'SharedPolicyState'"
        ),
        (
            ["CurlewResilience"], "func use(_ event: PolicyEvent) { if case .told = event.action {} }",
            "type 'PolicyEvent.Action' has no member 'told'"
        ),
        (
            ["CurlewOperations"], "func use(_ data: Data) -> Any? { XMLParserResponseSerializer().object(of: data, in: nil) }",
            "call can throw, but it is not marked with 'try' and the error is not handled"
        ),
        (
            ["Curlew"], "class MyRequest: DataRequest, @unchecked Sendable {}",
            "cannot inherit from non-open class 'DataRequest' outside of its defining module"
        ),
        (
            ["Curlew"], "final class Manager: SessionManager, @unchecked Sendable { var requests: [Int] = [] }",
            "overriding non-open property outside of its defining module"
        ),
        (
            ["CurlewAlamofire"], "final class Delegate: NSObject, URLSessionDataDelegate {}",
            "'URLSessionDataDelegate' is unavailable: Use SessionDelegate"
        ),
    ]

    /// Programs for 0.9 that compile with a warning, as the article has it.
    private static let deprecated = [
        (
            "Curlew", "func use(_ headers: HTTPHeaders) { _ = CacheStatus.list(in: headers) }",
            "'list(in:)' is deprecated: use the property cacheStatus of HTTPHeaders"
        ),
        (
            "Curlew", "func use(_ stream: StreamRequest) async throws { try await stream.end() }",
            "'end()' is deprecated: renamed to 'waitUntilCompleted()'"
        ),
        (
            "CurlewResilience", "func use(_ state: any SharedPolicyState, _ change: SharedChange) { state.tell(change) }",
            "'tell' is deprecated: renamed to 'publish(_:)'"
        ),
        (
            "CurlewResilience", "func use(_ limiter: inout RateLimiter) { limiter.longestHold = .seconds(1) }",
            "'longestHold' is deprecated: renamed to 'maximumHold'"
        ),
        (
            "CurlewRedis", "func use(_ configuration: inout RedisConfiguration) { configuration.longestBackoff = .seconds(1) }",
            "'longestBackoff' is deprecated: renamed to 'maximumBackoff'"
        ),
        (
            "CurlewRedis", "func limit(_ configuration: inout RedisConfiguration) { configuration.largestResponse = 1 }",
            "'largestResponse' is deprecated: renamed to 'maximumResponseSize'"
        ),
        (
            "CurlewRedis", "func use<Base>(_ authenticator: FleetAuthenticator<Base>) -> Duration { authenticator.longestWait }",
            "'longestWait' is deprecated: renamed to 'maximumWait'"
        ),
        (
            "CurlewRedis",
            """
            func use<Base>(_ base: Base, _ client: RedisClient) -> FleetAuthenticator<Base> {
                FleetAuthenticator(base, client: client, name: "a", longestWait: .zero)
            }
            """,
            "'init(_:client:name:lease:sealedWith:whenUnavailable:longestWait:refusalTime:isRefusal:)' is deprecated: replaced by "
                + "'init(_:client:name:lease:sealedWith:whenUnavailable:maximumWait:refusalTime:isRefusal:)'"
        ),
    ]

    @Test(.enabled(if: SwiftCompiler.isInstalled)) func `the compiler warns of each deprecated name as the article says`() async throws {
        let page = try Self.page()
        let files = Self.deprecated.enumerated().map { ("\($0).swift", "import \($1.0)\n\($1.1)") }
        let programs = Dictionary(uniqueKeysWithValues: files)
        #expect(try await SwiftCompiler.errors(in: programs, flags: ["-wmo"]) == [])
        let warnings = try await SwiftCompiler.errors(in: programs, flags: ["-wmo", "-warnings-as-errors"])
        #expect(warnings.count == Self.deprecated.count, "\(warnings)")
        for (number, (_, program, message)) in Self.deprecated.enumerated() {
            #expect(warnings.contains { $0.hasPrefix("\(number).swift:") && $0.contains(": \(message)") }, "\(program): \(warnings)")
            #expect(page.contains("`\(message)`"), "\(message)")
        }
        let rows = try #require(page.components(separatedBy: "## What is deprecated").last).prefix { $0 != "#" }.split(separator: "\n")
        #expect(rows.filter { $0.hasPrefix("| ") }.count == Self.deprecated.count + 2)
    }

    @Test(.enabled(if: SwiftCompiler.isInstalled)) func `the compiler names each change as the article says`() async throws {
        let page = try Self.page()
        let files = Self.programs.enumerated().map { number, each in
            ("\(number).swift", each.imports.map { "import \($0)\n" }.joined() + each.program)
        }
        let errors = try await SwiftCompiler.errors(in: Dictionary(uniqueKeysWithValues: files), flags: ["-wmo"])
        for (number, each) in Self.programs.enumerated() {
            let found = errors.filter { $0.hasPrefix("\(number).swift:") }
            #expect(found.contains { $0.contains(": \(each.message)") }, "\(each.program): \(found)")
            #expect(page.contains("`\(each.message)`"), "\(each.message)")
        }
        let messages = try #require(page.components(separatedBy: "## What no longer compiles").last)
            .prefix { $0 != "#" }.split(separator: "\n").filter { $0.hasPrefix("| ") }.dropFirst(2)
        #expect(messages.count == Self.programs.count - 1, "Each row has a program, that of RequestPriority two")
    }

    @Test(.enabled(if: SwiftCompiler.isInstalled)) func `what moved is found where it was`() async throws {
        let program = """
            import CurlewServices
            func use(_ link: WebLink, _ query: HTTPQuery, _ scheme: PaginationScheme<[Int]>, _ page: ServicePage<Int>, _ location: PageLocation) {
                _ = page.header
            }
            func pages<Request: ServiceRequest>(_ request: Request, _ api: some HTTPService) -> PageSequence<ServicePage<Request.Result>> {
                request.pages(from: api, by: .link())
            }
            """
        #expect(try await SwiftCompiler.errors(in: program) == [])
    }

    @Test func `the diff leads to the example`() throws {
        let diffs = try Self.page().components(separatedBy: "```diff\n").dropFirst().compactMap { $0.components(separatedBy: "```").first }
        #expect(diffs.count == 2)
        let example = try String(
            contentsOf: Self.root.appendingPathComponent("Examples/Sources/Services/Production.swift"), encoding: .utf8)
        for lines in diffs.map({ $0.split(separator: "\n") }) {
            let new = lines.filter { !$0.hasPrefix("-") }.map { $0.dropFirst() }.joined(separator: "\n")
            #expect(example.contains(new))
            #expect(lines.filter { $0.hasPrefix("-") }.allSatisfy { !example.contains($0.dropFirst()) })
        }
    }
}
