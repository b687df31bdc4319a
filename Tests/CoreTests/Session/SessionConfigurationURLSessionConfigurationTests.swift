// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct SessionConfigurationURLSessionConfigurationTests {
    private static func made(_ change: (URLSessionConfiguration) -> Void = { _ in }) -> SessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        change(configuration)
        return SessionConfiguration(configuration)
    }

    @Test("Foundation's defaults are converted") func defaults() {
        let foundation = URLSessionConfiguration.ephemeral
        let configuration = SessionConfiguration(foundation)
        #expect(configuration.headers.isEmpty)
        #expect(configuration.idleTimeout == .seconds(60))
        #expect(configuration.totalTimeout == .seconds(7 * 86_400))
        #expect(configuration.maximumConnectionsPerHost == 64)
        #expect(configuration.proxy == .environment)
        #expect(configuration.cachePolicy == .useProtocolCachePolicy)
        #expect(configuration.urlCache === foundation.urlCache)
        #expect(configuration.cookieStorage === foundation.httpCookieStorage)
        #expect(configuration.credentialStorage === foundation.urlCredentialStorage)
        #expect(configuration.cookieAcceptPolicy == .onlyFromMainDocumentDomain)
        #expect(configuration.sendsCookies && configuration.allowsCellularAccess)
        #expect(configuration.protocolClasses.isEmpty)
    }

    @Test("additional header fields of any type become strings") func headers() {
        let configuration = Self.made { $0.httpAdditionalHeaders = ["X-Number": 1, "A": "b", "X-Flag": true] }
        #expect(configuration.headers.dictionary == ["X-Number": "1", "A": "b", "X-Flag": "true"])
        #expect(configuration.headers.map(\.name) == ["A", "X-Flag", "X-Number"])
        #expect(configuration.httpAdditionalHeaders as? [String: String] == ["X-Number": "1", "A": "b", "X-Flag": "true"])
    }

    @Test(
        "timeouts are converted",
        arguments: [(5.0, 5.0), (0.5, 0.5), (0.0, 60.0), (-1.0, 60.0), (.nan, 60.0), (.infinity, .infinity), (1e300, .infinity)])
    func timeouts(_ given: Double, _ expected: Double) {
        let configuration = Self.made {
            $0.timeoutIntervalForRequest = given
            $0.timeoutIntervalForResource = given
        }
        #expect(configuration.timeoutIntervalForRequest == expected)
        #expect(configuration.timeoutIntervalForResource == (expected == 60 ? .infinity : expected))
    }

    @Test("policies, storages and limits are converted, and have Foundation's names") func policies() {
        let storage = URLSessionConfiguration.ephemeral.httpCookieStorage
        let configuration = Self.made {
            $0.requestCachePolicy = .returnCacheDataElseLoad
            $0.httpCookieAcceptPolicy = .never
            $0.httpShouldSetCookies = false
            $0.allowsCellularAccess = false
            $0.httpMaximumConnectionsPerHost = 3
            $0.httpCookieStorage = storage
            $0.urlCache = nil
            $0.urlCredentialStorage = nil
        }
        #expect(configuration.cachePolicy == .returnCacheDataElseLoad)
        #expect(configuration.requestCachePolicy == .returnCacheDataElseLoad)
        #expect(configuration.httpCookieAcceptPolicy == .never)
        #expect(!configuration.httpShouldSetCookies)
        #expect(!configuration.allowsCellularAccess)
        #expect(configuration.httpMaximumConnectionsPerHost == 3)
        #expect(configuration.httpCookieStorage === storage)
        #expect(configuration.urlCache == nil && configuration.urlCredentialStorage == nil)
    }

    @Test("every cache policy has a counterpart", arguments: CachePolicy.allCases)
    func cachePolicies(_ policy: CachePolicy) throws {
        #expect(CachePolicy(policy.foundation) == policy)
        #expect(Set(CachePolicy.allCases.map(\.foundation)).count == 6)
    }

    @Test("proxies are read from CFNetwork's keys or constant names")
    func proxies() {
        func policy(_ dictionary: [AnyHashable: Any]) -> ProxyPolicy {
            Self.made { $0.connectionProxyDictionary = dictionary }.proxy
        }
        #expect(policy([:]) == .none)
        #expect(policy(["HTTPEnable": 1, "HTTPProxy": "p", "HTTPPort": 8080]) == .schemes(http: "http://p:8080", https: nil))
        #expect(policy(["HTTPEnable": true, "HTTPProxy": "p"]) == .schemes(http: "http://p", https: nil))
        #expect(policy(["HTTPEnable": 0, "HTTPProxy": "p", "HTTPPort": 8080]) == .none)
        #expect(policy(["HTTPEnable": NSNumber(value: 0), "HTTPProxy": "p"]) == .none)
        #expect(policy(["HTTPSEnable": 1, "HTTPSProxy": "::1", "HTTPSPort": 1]) == .schemes(http: nil, https: "http://[::1]:1"))
        #expect(
            policy(["SOCKSEnable": 1, "SOCKSProxy": "s", "SOCKSPort": 1080, "HTTPEnable": 1, "HTTPProxy": "p", "HTTPPort": 80])
                == .schemes(http: "http://p:80", https: "socks5h://s:1080"))
        #expect(
            policy([
                "kCFNetworkProxiesHTTPEnable": 1, "kCFNetworkProxiesHTTPProxy": "p", "kCFNetworkProxiesHTTPPort": "3128",
                "kCFNetworkProxiesExceptionsList": ["*.local", "example.org"], "kCFProxyUsernameKey": "us er",
                "kCFProxyPasswordKey": "p@ss",
            ]) == .schemes(http: "http://us%20er:p%40ss@p:3128", https: nil, except: ["*.local", "example.org"]))
        #expect(
            policy(["kCFStreamPropertyHTTPSProxyHost": "p", "kCFStreamPropertyHTTPSProxyPort": 443])
                == .schemes(http: nil, https: "http://p:443"))
    }

    @Test("a request's own timeout overrides the session's, unless it is Foundation's default") func requestTimeout() throws {
        let configuration = Self.made { $0.timeoutIntervalForRequest = 10 }
        var request = try URLRequest(url: "http://mock/", method: .get)
        #expect(
            try TransferRequest(request, given: nil, body: nil, in: Session(configuration: configuration, delegate: SessionDelegate()))
                .options.idleTimeout == .seconds(10))
        request.timeoutInterval = 20
        #expect(
            try TransferRequest(request, given: nil, body: nil, in: Session(configuration: configuration, delegate: SessionDelegate()))
                .options.idleTimeout == .seconds(20))
    }

    @Test("cookie, cache and cellular settings survive the conversion to a transfer and back") func transferRequest() throws {
        var request = try URLRequest(url: "http://mock/", method: .get)
        request.cachePolicy = .reloadIgnoringLocalCacheData
        request.httpShouldHandleCookies = false
        request.allowsCellularAccess = false
        request.mainDocumentURL = URL(string: "http://document/")
        var configuration = SessionConfiguration()
        configuration.interfaces = SystemInterfaces(directory: "/nowhere")
        let transfer = try TransferRequest(
            request, given: nil, body: nil, in: Session(configuration: configuration, delegate: SessionDelegate()))
        #expect(transfer.cachePolicy == .reloadIgnoringLocalCacheData)
        #expect(!transfer.handlesCookies && !transfer.allowsCellularAccess)
        #expect(transfer.mainDocumentURL == "http://document/")
        #expect(transfer.urlRequest?.cachePolicy == .reloadIgnoringLocalCacheData)
        #expect(transfer.urlRequest?.httpShouldHandleCookies == false)
        #expect(transfer.urlRequest?.allowsCellularAccess == false)
        #expect(transfer.urlRequest?.mainDocumentURL == URL(string: "http://document/"))
    }

    @Test("a manager accepts only a session that was made for its delegate") func sessions() {
        let delegate = SessionDelegate()
        let session = Session(configuration: SessionConfiguration(URLSessionConfiguration.ephemeral), delegate: delegate)
        #expect(SessionManager(session: session, delegate: SessionDelegate()) == nil)
        let manager = SessionManager(session: session, delegate: delegate)
        #expect(manager != nil)
        #expect(manager?.session === session)
        #expect(SessionManager(session: session, delegate: delegate) == nil)
        manager?.invalidateAndCancel()
        let other = SessionDelegate()
        let ended = Session(delegate: other)
        ended.invalidateAndCancel()
        #expect(SessionManager(session: ended, delegate: other) == nil)
    }

    @Test("a manager uses the settings of Foundation's configuration") func manager() {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = ["X": "y"]
        let manager = SessionManager(configuration: configuration)
        #expect(manager.session.configuration.headers == ["X": "y"])
        #expect(manager.session.cookies != nil)
        #expect(SessionManager().session.cookies == nil)
        #expect(SessionManager(configuration: .default).session.configuration.cookieStorage === HTTPCookieStorage.shared)
    }
}
