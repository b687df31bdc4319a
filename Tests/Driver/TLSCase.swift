// SPDX-License-Identifier: Apache-2.0
import Curlew

/// A server to be accepted or rejected.
struct TLSCase: Decodable {
    struct Client: Decodable {
        let cacert: String
        let cert: String?
        let key: String?
        let pin: String?
        let crl: String?
        let staple: Bool?
        let insecure: Bool?
        let minTLS: String?
        let maxTLS: String?
    }

    struct Step: Decodable {
        let client: Client
        let expect: String
    }

    let url: String
    let client: Client
    let body: String?
    let sequence: [Step]?

    func run() async -> Answer {
        guard let sequence else { return await run(client, over: nil) }
        // One connection pool for all steps.
        let transport = CurlTransport()
        var answer = Answer(ok: false, error: "no steps")
        for step in sequence {
            answer = await run(step.client, over: transport)
            if answer.ok != (step.expect == "ok") { return Answer(ok: step.expect != "ok", error: "a step went wrong: \(answer)") }
        }
        return answer
    }

    private func run(_ client: Client, over transport: CurlTransport?) async -> Answer {
        var configuration = Driver.makeConfiguration()
        configuration.totalTimeout = .seconds(5)
        configuration.tls = client.options
        let borrowed = transport.map { SessionManager(configuration: configuration, transport: Borrowed(transport: $0)) }
        let manager = borrowed ?? SessionManager(configuration: configuration)
        defer { manager.invalidateAndCancel() }
        let response = await manager.request(url).validate().serializingData().response
        switch response.result {
        case .success(let data):
            guard let body, String(decoding: data, as: UTF8.self) != body else { return Answer(ok: true, error: nil) }
            return Answer(ok: false, error: "another body: \(data.count) bytes")
        case .failure(let error):
            return Answer(ok: false, error: error.shortDescription)
        }
    }
}

extension TLSCase.Client {
    fileprivate var options: TLSOptions {
        var options = TLSOptions()
        options.certificateAuthorityFile = cacert
        if let cert, let key { options.clientCertificate = .pem(file: cert, keyFile: key) }
        if let pin {
            let hashes = pin.split(separator: ";").map { String($0.dropFirst("sha256//".count)) }
            options.publicKeyHashes = Set(hashes.compactMap { Data(base64Encoded: $0) })
        }
        options.revocationListFile = crl
        options.requiresStapledResponse = staple ?? false
        options.verifiesServer = insecure != true
        if let minimum = minTLS.flatMap(TLSOptions.Version.init(name:)) { options.minimumVersion = minimum }
        options.maximumVersion = maxTLS.flatMap(TLSOptions.Version.init(name:))
        return options
    }
}

extension TLSOptions.Version {
    fileprivate init?(name: String) {
        switch name {
        case "1.0": self = .v1_0
        case "1.1": self = .v1_1
        case "1.2": self = .v1_2
        case "1.3": self = .v1_3
        default: return nil
        }
    }
}

extension Error {
    fileprivate var shortDescription: String {
        guard case .transferFailed(let failure) = self as? CurlewError else { return "\(self)" }
        return "\(failure.kind.rawValue) while \(failure.phase): \(failure.message)"
    }
}

/// A borrowed transport, shared by several sessions: the end of the first one must not shut it down.
private struct Borrowed: Transport {
    let transport: CurlTransport

    func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        transport.makeTransfer(request, id: id, observer: observer)
    }

    func makeStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) -> any StreamHandle {
        transport.makeStream(request, id: id, observer: observer)
    }

    func shutDown() {}
}
