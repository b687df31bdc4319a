// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

/// The ways in which a transfer can fail.
enum FailingTransfer: CaseIterable, Sendable {
    case invalidHeader, unsupportedScheme, malformedURL, emptyURL, relativeURL, schemelessURL
    case unresolvableHost, unresolvableProxy, refusedConnection, refusedAddress
    case missingInterface, connectTimeout, failedHandshake, unreadableCertificate, refusingProxy, closedBeforeHead, brokenFraming
    case tooLargeHead, closedInBody, firstByteTimeout, failingBody, cancelledAtHead

    /// The kind of the failure; `nil` for an error of another type.
    var kind: TransferFailure.Kind? {
        switch self {
        case .invalidHeader, .failingBody, .cancelledAtHead: nil
        case .unsupportedScheme: .unsupportedScheme
        case .malformedURL, .emptyURL, .relativeURL: .invalidURL
        case .unresolvableHost: .nameResolution
        case .unresolvableProxy, .refusingProxy: .proxy
        case .schemelessURL, .refusedConnection, .missingInterface: .connect
        case .refusedAddress: .addressNotAllowed
        case .connectTimeout: .connectTimeout
        case .failedHandshake: .secureConnection
        case .unreadableCertificate: .clientCertificate
        case .closedBeforeHead, .closedInBody: .connectionLost
        case .brokenFraming: .protocolViolation
        case .tooLargeHead: .tooLarge
        case .firstByteTimeout: .firstByteTimeout
        }
    }
}

/// The kinds of transfers that follow.
enum NextTransferKind: CaseIterable, Sendable {
    case get, head, download, streamedBody, post, fileUpload, uploadOfUnknownLength
}

/// After every kind of failed transfer, the next one on the same handle succeeds.
@Suite(.timeLimit(.minutes(2))) struct FailedHandleTests {
    private struct Broken: Error {}

    private let server: LoopbackServer
    private let full: SilentListener
    private let silent: SilentListener
    private let directory: TemporaryDirectory

    init() throws {
        server = try LoopbackServer { request, connection in
            guard request.method != "CONNECT" else { return .status(403) }
            switch request.path {
            case "/closed": connection.close()
            case "/broken": try connection.send(raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx")
            case "/large": try connection.send(raw: "HTTP/1.1 200 OK\r\nX: \(String(repeating: "x", count: 1000))\r\n\r\n")
            case "/cut":
                try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
                connection.close()
            case "/upload": return .ok("\(request.bodyLength)")
            default: return .ok("whole")
            }
            return nil
        }
        full = try SilentListener(backlog: 1, full: true)
        silent = try SilentListener(backlog: 64)
        directory = try TemporaryDirectory()
    }

    private func request(_ failing: FailingTransfer) -> TransferRequest {
        var request = TransferRequest(url: server.url("/"))
        request.options.proxy = .none
        switch failing {
        case .invalidHeader: request.headers = ["Bad Name": "x"]
        case .unsupportedScheme: request.url = "ftp://127.0.0.1/"
        case .malformedURL: request.url = "http://127.0.0.1:99999/"
        case .emptyURL: request.url = ""
        case .relativeURL: request.url = "/relative"
        // libcurl assumes the scheme http.
        case .schemelessURL: request.url = "127.0.0.1:1/x"
        case .unresolvableHost: request.url = "http://missing.invalid/"
        case .unresolvableProxy: request.options.proxy = .url("http://missing.invalid:3128")
        case .refusedConnection: request.url = "http://127.0.0.1:1/"
        case .refusedAddress: request.options.addresses = .publicOnly
        case .missingInterface: request.options.interface = "missing0"
        case .connectTimeout:
            request.url = "http://127.0.0.1:\(full.port)/"
            request.options.connectTimeout = .milliseconds(50)
        case .failedHandshake: request.url = server.url("/").replacing("http:", with: "https:")
        case .unreadableCertificate:
            request.url = server.url("/").replacing("http:", with: "https:")
            request.options.tls.clientCertificate = .pem(Data("none".utf8), key: Data("none".utf8))
        case .refusingProxy:
            request.url = "https://missing.invalid/"
            request.options.proxy = .url(server.url("/"))
        case .closedBeforeHead: request.url = server.url("/closed")
        case .brokenFraming: request.url = server.url("/broken")
        case .tooLargeHead:
            request.url = server.url("/large")
            request.options.maximumHeadSize = 100
        case .closedInBody: request.url = server.url("/cut")
        case .firstByteTimeout:
            request.url = "http://127.0.0.1:\(silent.port)/"
            request.options.firstByteTimeout = .milliseconds(50)
        case .failingBody:
            request.method = .put
            request.body = FedBody([.failed(Broken())])
        case .cancelledAtHead: break
        }
        return request
    }

    private func request(_ kind: NextTransferKind) throws -> TransferRequest {
        var request = TransferRequest(url: server.url(kind == .get ? "/" : "/upload"))
        request.options.proxy = .none
        switch kind {
        case .get: break
        case .head: request.method = .head
        case .download: request.expectsLargeBody = true
        case .streamedBody:
            request.mayPause = true
            request.expectsLargeBody = true
        case .post:
            request.method = .post
            request.body = DataBody(Data("12345".utf8))
        case .fileUpload:
            request.method = .put
            request.body = try FileBody(path: try directory.write(Data("12345".utf8), to: "body").path)
            request.expectsLargeBody = true
        case .uploadOfUnknownLength:
            request.method = .put
            request.body = FedBody([.bytes(Data("12345".utf8)), .end])
            request.expectsLargeBody = true
        }
        return request
    }

    @Test("the transfer after a failed one succeeds, for all kinds of both", arguments: FailingTransfer.allCases)
    func next(failing: FailingTransfer) async throws {
        let transport = CurlTransport()
        for first in [true, false] {
            for kind in NextTransferKind.allCases {
                var bad = request(failing)
                // Both sizes of libcurl's buffer.
                bad.expectsLargeBody = first
                let observer = RecordingObserver(onHead: { _ in failing == .cancelledAtHead ? .cancel : .proceed })
                let failed = await transport.run(bad, observer: observer)
                #expect(failed.error != nil && failed.failure?.kind == failing.kind, "\(String(describing: failed.error))")
                let end = await transport.run(try request(kind))
                #expect(end.error == nil, "\(kind): \(String(describing: end.error))")
                #expect(end.head?.statusCode == 200)
                let sent = [.post, .fileUpload, .uploadOfUnknownLength].contains(kind) ? "5" : "0"
                #expect(end.body == Data((kind == .get ? "whole" : kind == .head ? "" : sent).utf8), "\(kind)")
            }
        }
    }

    @Test("an option that libcurl always rejects fails the transfer and no later one")
    func refusedOption() async throws {
        let transport = CurlTransport()
        #expect(await transport.run(try request(.get)).error == nil)
        var refused = try request(.get)
        refused.options.tls.certificateAuthorityFile = nil
        // libcurl rejects strings of more than 8 MB.
        refused.options.interface = String(repeating: "x", count: 9_000_000)
        let end = await transport.run(refused)
        #expect(end.failure?.kind == .configuration)
        #expect(end.failure?.requestWasSent == false)
        for kind in NextTransferKind.allCases {
            #expect(await transport.run(try request(kind)).error == nil, "\(kind)")
        }
    }
}
