// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTestSupport

/// Sends requests to the hosts of the documentation, to a loopback server, with the real transport.
final class LoopbackTransport: Transport {
    private static let hosts = ["https://api.example.org", "https://example.org", "https://api.github.com"]

    private let transport = CurlTransport()
    private let server: LoopbackServer

    init(to server: LoopbackServer) {
        self.server = server
    }

    func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        var request = request
        for host in Self.hosts where request.url.hasPrefix(host + "/") {
            request.url = server.url(String(request.url.dropFirst(host.count)))
        }
        return transport.makeTransfer(request, id: id, observer: observer)
    }

    func makeStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) -> any StreamHandle {
        transport.makeStream(request, id: id, observer: observer)
    }

    func shutDown() { transport.shutDown() }
}
