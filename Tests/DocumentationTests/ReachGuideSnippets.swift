// SPDX-License-Identifier: Apache-2.0
import Curlew
import Foundation

// The code of Reach.md, region by region, as in `CachingGuideSnippets`. `ReachGuideTests` checks that, and runs the code.

/// The service discovery of the guide's example.
struct GuideRegistry: Sendable {
    var known: [String: [String]] = [:]

    func addresses(of host: String, port: Int) async throws -> [String] { known[host] ?? [] }
}

enum ReachGuideSnippets {
    static func proxies(_ configuration: inout SessionConfiguration) {
        // snippet: proxies
        configuration.proxy = .url("socks5h://name:pass%20word@proxy.example.org:1080", except: ["localhost", "10.0.0.0/8"])
        configuration.proxy = .schemes(http: nil, https: "http://proxy.example.org:3128")
        configuration.proxy = .none
        // end
    }

    static func docker() async throws -> String {
        // snippet: docker
        var configuration = SessionConfiguration()
        configuration.unixSocketPath = "/var/run/docker.sock"
        let manager = SessionManager(configuration: configuration)
        let version = try await manager.request("http://docker/version").serializingString().value
        // end
        return version
    }

    static func sidecar(_ manager: SessionManager, _ path: String) async -> DataResponse<String> {
        // snippet: sidecar
        var options = RequestOptions()
        options.unixSocketPath = path
        let response = await manager.request("http://sidecar/health", options: options).serializingString().response
        // end
        return response
    }

    static func names(_ configuration: inout SessionConfiguration, _ registry: GuideRegistry) {
        // snippet: names
        configuration.resolve["api.example.org:443"] = ["10.0.0.7", "10.0.0.8"]
        configuration.connectTo["www.example.org"] = "canary.example.org:8443"
        configuration.resolver = HostResolver { host, port in
            try await registry.addresses(of: host, port: port)
        }
        // end
    }

    static func doh(_ configuration: inout SessionConfiguration) {
        // snippet: doh
        configuration.dohURL = "https://192.0.2.53/dns-query"
        // end
    }

    static func connections(_ configuration: inout SessionConfiguration) {
        // snippet: connections
        configuration.socket.keepAlive = .init(idle: .seconds(30), interval: .seconds(10), count: 3)
        configuration.socket.dscp = 46
        configuration.localPorts = 40_000...49_999
        configuration.ipVersion = .v4
        configuration.connectionAttemptDelay = .milliseconds(100)
        // end
    }

    static func authorities(_ configuration: inout SessionConfiguration, _ file: URL) throws {
        // snippet: authorities
        configuration.tls.additionalAuthorities = try CertificateAuthorities(contentsOf: file)
        // end
    }

    static func http3(_ configuration: inout SessionConfiguration) {
        // snippet: http3
        configuration.httpVersion = .http3
        // end
    }

    static func alternatives(_ configuration: inout SessionConfiguration, _ file: URL) throws {
        // snippet: alternatives
        configuration.alternativeServices = try AlternativeServices(file: file)
        // end
    }
}
