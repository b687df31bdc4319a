// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport
import Testing

/// What Curlew asks of TLS where libcurl asks for less.
@Suite(.timeLimit(.minutes(1)), .enabled(if: TLSAuthority.isAvailable)) struct TLSRulesTests {
    private let authority: TLSAuthority

    init() async throws {
        authority = try await TLSAuthority.shared()
    }

    private func manager(_ change: (inout TLSOptions) -> Void = { _ in }) -> SessionManager {
        makeManager {
            $0.tls.certificateAuthorityFile = authority.path("root.pem")
            change(&$0.tls)
        }
    }

    @Test("a body that only the connection's end frames is whole only with the closing alert", arguments: ["1.2", "1.3"])
    func closingAlert(version: String) async throws {
        let server = try await TLSServer(authority, "good") { $0.maximumVersion = version }
        let manager = manager()
        let whole = await manager.request(server.url + "/unframed").serializingString().response
        #expect(whole.value == "body")
        let cut = await manager.request(server.url + "/unframed/cut").serializingString().response
        #expect(cut.error?.transferFailure?.kind == .connectionLost)
        #expect(cut.error?.transferFailure?.message.contains("closing alert") == true)
    }

    @Test("a download that is cut so has no file under its name") func cutDownload() async throws {
        let server = try await TLSServer(authority, "good")
        let directory = try TemporaryDirectory()
        let manager = manager()
        let response = await manager.download(server.url + "/unframed/cut", to: directory.file("file")).serializingURL().response
        #expect(response.error?.transferFailure?.kind == .connectionLost)
        #expect(!FileManager.default.fileExists(atPath: directory.file("file").path))
    }

    @Test("hosts that never send the alert can be let off") func closingAlertNotRequired() async throws {
        let server = try await TLSServer(authority, "good")
        let manager = manager { $0.requiresClosingAlert = false }
        #expect(await manager.request(server.url + "/unframed/cut").serializingString().response.value == "body")
    }

    @Test("a certificate that has only a common name is not the host's") func commonName() async throws {
        let server = try await TLSServer(authority, "localhost")
        let strict = manager()
        let response = await strict.request(server.url).serializingString().response
        #expect(response.error?.transferFailure?.kind == .serverCertificate)
        #expect(await server.nextConnection()?.bytes == 0)
        // With names or chains that don't matter, it is as good as any other.
        let lenient = manager { $0.verifiesHostName = false }
        #expect(await lenient.request(server.url).serializingString().response.value != nil)
    }
}
