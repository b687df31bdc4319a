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

    func start(_ request: TransferRequest, id: Int, observer: any TransferObserver) {
        var request = request
        for host in Self.hosts where request.url.hasPrefix(host + "/") {
            request.url = server.url(String(request.url.dropFirst(host.count)))
        }
        transport.start(request, id: id, observer: observer)
    }

    func openStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) {
        transport.openStream(request, id: id, observer: observer)
    }

    func cancel(_ id: Int) { transport.cancel(id) }
    func setSuspended(_ suspended: Bool, of id: Int) { transport.setSuspended(suspended, of: id) }
    func resumeReceiving(_ id: Int) { transport.resumeReceiving(id) }
    func send(_ bytes: Data, endOfStream: Bool, on id: Int) { transport.send(bytes, endOfStream: endOfStream, on: id) }
    func shutDown() { transport.shutDown() }
}
