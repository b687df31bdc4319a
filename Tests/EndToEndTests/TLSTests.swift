// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTransport
import Testing

@Suite(.timeLimit(.minutes(2)), .needsNginx) struct TLSTests {
    private let nginx: Servers.Nginx

    init() throws {
        nginx = try Servers.nginx()
    }

    @Test("an authority from a file") func authorityFile() async throws {
        let manager = makeManager { $0.tls.certificateAuthorityFile = nginx.authorities }
        let response = await manager.request(nginx.tls + "/1k.bin").validate().serializingData().response
        #expect(response.value?.count == 1024)
    }

    @Test("the environment names authorities, unless they are not wanted, or the program names others")
    func environmentAuthorities() async throws {
        let directory = try TemporaryDirectory()
        let authorities = try (first: CertificateAuthority(name: "First"), second: CertificateAuthority(name: "Second"))
        let server = try LoopbackServer(tls: ServerTLS(try authorities.first.issue())) { _, _ in .ok("ok") }
        let first = try directory.write(authorities.first.certificate, to: "first.pem").path
        let second = try directory.write(authorities.second.certificate, to: "second.pem").path
        let (_, hash) = try await ChildProcess("openssl", "x509", "-hash", "-noout", "-in", first).finish()
        let hashed = directory.file("hashed")
        try FileManager.default.createDirectory(at: hashed, withIntermediateDirectories: false)
        try authorities.first.certificate.write(to: hashed.appendingPathComponent("\(hash.first ?? "").0"))
        let cases: [(environment: [String: String], isTrusted: Bool)] = [
            (["SSL_CERT_FILE": first], true), (["SSL_CERT_FILE": second], false),
            (["SSL_CERT_FILE": first, "CURL_CA_BUNDLE": second], false),
            (["CURL_CA_BUNDLE": first, "SSL_CERT_FILE": "/none"], true), (["SSL_CERT_DIR": hashed.path], true),
            (["SSL_CERT_DIR": hashed.path, "SSL_CERT_FILE": second], true), (["SSL_CERT_FILE": "/none"], false),
            (["SSL_CERT_FILE": first, "CURLEW_PROBE_ENVIRONMENT": "0"], false),
            (["SSL_CERT_FILE": first, "CURLEW_TEST_CA": second], false), (["SSL_CERT_FILE": ""], false),
        ]
        for (index, (environment, isTrusted)) in cases.enumerated() {
            let file = directory.file("\(index)").path
            let none = ["CURLEW_TEST_CA": "", "CURL_CA_BUNDLE": "", "SSL_CERT_DIR": "", "SSL_CERT_FILE": ""]
            let variables = none.merging(environment) { $1 }
            let report = try await Probe.run("download", server.url("/"), file, environment: variables)
            #expect((report.status == 0) == isTrusted, "\(environment)")
        }
        #expect(server.requestCount == cases.count { $0.isTrusted })
    }

    @Test("an authority from memory") func authorityData() async throws {
        let authorities = try Data(contentsOf: URL(fileURLWithPath: nginx.authorities))
        let manager = makeManager { $0.tls.certificateAuthorities = authorities }
        for _ in 0..<2 {
            let response = await manager.request(nginx.tlsHTTP1 + "/1k.bin").validate().serializingData().response
            #expect(response.value?.count == 1024)
        }
        // The certificate is valid only for the name.
        let byAddress = nginx.tls.replacing("localhost", with: "127.0.0.1")
        let response = await manager.request(byAddress + "/1k.bin").validate().serializingData().response
        #expect(response.error?.transferFailure?.kind == .serverCertificate)
    }

    @Test("an untrusted server receives nothing of the request") func untrusted() async throws {
        let manager = makeManager()
        let response = await manager.upload(Data(count: 1000), to: nginx.tls + "/upload", headers: ["Authorization": "Bearer secret"])
            .serializingData().response
        let failure = try #require(response.error?.transferFailure)
        #expect(failure.kind == .serverCertificate)
        #expect(failure.phase == .securing)
        #expect(!failure.requestWasSent)
        #expect((response.error as? CurlewError)?.urlError?.code == .serverCertificateUntrusted)
        let metrics = try #require(response.metrics.last)
        #expect(metrics.requestHeaderBytes == 0)
        #expect(metrics.requestBodyBytes == 0)
    }

    @Test("a server certified by another authority is not trusted", .enabled(if: TLSRedirector.isAvailable))
    func otherAuthority() async throws {
        let other = try await TLSRedirector(to: "/")
        let manager = makeManager { $0.tls.certificateAuthorityFile = nginx.authorities }
        let response = await manager.request(other.url).serializingData().response
        #expect(response.error?.transferFailure?.kind == .serverCertificate)
    }

    @Test("a certificate for another name is not trusted", .enabled(if: TLSRedirector.isAvailable))
    func otherName() async throws {
        let other = try await TLSRedirector(to: "/")
        let manager = makeManager { $0.tls.certificateAuthorityFile = other.certificate.path }
        let response = await manager.request("https://127.0.0.1:\(other.port)/redirect").serializingData().response
        #expect(response.error?.transferFailure?.kind == .serverCertificate)
        #expect(response.error?.transferFailure?.requestWasSent == false)
    }

    @Test("verification can be turned off") func verificationOff() async throws {
        let manager = makeManager { $0.tls.verifiesServer = false }
        let response = await manager.request(nginx.tls + "/1k.bin").validate().serializingData().response
        #expect(response.value?.count == 1024)
        #expect(response.metrics.last?.tlsVersion != nil)
    }

    @Test("a missing authority file is an error") func missingAuthorityFile() async throws {
        let manager = makeManager { $0.tls.certificateAuthorityFile = "/nonexistent/authorities.pem" }
        let response = await manager.request(nginx.tls + "/1k.bin").serializingData().response
        #expect(response.error?.transferFailure?.kind == .configuration)
        #expect(response.error?.transferFailure?.requestWasSent == false)
        #expect(response.response == nil)
    }

    @Test("the version of TLS can be pinned", arguments: [TLSOptions.Version.v1_2, .v1_3]) func version(
        _ version: TLSOptions.Version
    ) async throws {
        let manager = makeManager {
            $0.tls.certificateAuthorityFile = nginx.authorities
            $0.tls.minimumVersion = version
            $0.tls.maximumVersion = version
        }
        let metrics = try #require(await manager.request(nginx.tls + "/1k.bin").validate().serializingData().response.metrics.last)
        #expect(metrics.tlsVersion == (version == .v1_2 ? "TLSv1.2" : "TLSv1.3"))
    }

    @Test("a TLS request to a plain server fails") func plainServer() async throws {
        let server = try LoopbackServer.standard()
        let manager = makeManager()
        let response = await manager.request("https://127.0.0.1:\(server.port)/").serializingData().response
        #expect(response.error?.transferFailure?.kind == .secureConnection)
        #expect(response.error?.transferFailure?.requestWasSent == false)
    }

    @Test("Basic credentials are accepted over TLS") func basicCredentials() async throws {
        let manager = makeManager { $0.tls.certificateAuthorityFile = nginx.authorities }
        let without = await manager.request(nginx.tls + "/auth").validate().serializingString().response
        #expect(without.error?.unacceptableStatus == 401)
        var headers = HTTPHeaders()
        headers.append(.authorization(username: "user", password: "passwd"))
        let with = await manager.request(nginx.tls + "/auth", headers: headers).validate().serializingString().response
        #expect(with.value == "authorized\n")
    }
}
