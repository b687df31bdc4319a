// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Testing

/// Programs as they are written for Apple's platforms.
@Suite(.timeLimit(.minutes(2)), .enabled(if: SwiftCompiler.isInstalled)) struct URLProtocolSourceTests {
    private static let mock = """
        final class MockURLProtocol: URLProtocol, @unchecked Sendable {
            nonisolated(unsafe) static var handler: ((URLRequest) throws -> (HTTPURLResponse, Data?))?
            override class func canInit(with request: URLRequest) -> Bool {
                URLProtocol.property(forKey: "Handled", in: request) == nil
            }
            override class func canInit(with task: URLSessionTask) -> Bool {
                guard let request = task.currentRequest else { return false }
                return canInit(with: request)
            }
            override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
            override class func requestIsCacheEquivalent(_ a: URLRequest, to b: URLRequest) -> Bool {
                super.requestIsCacheEquivalent(a, to: b)
            }
            override func startLoading() {
                let mutable = (request as NSURLRequest).mutableCopy() as! NSMutableURLRequest
                URLProtocol.setProperty(true, forKey: "Handled", in: mutable)
                URLProtocol.removeProperty(forKey: "Handled", in: mutable)
                let task: URLSessionTask? = task
                _ = (task?.currentRequest, cachedResponse)
                do {
                    guard let (response, data) = try Self.handler?(request) else { return }
                    client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
                    if let data { client?.urlProtocol(self, didLoad: data) }
                    client?.urlProtocol(self, wasRedirectedTo: request, redirectResponse: response)
                    client?.urlProtocolDidFinishLoading(self)
                } catch {
                    client?.urlProtocol(self, didFailWithError: error)
                }
            }
            override func stopLoading() {}
            convenience init(task: URLSessionTask, cachedResponse: CachedURLResponse?, client: URLProtocolClient?) {
                self.init(request: task.currentRequest!, cachedResponse: cachedResponse, client: client)
            }
        }
        final class Client: NSObject, URLProtocolClient, @unchecked Sendable {
            func urlProtocol(_ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse) {}
            func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {}
            func urlProtocol(
                _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy
            ) {}
            func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) {}
            func urlProtocolDidFinishLoading(_ protocol: URLProtocol) {}
            func urlProtocol(_ protocol: URLProtocol, didFailWithError error: Error) {}
            func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {}
            func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {}
        }
        func use(_ session: URLSession, _ request: URLRequest) async {
            URLProtocol.registerClass(MockURLProtocol.self)
            let registered: Bool = URLProtocol.registerClass(MockURLProtocol.self)
            URLProtocol.unregisterClass(MockURLProtocol.self)
            let configuration = URLSessionConfiguration.ephemeral
            configuration.protocolClasses = [MockURLProtocol.self] + (configuration.protocolClasses ?? [])
            configuration.protocolClasses?.insert(MockURLProtocol.self, at: 0)
            let task = session.dataTask(with: request)
            _ = (MockURLProtocol.canInit(with: task), MockURLProtocol.canInit(with: request), registered)
            _ = MockURLProtocol(task: task, cachedResponse: nil, client: Client()).task
            let cache = URLCache.shared
            cache.getCachedResponse(for: task) { response in _ = response.map { cache.storeCachedResponse($0, for: task) } }
            _ = await cache.cachedResponse(for: task)
            _ = cache.cachedResponse(for: request)
            cache.removeCachedResponse(for: task)
            let cookies = HTTPCookieStorage.shared
            cookies.getCookiesFor(task) { cookies.storeCookies($0 ?? [], for: task) }
            _ = await cookies.cookies(for: task)
            _ = request.url.map { cookies.cookies(for: $0) }
        }
        """

    // U1.3, U1.5
    @Test(arguments: [5, 6]) func `a class for Apple's platforms compiles unchanged`(_ version: Int) async throws {
        #expect(try await SwiftCompiler.errors(in: "import CurlewURLSession\n" + Self.mock, version: version) == [])
    }

    @Test(arguments: [5, 6]) func `an initializer that a class overrides has to be declared required`(_ version: Int) async throws {
        let program = """
            import CurlewURLSession
            class Loader: URLProtocol {
                override init(request: URLRequest, cachedResponse: CachedURLResponse?, client: URLProtocolClient?) {
                    super.init(request: request, cachedResponse: cachedResponse, client: client)
                }
            }
            class Required: URLProtocol {
                required init(request: URLRequest, cachedResponse: CachedURLResponse?, client: URLProtocolClient?) {
                    super.init(request: request, cachedResponse: cachedResponse, client: client)
                }
            }
            """
        let errors = try await SwiftCompiler.errors(in: program, version: version)
        #expect(errors == ["3: use the 'required' modifier to override a required initializer"])
    }

    // U1.2
    @Test(arguments: [5, 6]) func `the products for tests and archives can be imported beside it`(_ version: Int) async throws {
        let program = """
            import Curlew
            import CurlewHAR
            import CurlewTesting
            import CurlewURLSession
            \(Self.mock)
            func mocked() -> URLSession { URLSession(mock: .text("x"), configuration: .ephemeral, delegate: nil, delegateQueue: nil) }
            func onTransport(_ mock: MockTransport) -> [URLSession] { [URLSession(mock: mock), URLSession(transport: mock)] }
            """
        #expect(try await SwiftCompiler.errors(in: program, version: version) == [])
    }

    @Test(arguments: [5, 6]) func `CurlewTesting brings no names that are ambiguous with Foundation's`(_ version: Int) async throws {
        let program = """
            import CurlewTesting
            import Foundation
            import FoundationNetworking
            final class Loader: URLProtocol { override func startLoading() {} }
            extension URLSession { func load(_ task: URLSessionTask, _ configuration: URLSessionConfiguration) {} }
            func mocked() -> URLSession { URLSession(configuration: .ephemeral) }
            """
        #expect(try await SwiftCompiler.errors(in: program, version: version) == [])
    }
}
