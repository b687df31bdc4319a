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
            ("tls.minimumVersion = .tls12", "type 'TLSOptions.Version' has no member 'tls12'"),
            ("tls.minimum = .v1_2", "value of type 'TLSOptions' has no member 'minimum'"),
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

    /// What readers of other clients' documents write first, and the beginning of the message.
    private static let otherNames = [
        ("configuration.timeout = .seconds(3)", "'timeout' is unavailable: use idleTimeout, totalTimeout or connectTimeout"),
        (
            "configuration.interceptor = RetryPolicy()",
            "'interceptor' is unavailable: pass it to SessionManager(configuration:interceptor:)"
        ),
        (
            "manager.request(url, timeout: .seconds(3))",
            "'request(_:method:parameters:headers:timeout:)' is unavailable: use request(_:options:)"
        ),
        ("_ = RequestOptions(timeout: .seconds(3))", "'init(timeout:)' is unavailable: use deadline: for all attempts"),
        (
            "manager.request(url, requestModifier: { $0.timeoutInterval = 5 })",
            "'request(_:method:parameters:encoding:headers:interceptor:requestModifier:)' is unavailable: use options:"
        ),
        ("manager.request(url).validate().retry(3)", "'retry' is unavailable: pass a RetryPolicy(retryLimit:) as the interceptor:"),
        ("manager.request(url).timeout(.seconds(3))", "'timeout' is unavailable: pass RequestOptions(deadline:)"),
        ("_ = try await manager.request(url).value", "'value' is unavailable: use serializingDecodable(_:).value"),
        ("let user: [String: Int] = try await manager.request(url).json()", "'json' is unavailable: use serializingDecodable(_:).value"),
        ("_ = try await manager.request(url).text()", "'text()' is unavailable: use serializingString().value"),
        ("_ = manager.get(url)", "'get(_:headers:)' is unavailable: use request(_:)"),
        ("_ = try await manager.execute(url, timeout: 5)", "'execute(_:timeout:)' is unavailable: use request(_:options:)"),
        ("_ = AF.request(url)", "'AF' has been renamed to 'SessionManager.default'"),
        ("_ = Session.default.request(url)", "'default' has been renamed to 'SessionManager.default'"),
        (
            "_ = Session(interceptor: RetryPolicy())",
            "'init(configuration:interceptor:)' has been replaced by 'SessionManager.init(configuration:interceptor:)'"
        ),
        ("headers.add(name: \"A\", value: \"b\")", "'add(name:value:)' is unavailable: use update(name:value:)"),
        ("urlRequest.headers.update(.accept(\"*\"))", "'headers' is unavailable: use setValue(_:forHTTPHeaderField:), or a HeaderAdapter"),
        ("await manager.shutdown()", "missing argument for parameter 'gracePeriod' in call"),
    ]

    @Test func `what other clients call things does not compile, and the message says what to write`() async throws {
        let parameters = "_ manager: SessionManager, _ url: String, _ configuration: inout SessionConfiguration"
        let head = """
            import Curlew
            func call(\(parameters), _ headers: inout HTTPHeaders, _ urlRequest: inout URLRequest) async throws {
            """
        let lines = [head] + Self.otherNames.map { $0.0 } + ["}"]
        let errors = try await SwiftCompiler.errors(in: lines.joined(separator: "\n"))
        for (number, (call, message)) in Self.otherNames.enumerated() {
            let found = errors.filter { $0.hasPrefix("\(number + 3): ") }
            #expect(found.contains { $0.hasPrefix("\(number + 3): \(message)") }, "\(call): \(found)")
        }
    }

    @Test func `calls of Alamofire 5 compile where Curlew has the same names`() async throws {
        let program = """
            import Curlew
            struct User: Codable, Sendable { let id: Int }
            func call(_ url: String, _ user: User) async throws {
                let manager = SessionManager(interceptor: RetryPolicy(retryLimit: 3))
                let value = try await manager.request(url).validate(statusCode: 200..<300).serializingDecodable(User.self).value
                let response = await manager.request(url, interceptor: .retryPolicy).serializingDecodable(User.self).response
                _ = (value, response.value, response.error, response.result, response.response?.statusCode)
                _ = await manager.request(url, interceptor: .retryPolicy(retryLimit: 5)).serializingString().result
                let headers: HTTPHeaders = [.authorization(bearerToken: "token"), .accept("application/json")]
                manager.request(url, method: .post, parameters: user, encoder: .json, headers: headers).responseDecodable(of: User.self) { _ in }
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

    @Test func `a running request's parts can't be exchanged`() async throws {
        let program = """
            import Curlew
            func exchange(_ manager: SessionManager, _ request: DataRequest, _ other: SessionTask) {
                manager.delegate[other] = nil
                request.delegate.transfer(1, didReceive: ResponseHead(statusCode: 200))
                let observer: any TransferObserver = request.delegate
                request.delegate.data = nil
            }
            """
        let errors = try await SwiftCompiler.errors(in: program)
        #expect(
            errors == [
                "3: cannot assign through subscript: subscript setter is inaccessible",
                "4: value of type 'TaskDelegate' has no member 'transfer'",
                "5: value of type 'TaskDelegate' does not conform to specified type 'TransferObserver'",
                "6: cannot assign to property: 'data' is a get-only property",
            ])
    }

    @Test func `a delegate of Foundation's sessions whose methods would never be called is an error beside CurlewAlamofire`() async throws {
        func program(_ module: String) -> String {
            """
            import CurlewAlamofire
            final class Trust: NSObject, URLSessionDelegate {
                func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {}
            }
            final class Own: NSObject, \(module)URLSessionDataDelegate {
                func urlSession(_ session: URLSession, dataTask: \(module)URLSessionDataTask, didReceive data: Data) {}
                func urlSession(_ session: URLSession, task: \(module)URLSessionTask, didCompleteWithError error: (any Error)?) {}
            }
            """
        }
        let message = "'URLSessionDataDelegate' is unavailable: Use SessionDelegate, or FoundationNetworking.URLSessionDataDelegate"
        let errors = try await SwiftCompiler.errors(in: program(""))
        #expect(errors.count == 1 && errors.first?.hasPrefix("5: \(message)") == true, "\(errors)")
        #expect(try await SwiftCompiler.errors(in: program("FoundationNetworking.")) == [])
        #expect(try await SwiftCompiler.errors(in: "import FoundationNetworking\n" + program("FoundationNetworking.")) == [])
    }

    @Test func `what only programs for Alamofire 4 need is not in Curlew`() async throws {
        let program = """
            func old(_ manager: SessionManager, _ timeline: Timeline) {
                _ = Notification.Name.Task.DidComplete
                manager.backgroundCompletionHandler = nil
                manager.delegate.sessionDidFinishEventsForBackgroundURLSession = nil
            }
            """
        let errors = try await SwiftCompiler.errors(in: "import Curlew\n" + program)
        #expect(errors.map { $0.prefix { $0 != ":" } } == ["3", "4", "5"], "\(errors)")
        #expect(try await SwiftCompiler.errors(in: "import CurlewAlamofire\n" + program) == [])
    }

    /// RELEASING.md lists the names that two products share.
    @Test(arguments: ["Curlew", "CurlewServices", "CurlewOperations", "CurlewResilience", "CurlewHAR"])
    func `members of CurlewAlamofire are ambiguous beside a product that shows the core`(product: String) async throws {
        let program = """
            func load(_ request: DataRequest) {
                request.responseData { _ in }
            }
            """
        let errors = try await SwiftCompiler.errors(in: "import CurlewAlamofire\nimport \(product)\n" + program)
        #expect(errors.contains { $0.hasPrefix("4: ambiguous use of 'responseData") }, "\(errors)")
        #expect(try await SwiftCompiler.errors(in: "import CurlewAlamofire\nimport CurlewEvents\n" + program) == [])
    }
}
