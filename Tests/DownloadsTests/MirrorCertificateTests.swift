// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewDownloads
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTransport
import Testing

@Suite(.timeLimit(.minutes(1))) struct MirrorCertificateTests {
    @Test("a mirror of another origin gets the session's client certificate only if it is named") func mirrors() async throws {
        let (authority, clients) = (try CertificateAuthority(), try CertificateAuthority(name: "Clients"))
        let tls = ServerTLS(try authority.issue(), clientAuthority: clients)
        let first = try LoopbackServer(tls: tls) { _, _ in .status(404) }
        let mirror = try LoopbackServer(tls: tls) { request, _ in .generated(length: 100_000, for: request) }
        let identity = try clients.issue("Numenius", usage: .client)
        var certificate = ClientCertificate.pem(Data(identity.chain.utf8), key: Data(identity.key.utf8))
        let directory = try TemporaryDirectory()
        var options = SegmentedDownload.Options()
        options.retryLimit = 0
        for origins in [nil, [first.port, mirror.port].map { "https://localhost:\($0)" }] {
            certificate.origins = origins
            let manager = makeManager {
                $0.tls.certificateAuthorities = authority.certificate
                $0.tls.clientCertificate = certificate
            }
            let download = manager.segmentedDownload(
                first.url("/"), mirrors: [mirror.url("/")], to: directory.file("file"), options: options)
            if origins == nil {
                await #expect(throws: (any Error).self) { try await download.run() }
                #expect(!first.requests.isEmpty && mirror.requests.isEmpty)
            } else {
                #expect(try await download.run().length == 100_000)
            }
        }
    }
}
