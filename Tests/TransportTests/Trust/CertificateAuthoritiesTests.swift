// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct CertificateAuthoritiesTests {
    private let directory: TemporaryDirectory
    private let first: CertificateAuthority
    private let second: CertificateAuthority

    init() throws {
        directory = try TemporaryDirectory()
        first = try CertificateAuthority(name: "First")
        second = try CertificateAuthority(name: "Second")
    }

    private func status(of server: LoopbackServer, _ change: (inout TLSOptions) throws -> Void) async throws -> TransferFailure.Kind? {
        var options = TransferOptions()
        options.proxy = .none
        try change(&options.tls)
        let end = await CurlTransport().run(TransferRequest(url: server.url("/"), options: options))
        #expect(end.failure != nil || end.body == Data("ok".utf8))
        return end.failure?.kind
    }

    private func server(_ authority: CertificateAuthority) throws -> LoopbackServer {
        try LoopbackServer(tls: ServerTLS(try authority.issue())) { _, _ in .ok("ok") }
    }

    @Test func `files, bytes and texts, in PEM and DER, are read`() throws {
        let both = first.certificate + Data("\n# the second\n".utf8) + second.certificate
        let file = try directory.write(both, to: "both.pem")
        let der = try #require(Certificate.all(inPEM: first.certificate).first).der
        let fromFile = try CertificateAuthorities(contentsOf: file)
        #expect(fromFile.certificates.count == 2)
        #expect(try CertificateAuthorities(both) == fromFile)
        #expect(try CertificateAuthorities(pem: String(decoding: both, as: UTF8.self)).pem == fromFile.pem)
        #expect(try CertificateAuthorities(der).certificates.map(\.der) == [der])
    }

    @Test func `what contains no certificate is an error that says so`() throws {
        let empty = try directory.write(Data("no certificate".utf8), to: "empty.pem")
        let sources: [@Sendable () throws -> CertificateAuthorities] = [
            { try CertificateAuthorities(Data()) }, { try CertificateAuthorities(pem: "-----BEGIN CERTIFICATE-----\nx\n") },
            { try CertificateAuthorities(contentsOf: empty) },
            { try CertificateAuthorities(contentsOf: empty.appendingPathExtension("no")) },
            { try CertificateAuthorities(contentsOf: #require(URL(string: "https://example.org/root.pem"))) },
        ]
        for source in sources {
            let error = #expect(throws: CurlewError.self) { try source() }
            guard case .transferFailed(let failure)? = error else {
                Issue.record("not a failure: \(String(describing: error))")
                continue
            }
            #expect(failure.kind == .configuration && failure.message.contains("authorities"))
        }
    }

    @Test func `a missing file is named in words, also where it is combined with other authorities`() async throws {
        let missing = URL(filePath: "/nowhere/root.pem")
        let text = "can't be read: the file \"/nowhere/root.pem\" does not exist"
        let error = #expect(throws: CurlewError.self) { try CertificateAuthorities(contentsOf: missing) }
        #expect("\(try #require(error))".contains(text))
        var request = TransferRequest(url: "https://127.0.0.1:9/")
        request.options.proxy = .none
        request.options.tls.certificateAuthorityFile = missing.path
        request.options.tls.additionalAuthorities = try CertificateAuthorities(first.certificate)
        let failure = try #require(await CurlTransport().run(request).failure)
        #expect(failure.kind == .configuration && failure.message.hasSuffix(text), "\(failure)")
    }

    @Test func `a failure of pinned keys names the host`() async throws {
        let server = try server(first)
        defer { server.stop() }
        var request = TransferRequest(url: server.url("/"))
        request.options.proxy = .none
        request.options.tls.certificateAuthorities = first.certificate
        request.options.tls.publicKeyHashes = [Data(count: 32)]
        let failure = try #require(await CurlTransport().run(request).failure)
        let host = try #require(HTTPOrigin(url: server.url("/"))).host
        #expect(failure.kind == .serverCertificate)
        #expect(failure.message.hasPrefix("The public key of \(host) is none of `publicKeyHashes`: "), "\(failure)")
    }

    @Test func `additional authorities are trusted beside the system's, the data's and the file's`() async throws {
        let (server, other) = (try server(first), try server(second))
        let additional = try CertificateAuthorities(first.certificate)
        let file = try directory.write(second.certificate, to: "second.pem").path
        let changes: [(inout TLSOptions) -> Void] = [
            { _ in }, { $0.certificateAuthorities = second.certificate }, { $0.certificateAuthorityFile = file },
        ]
        for (index, change) in changes.enumerated() {
            #expect(try await status(of: server) { change(&$0) } == .serverCertificate)
            #expect(
                try await status(of: server) {
                    change(&$0)
                    $0.additionalAuthorities = additional
                } == nil)
            #expect(
                try await status(of: other) {
                    change(&$0)
                    $0.additionalAuthorities = additional
                } == (index == 0 ? .serverCertificate : nil))
        }
    }

    @Test func `the system's authorities stay trusted with additional ones`() throws {
        let system = TrustAnchors(TLSOptions())
        var options = TLSOptions()
        options.additionalAuthorities = try CertificateAuthorities(first.certificate)
        // The system's own authorities are roots, which verify themselves.
        let bundle = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"].first {
            FileManager.default.isReadableFile(atPath: $0)
        }
        guard let bundle, let root = Certificate.all(inPEM: try Data(contentsOf: URL(fileURLWithPath: bundle))).first else { return }
        let (alone, together) = (system.verify([root]).reason, TrustAnchors(options).verify([root]).reason)
        #expect(alone == together)
        #expect(
            TrustAnchors(options).verify(Certificate.all(inPEM: first.certificate)).reason
                != system.verify(Certificate.all(inPEM: first.certificate)).reason)
    }

    @Test func `a missing file to be combined with additional authorities is an error`() async throws {
        let server = try server(first)
        #expect(
            try await status(of: server) {
                $0.certificateAuthorityFile = directory.file("missing.pem").path
                $0.additionalAuthorities = try CertificateAuthorities(first.certificate)
            } == .configuration)
    }
}
