// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Testing

/// `import CurlewURLSession` gives Curlew's types beside every product, and `import Curlew` leaves Foundation's alone.
@Suite(.timeLimit(.minutes(5)), .enabled(if: SwiftCompiler.isInstalled)) struct URLSessionImportTests {
    /// The products that can be imported in one file with `CurlewURLSession`: all but `CurlewAlamofire`, which has types of the same names.
    private static let products = [
        "Curlew", "CurlewRequests", "CurlewOperations", "CurlewServices", "CurlewWebSocket", "CurlewEvents", "CurlewDownloads",
        "CurlewCaching", "CurlewJSON", "CurlewLifecycle", "CurlewHTTPTypes", "CurlewResilience", "CurlewHAR", "CurlewObservability",
        "CurlewRedis", "CurlewSigning", "CurlewAuth", "CurlewTesting", "CurlewUploads", "CurlewGraphQL",
    ]

    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..")
        .standardizedFileURL

    static let modes = [5, 6]
    static let flags = [[], ["-enable-upcoming-feature", "MemberImportVisibility"]]

    /// The types in each place where a name can stand. Only Curlew's session has `curlew`.
    private static let uses = """
        open class CountingSession: URLSession, @unchecked Sendable {
            public func count(_ task: URLSessionTask) -> Int64 { task.countOfBytesReceived }
        }
        extension URLSession {
            func named(_ name: String) -> URLSession {
                sessionDescription = name
                return self
            }
        }
        extension URLSessionConfiguration {
            static var quick: URLSessionConfiguration {
                let configuration = URLSessionConfiguration.ephemeral
                configuration.timeoutIntervalForRequest = 5
                return configuration
            }
        }
        final class Delegate: NSObject, URLSessionDelegate, URLSessionTaskDelegate, URLSessionDataDelegate, URLSessionDownloadDelegate {
            func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {}
            func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {}
            func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {}
        }
        final class Answers: URLProtocol {}
        struct Client {
            var session: URLSession
            var tasks: [Int: URLSessionDataTask] = [:]
            var uploads: [URLSessionUploadTask]?
            var kind: URLSessionDownloadTask.Type
            let make: (URLSessionConfiguration, (any URLSessionDelegate)?) -> URLSession

            func response(to request: URLRequest) async throws -> (Data, HTTPURLResponse?) {
                let (data, response) = try await session.data(for: request)
                return (data, response as? HTTPURLResponse)
            }
        }
        func use(_ url: URL) {
            let session = URLSession(configuration: .quick, delegate: Delegate(), delegateQueue: nil)
            let task = URLSession.shared.dataTask(with: url) { data, response, error in _ = (data, response, error) }
            let same: (URLSession) -> Bool = { $0 === session }
            _ = (session.curlew, task.originalRequest?.url, same, URLSessionTask.State.running, task is URLSessionUploadTask)
            _ = URLSession.AuthChallengeDisposition.useCredential
        }
        """

    @Test func `each product is tried beside it`() throws {
        let manifest = try String(contentsOf: Self.root.appendingPathComponent("Package.swift"), encoding: .utf8)
        let found = manifest.matches(of: /\.library\(name: "(\w+)"/).map { String($0.output.1) }
        #expect(Set(found) == Set(Self.products + ["CurlewURLSession", "CurlewAlamofire"]), "Add what is new to Self.products")
    }

    // U1.1, U1.2
    @Test(arguments: modes, flags) func `one file uses it beside all other products`(mode: Int, flags: [String]) async throws {
        for imports in [["CurlewURLSession"] + Self.products, Self.products.reversed() + ["CurlewURLSession"]] {
            // MemberImportVisibility wants what is used to be imported by name: `curlew` is a manager of Core.
            let program = (["CurlewCore", "Foundation"] + imports).map { "import \($0)\n" }.joined() + Self.uses
            #expect(try await SwiftCompiler.errors(in: program, version: mode, flags: flags) == [])
        }
    }

    // U1.1
    @Test(arguments: modes) func `one import replaces that of FoundationNetworking`(mode: Int) async throws {
        let program = "import Foundation\nimport CurlewURLSession\n" + Self.uses
        #expect(try await SwiftCompiler.errors(in: program, version: mode) == [])
        // Nothing but a name that both have would do without the replacement.
        let foundation = try await SwiftCompiler.errors(in: "import Foundation\nimport FoundationNetworking\n" + Self.uses, version: mode)
        #expect(foundation.contains { $0.hasSuffix("value of type 'URLSession' has no member 'curlew'") }, "\(foundation)")
    }

    // U1.1: one file re-exports it, and no other imports anything.
    @Test(arguments: modes) func `a module re-exports it in one file for all others`(mode: Int) async throws {
        let files = ["a.swift": "@_exported import CurlewURLSession", "b.swift": "import Foundation\n" + Self.uses]
        #expect(try await SwiftCompiler.errors(in: files, version: mode) == [])
    }

    // U1.2
    @Test(arguments: modes, flags) func `the session beside Curlew is Foundation's`(mode: Int, flags: [String]) async throws {
        let uses = """
            import Foundation
            final class Delegate: NSObject, URLSessionDataDelegate {
                func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {}
            }
            extension URLSession { func fetch(_ url: URL) -> URLSessionDataTask { dataTask(with: url) } }
            final class Answers: URLProtocol {
                override class func canInit(with request: URLRequest) -> Bool { true }
            }
            func use(_ manager: SessionManager, _ session: URLSession, _ request: URLRequest) async throws -> FoundationNetworking.URLSession {
                _ = manager.request(request)
                _ = try await session.data(for: request)
                return URLSession(configuration: URLSessionConfiguration.default)
            }
            """
        for imports in ["import Curlew\nimport FoundationNetworking\n", "import FoundationNetworking\nimport Curlew\n"] {
            // The manager's members are Core's.
            #expect(try await SwiftCompiler.errors(in: "import CurlewCore\n" + imports + uses, version: mode, flags: flags) == [])
        }
    }

    // U1.2
    @Test func `Curlew shows what of FoundationNetworking has no session in it, and nothing else`() async throws {
        let types = ["swift.class", "swift.struct", "swift.enum", "swift.protocol"]
        let symbols = try await SwiftCompiler.symbols(of: "FoundationNetworking").filter { $0.path.count == 1 }
        let names = Set(symbols.map { $0.path[0] }).sorted()
        // One use a line: the errors tell which names are not found.
        let program = names.map { name in
            let kinds = symbols.filter { $0.path == [name] }.map(\.kind)
            return kinds.allSatisfy { types.contains($0) } ? "typealias \(name)_ = \(name)" : "let \(name)_ = \(name)"
        }
        let errors = try await SwiftCompiler.errors(in: ["a.swift": (["import Curlew"] + program).joined(separator: "\n")])
        let hidden = Set(errors.compactMap { Int($0.split(separator: ":")[1]) }.map { names[$0 - 2] })
        // Foundation has the names of some classes without a class, for the message.
        #expect(
            errors.allSatisfy { $0.contains("in scope") || $0.contains("This type has moved to the FoundationNetworking") }, "\(errors)")
        let withSessions = names.filter { $0.hasPrefix("URLSession") || $0.hasPrefix("URLProtocol") }
        #expect(withSessions.count > 15)
        #expect(hidden == Set(withSessions))
    }

    // U1.2
    @Test(arguments: modes) func `a file that keeps both imports names the declarations`(mode: Int) async throws {
        let names = ["URLSession", "URLSessionConfiguration", "URLSessionDataTask", "URLSessionTask"].map {
            "import class CurlewURLSession.\($0)"
        }
        let uses = """
            import Foundation
            import protocol CurlewURLSession.URLSessionTaskDelegate
            open class OwnSession: URLSession, @unchecked Sendable {}
            extension URLSession { func isShared() -> Bool { self === URLSession.shared } }
            final class Delegate: NSObject, URLSessionTaskDelegate {
                func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {}
            }
            func use(_ session: URLSession, _ url: URL) -> URLSessionDataTask {
                _ = (session.curlew, URLSession(configuration: URLSessionConfiguration.default))
                return session.dataTask(with: URLRequest(url: url))
            }
            """
        for imports in [names + ["import FoundationNetworking"], ["import FoundationNetworking"] + names] {
            #expect(try await SwiftCompiler.errors(in: imports.joined(separator: "\n") + "\n" + uses, version: mode) == [])
        }
    }

    // U1.2
    @Test(arguments: modes) func `a file of aliases lets the others of a module keep both imports`(mode: Int) async throws {
        for access in ["--aliases", "--aliases=public"] {
            let script = Self.root.appendingPathComponent("scripts/urlsession-imports").path
            let directory = try TemporaryDirectory()
            let (status, _) = try await ChildProcess(script, [directory.url.path, access]).finish()
            #expect(status == 0)
            let aliases = try String(contentsOf: directory.file("URLSessionAliases.swift"), encoding: .utf8)
            let uses =
                access == "--aliases" ? Self.uses.replacing("open class", with: "class").replacing("public func", with: "func") : Self.uses
            for imports in [["FoundationNetworking", "CurlewURLSession"], ["CurlewURLSession", "FoundationNetworking"]] {
                var files = ["b.swift": (["Foundation"] + imports).map { "import \($0)\n" }.joined() + uses]
                // One that imports Foundation's only has the names, too.
                files["c.swift"] =
                    "import FoundationNetworking\nlet session: URLSession = URLSession.shared\nlet request: URLRequest? = nil"
                let ambiguous = try await SwiftCompiler.errors(in: files, version: mode)
                #expect(ambiguous.contains { $0.contains("'URLSession' is ambiguous") }, "\(ambiguous)")
                files["a.swift"] = aliases
                #expect(try await SwiftCompiler.errors(in: files, version: mode) == [])
            }
        }
    }
}
