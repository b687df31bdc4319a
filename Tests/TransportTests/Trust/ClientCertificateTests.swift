// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct ClientCertificateTests {
    @Test(
        "neither a connection nor a TLS session is reused by a request with another client certificate, or none", arguments: [true, false])
    func clientCertificates(closes: Bool) async throws {
        let (authority, clients) = (try CertificateAuthority(), try CertificateAuthority(name: "Clients"))
        let server = try LoopbackServer(tls: ServerTLS(authority.issue(), clientAuthority: clients)) { _, connection in
            let response = ServerResponse.ok(connection.tls?.clientName ?? "none")
            return closes ? response.header("Connection", "close") : response
        }
        let transport = CurlTransport()
        var options = TransferOptions()
        options.proxy = .none
        options.tls.certificateAuthorities = authority.certificate
        let names = ["Ada", "Bob"]
        let certificates = try names.map { name in
            let identity = try clients.issue(name, usage: .client)
            return ClientCertificate.pem(Data(identity.chain.utf8), key: Data(identity.key.utf8))
        }
        for index in [0, 1, 0, 1] {
            options.tls.clientCertificate = certificates[index]
            let end = await transport.run(TransferRequest(url: server.url("/"), options: options))
            #expect(end.body == Data(names[index].utf8))
        }
        options.tls.clientCertificate = nil
        #expect(await transport.run(TransferRequest(url: server.url("/"), options: options)).error != nil)
        #expect(server.requests.count == 4)
    }
}
