// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A transport in front of another one, to which it forwards all calls that it does not implement itself.
package protocol ForwardingTransport: Transport {
    /// The other transport.
    var base: any Transport { get }
}

extension ForwardingTransport {
    package func cancel(_ id: Int) { base.cancel(id) }

    package func setSuspended(_ suspended: Bool, of id: Int) { base.setSuspended(suspended, of: id) }

    package func resumeReceiving(_ id: Int) { base.resumeReceiving(id) }

    package func openStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) {
        base.openStream(request, id: id, observer: observer)
    }

    package func send(_ bytes: Data, endOfStream: Bool, on id: Int) { base.send(bytes, endOfStream: endOfStream, on: id) }

    package func shutDown() { base.shutDown() }

    package func waitUntilShutDown() async { await base.waitUntilShutDown() }
}
